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
#ifndef QDQI_CUDA_KERNELS_H
#define QDQI_CUDA_KERNELS_H

#include "cuda/element.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- extremes.cu: number/minmax.h ------------------------------------------- */

/* Makes n extremes empty. */
int qdqi_cuda_extremes_init(struct qdqi_extremes *e, size_t n, void *stream);
/* Adds n elements. The keys of float16 elements are those of the widened numbers. */
int qdqi_cuda_extremes_update(int type, const void *data, size_t n,
                              struct qdqi_extremes *e, void *stream);

/* --- histogram.cu: number/histogram.h --------------------------------------- */

/* `histogram` has the counts of finite data. `extremes` has those of all data,
   finite or not. The other members belong to the data being added. */
struct qdqi_cuda_histogram {
    struct qdqi_histogram histogram;
    struct qdqi_extremes extremes;
    struct qdqi_extremes piece;
    int32_t counting;
    int32_t reserved;
};

int qdqi_cuda_histogram_init(struct qdqi_cuda_histogram *h, size_t n, void *stream);
/* Adds n elements. When one of them is not finite, none is counted; the extremes
   show that. */
int qdqi_cuda_histogram_update(int type, const void *data, size_t n,
                               struct qdqi_cuda_histogram *h, void *stream);

/* --- fake.cu: number/format.h ----------------------------------------------- */

/* Does the same as qdqi_grid_apply(). `grid` itself is in host memory, its scales
   and zero points are on the device. `in` and `out` may be equal. */
int qdqi_cuda_fake(int type, const struct qdqi_grid *grid, const void *in, void *out,
                   void *stream);

/* --- sums.cu: element.h ------------------------------------------------------ */

/* Returns the number of bytes of device memory that qdqi_cuda_sums_update() needs,
   for any n. */
size_t qdqi_cuda_sums_workspace(void);
int qdqi_cuda_sums_init(struct qdqi_error_sums *s, size_t n, void *stream);
/*
 * Adds the sums over n pairs of elements to *s. The order of additions depends only on
 * n, so the same data gives the same bits on every device, at any address and in every
 * run.
 */
int qdqi_cuda_sums_update(int type, const void *f, const void *q, size_t n,
                          struct qdqi_error_sums *s, void *workspace, void *stream);

#ifdef __cplusplus
}
#endif

#endif
