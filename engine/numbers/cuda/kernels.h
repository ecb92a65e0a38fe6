/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels' launchers, in plain C: each file of kernels implements some. The result of each
 * is defined by the CPU's file that it names.
 *
 * Pointers are to device memory unless they say otherwise; elements are aligned to their
 * size and no further. `type` is QDQI_FLOAT32 or QDQI_FLOAT16 (widened to float32 before
 * anything is done with it). `stream` is a cudaStream_t of the current device, or NULL.
 * A launcher returns when the work is queued: 0, or the runtime's error (api.h makes an
 * error of it). None allocates, waits or keeps anything: what one works on is its
 * caller's, and what lies there must not be touched by other streams meanwhile.
 */
#ifndef QDQI_NUMBERS_CUDA_KERNELS_H
#define QDQI_NUMBERS_CUDA_KERNELS_H

#include "numbers/cuda/element.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- extremes.cu: numbers/arithmetic/minmax.h ------------------------------------------- */

/* Makes n extremes empty. */
int qdqi_cuda_extremes_init(struct qdqi_extremes *e, size_t n, void *stream);
/* Adds n elements. The keys of float16 elements are those of the widened numbers. */
int qdqi_cuda_extremes_update(int type, const void *data, size_t n,
                              struct qdqi_extremes *e, void *stream);
/* Adds n elements of each of several samples, which follow one another, to the extremes of
   that sample. */
int qdqi_cuda_extremes_each(int type, const void *data, size_t n, size_t samples,
                            struct qdqi_extremes *e, void *stream);

/* --- histogram.cu: numbers/arithmetic/histogram.h --------------------------------------- */

/* `histogram` has the counts of finite data. `extremes` has those of all data,
   finite or not. The other members belong to the data being added. */
struct qdqi_cuda_histogram {
    struct qdqi_histogram histogram;
    struct qdqi_extremes extremes;
    struct qdqi_extremes piece;
    int32_t counting;
    uint32_t blocks; /* of the grid's blocks that have ended; 0 between grids */
    uint32_t added[QDQI_BINS]; /* counts of the piece; zeros between grids */
};

int qdqi_cuda_histogram_init(struct qdqi_cuda_histogram *h, size_t n, void *stream);
/* Adds n elements. When one of them is not finite, none is counted; the extremes
   show that. */
int qdqi_cuda_histogram_update(int type, const void *data, size_t n,
                               struct qdqi_cuda_histogram *h, void *stream);
/* Does the same in one pass over the data. It is quicker where most of the data are in the
   range of the data before, and slower where they are not. */
int qdqi_cuda_histogram_continue(int type, const void *data, size_t n,
                                 struct qdqi_cuda_histogram *h, void *stream);

/* Copies the extremes of n histograms, to the device's or to pinned memory. */
int qdqi_cuda_histogram_extremes(const struct qdqi_cuda_histogram *h, size_t n,
                                 struct qdqi_extremes *ret, void *stream);

/* --- fake.cu: numbers/arithmetic/format.h ----------------------------------------------- */

/* Fake-quantizes a tensor. `grid` itself is in host memory, its scales and zero points are
   on the device. `in` and `out` may be equal. */
int qdqi_cuda_fake(int type, const struct qdqi_grid *grid, const void *in, void *out,
                   void *stream);

/* --- sums.cu: element.h ------------------------------------------------------ */

/* Returns the number of bytes of device memory that qdqi_cuda_sums_update() needs,
   for any n. */
size_t qdqi_cuda_sums_workspace(void);
int qdqi_cuda_sums_init(struct qdqi_noise *s, size_t n, void *stream);
/*
 * Adds the sums over n pairs of elements to *s. The order of additions depends only on
 * n, so the same data gives the same bits on every device, at any address and in every
 * run.
 */
int qdqi_cuda_sums_update(int type, const void *f, const void *q, size_t n,
                          struct qdqi_noise *s, void *workspace, void *stream);

/* --- moment.cu: numbers/arithmetic/moment.h ---------------------------------------------- */

enum { QDQI_CUDA_MOMENT_ROWS = 256, QDQI_CUDA_AXES = 3, QDQI_CUDA_PIECES = 16 };

/* How a convolution moves over its input, by spatial axis. No axes: rows of a matrix. */
struct qdqi_cuda_window {
    unsigned axes;
    size_t kernel[QDQI_CUDA_AXES], out[QDQI_CUDA_AXES];
    int64_t stride[QDQI_CUDA_AXES], dilation[QDQI_CUDA_AXES];
    int64_t begin[QDQI_CUDA_AXES], in[QDQI_CUDA_AXES]; /* padding; size of the input */
    size_t elements; /* of a sample, of one group's channels */
};

/* The moments of one input, by group; their shape is that of struct qdqi_moment. The memory is
   the device's, and contains zeros at first. */
struct qdqi_cuda_moment {
    size_t groups, k, block, tile;
    size_t blocks, tiles; /* of a row; along a side of a block */
    float *products;      /* [group] and then as struct qdqi_moment has them */
    double *sums;         /* [group][k] */
    uint64_t *rows;       /* by group */
    float *pending;       /* [group][QDQI_CUDA_MOMENT_ROWS][blocks * tiles * tile] */
};

/* Rows of one sample: n from number `first` on. */
struct qdqi_cuda_piece {
    const float *data; /* the sample */
    size_t first, n;
    double offset;
};

/* Rows that are to be copied to consecutive places among the pending ones. Each sample has
   `wanted` rows, which are spread over its positions as numbers/range/patches.h says. */
struct qdqi_cuda_rows {
    size_t positions, wanted;
    size_t at, n; /* place of the first; number of rows in all pieces */
    size_t n_pieces;
    struct qdqi_cuda_piece pieces[QDQI_CUDA_PIECES];
};

/* Copies rows to the pending ones. A row with a NaN or an infinity becomes zeros and is not
   counted. The structures are in host memory. */
int qdqi_cuda_moment_gather(const struct qdqi_cuda_window *w,
                            const struct qdqi_cuda_moment *m,
                            const struct qdqi_cuda_rows *rows, void *stream);
/* Adds the first n pending rows to the sums and products. */
int qdqi_cuda_moment_add(const struct qdqi_cuda_moment *m, size_t n, void *stream);

#ifdef __cplusplus
}
#endif

#endif
