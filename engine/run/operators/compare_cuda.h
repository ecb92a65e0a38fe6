/* SPDX-License-Identifier: Apache-2.0 */
/* Compare and Pass on a CUDA device. The compared tensors stay in device memory, and
   so do the sums until they are collected. This header is only for engine/run/. */
#ifndef QDQI_RUN_OPERATORS_COMPARE_CUDA_H
#define QDQI_RUN_OPERATORS_COMPARE_CUDA_H

#include "run/operators/compare.h"
#include "run/operators/device_memory.h"

/* The sums of one session. */
struct qdqi_cuda_comparisons {
    struct qdqi_comparisons *host;
    const struct qdqi_device *dev;
    /* These two are in device memory: */
    struct qdqi_noise *sums; /* sums by slot since the last collection */
    void *workspace;
    struct qdqi_noise *downloaded; /* host memory that the sums are downloaded to */
    struct qdq_error fault;        /* the error of the last operator that failed */
};

/* Allocates sums of zero on the device. Borrows the comparisons and the device.
   DEVICE_MEMORY, DEVICE_LOST. */
enum qdq_code qdqi_cuda_comparisons_open(struct qdqi_comparisons *comparisons,
                                         const struct qdqi_device *dev,
                                         struct qdqi_cuda_comparisons **ret,
                                         struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_cuda_comparisons_close(struct qdqi_cuda_comparisons **cuda_comparisons);

/* Adds the sums on the device to those of the comparisons and sets them to zero. */
enum qdq_code
qdqi_cuda_comparisons_collect(struct qdqi_cuda_comparisons *cuda_comparisons,
                              struct qdq_error *err) QDQ_MUST_CHECK;

void qdqi_compare_cuda_init(struct qdqi_op *op, const OrtApi *api,
                            struct qdqi_cuda_comparisons *cuda_comparisons);
void qdqi_pass_cuda_init(struct qdqi_op *op, const OrtApi *api,
                         struct qdqi_cuda_comparisons *cuda_comparisons);

#endif
