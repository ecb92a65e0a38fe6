/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file with the observations of calibrations: accumulators by tensor, for later jobs
 * with the same model and data.
 *
 * The file is little-endian, and nothing is aligned:
 *   head    QDQ_OBSERVATIONS_MAGIC (8 bytes), u64 size of the file, u64 sum of everything
 *           behind the head. In stripes of 4 u64, the last filled up with zeros, word i goes
 *           into hash i, which begins with 0xcbf29ce484222325 + i: h becomes
 *           (h ^ word) * 0x100000001b3, and that h ^ h >> 32. The sum is the hash of the
 *           four by the same steps, from 0xcbf29ce484222325 on
 *   text    u32 length, bytes: the identity of the observations
 *   i64     number of samples that were read
 *   i64     number of these that were skipped because they are not finite
 *   text    their names, as in the warning
 *   u32     number of rows, then each row:
 *     text  tensor
 *     i32   two: keys of the extremes (minmax.h)
 *     u32   1 if there is an average, else 0
 *     f64   two: the average
 *     i64   number of runs
 *     i32   exponent of the histogram
 *     u32   number of bins up to the last one that is not empty
 *     u64   the count of each bin
 *   then, unless the file ends here:
 *   u32     number of moments of layers' inputs, then each (numbers/arithmetic/moment.h):
 *     text  its key: a hash of what was observed with it, then after a line feed each the
 *           names of the weight and of the layers that multiply by it
 *     u32   number of groups, u32 elements k of a row, then for each group:
 *       u64 number of rows
 *       f64 k: the sums of the rows
 *       f32 the sums of products: of each block of elements the tiles on and above the
 *           diagonal, row of tiles by row of tiles. There is one block for k <= 4608; for
 *           others the fewest of at most 2304, rounded up to a multiple of 64. A tile has
 *           64 by 64 products, or k by k rounded up to a multiple of 16 where k < 64;
 *           those behind the last element are 0. All blocks have as many tiles.
 *   then, unless the file ends here:
 *   u32     number of activations with magnitudes of channels (peaks.h), then each:
 *     text  tensor
 *     u32   number of channels
 *     f32   the largest magnitude of each
 *
 * Version 1 (QDQOBS1) differs in its sum alone, 64-bit FNV-1a byte by byte, and is read.
 *
 * A file may have any content. It is valid when sum and identity are right and an
 * observer could have written each row. An invalid file counts as empty.
 */
#ifndef QDQI_NUMBERS_RANGE_OBSERVATIONS_H
#define QDQI_NUMBERS_RANGE_OBSERVATIONS_H

#include "ground/base/map.h"
#include "numbers/arithmetic/moment.h"
#include "numbers/range/observer.h"

/* All kinds of observations. They are kept so that every range method finds those
   that it needs. */
enum { QDQI_NEEDS_ALL = QDQI_NEEDS_HISTOGRAM | QDQI_NEEDS_AVERAGE };

enum {
    QDQI_OBSERVATIONS_HEAD = 24,
    QDQI_SKIPPED_NAMED = 200, /* bytes for the names of skipped samples */
};

/* Values that apply to all rows. */
struct qdqi_observed {
    int64_t samples, skipped;
    char which[QDQI_SKIPPED_NAMED]; /* names of the first skipped samples */
};

struct qdqi_observations {
    struct qdqi_observed all;
    unsigned char *bytes; /* the file; NULL: there are no observations */
    size_t first, size;   /* offset of the first row, and size of the file */
    size_t end_rows;      /* offset behind the last row */
    uint32_t n;
    struct qdqi_map *rows; /* maps a tensor to its row in `bytes` */
    size_t first_moment;   /* offset of the first moment */
    uint32_t n_moments;
    struct qdqi_map *moments; /* maps a key to the groups of its moment in `bytes` */
    size_t end_moments;       /* offset behind the last moment */
    struct qdqi_map *peaks;   /* maps a tensor to its magnitudes in `bytes` */
};

/* Moments that are written, in a list. */
struct qdqi_kept_moments {
    const char *key;
    size_t groups;
    const struct qdqi_moment *moments; /* by group */
    const struct qdqi_kept_moments *next;
};

/* Magnitudes of channels that are written, in a list. */
struct qdqi_kept_peaks {
    const char *tensor;
    size_t channels;
    const float *largest; /* by channel */
    const struct qdqi_kept_peaks *next;
};

/* The observers and the moments that one calibration adds to the observations, and all
   magnitudes. */
struct qdqi_observed_rows {
    const struct qdqi_observers *observers; /* NULL: none */
    const bool *observed;                   /* by observer: whether it is written */
    const struct qdqi_kept_moments *moments;
    const struct qdqi_kept_peaks *peaks; /* in the place of the earlier ones */
};

/* Reads the file if it has this identity. The map is in the arena. An invalid file
   gives no observations; the only error is NO_MEMORY. */
enum qdq_code qdqi_observations_read(int fd, const char *identity,
                                     struct qdqi_arena *arena,
                                     struct qdqi_observations *ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_observations_fini(struct qdqi_observations *observations);

bool qdqi_observations_have(const struct qdqi_observations *observations,
                            const char *tensor);
/* Fills an observer with the observations of its tensor. The observer must have
   accumulators for QDQI_NEEDS_ALL. */
void qdqi_observations_restore(const struct qdqi_observations *observations,
                               struct qdqi_observer *to);

/* Fills in the moments, which are initialized, of so many groups. Returns false when there
   are none of this key and shape. */
bool qdqi_observations_restore_moments(const struct qdqi_observations *observations,
                                       const char *key, size_t groups,
                                       struct qdqi_moment *to);

/* Fills in the magnitudes of so many channels. Returns false when there are none. */
bool qdqi_observations_restore_peaks(const struct qdqi_observations *observations,
                                     const char *tensor, size_t channels, float *to);

/* Writes a file with the rows of `earlier` and the new ones. IO. */
enum qdq_code qdqi_observations_write(int fd, const char *identity,
                                      const struct qdqi_observed *all,
                                      const struct qdqi_observations *earlier,
                                      const struct qdqi_observed_rows *rows,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

uint64_t qdqi_observations_sum(const void *bytes, size_t n);

#endif
