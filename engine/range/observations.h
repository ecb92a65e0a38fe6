/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the observations of calibrations: accumulators by tensor, for later jobs with
 * the same model and data.
 *
 * Little-endian, nothing is aligned:
 *   head    QDQ_OBSERVATIONS_MAGIC (8 bytes), u64 size of the file, u64 sum: FNV-1a, 64
 *           bit, of all that follows
 *   text    u32 length, bytes: the identity of what was observed
 *   i64     samples that were read
 *   i64     samples of these that were left out, as they are not finite
 *   text    which, as a warning tells them
 *   u32     rows, then each row:
 *     text  tensor
 *     i32   two: keys of the extremes (minmax.h)
 *     u32   1 where there is an average, else 0
 *     f64   two: the average
 *     i64   runs
 *     i32   exponent of the histogram
 *     u32   bins up to the last one that is not empty
 *     u64   the count of each
 *
 * A file may hold anything. It is good when sum and identity are right and each row is
 * one that an observer could have written; else it counts as empty.
 */
#ifndef QDQI_RANGE_OBSERVATIONS_H
#define QDQI_RANGE_OBSERVATIONS_H

#include "base/map.h"
#include "range/observer.h"

/* All that is kept of a tensor, so that every range method finds what it needs. */
enum { QDQI_NEEDS_ALL = QDQI_NEEDS_HISTOGRAM | QDQI_NEEDS_AVERAGE };

enum {
    QDQI_OBSERVATIONS_HEAD = 24,
    QDQI_SKIPPED_NAMED = 200, /* bytes */
};

/* Values that apply to all rows. */
struct qdqi_observed {
    int64_t samples, skipped;
    char which[QDQI_SKIPPED_NAMED]; /* the first ones that were skipped */
};

struct qdqi_observations {
    struct qdqi_observed all;
    unsigned char *bytes; /* the file; NULL: it holds nothing */
    size_t first, size;   /* the rows: where they begin, and the end of the file */
    uint32_t n;
    struct qdqi_map *rows; /* by tensor: its row in `bytes` */
};

/*
 * Reads the file, of which `identity` is wanted. Only NO_MEMORY is an error; the map
 * lives in the arena.
 */
enum qdq_code qdqi_observations_read(int fd, const char *identity,
                                     struct qdqi_arena *arena,
                                     struct qdqi_observations *ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_observations_fini(struct qdqi_observations *observations);

bool qdqi_observations_have(const struct qdqi_observations *observations,
                            const char *tensor);
/* Fills an observer that needs all with what was observed of its tensor before. */
void qdqi_observations_take(const struct qdqi_observations *observations,
                            struct qdqi_observer *to);

/*
 * Writes the rows of `earlier`, and of each tensor that was observed now one that it does
 * not have. IO.
 */
enum qdq_code qdqi_observations_write(int fd, const char *identity,
                                      const struct qdqi_observed *all,
                                      const struct qdqi_observations *earlier,
                                      const struct qdqi_observers *observers,
                                      const bool *observed,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

uint64_t qdqi_observations_sum(const void *bytes, size_t n);

#endif
