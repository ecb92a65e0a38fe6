/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Moment operator on a CUDA device. Sums and products stay on the device until they are
 * collected. Rows are always taken one by one, never by shifted images (numbers/range/shifts.h).
 * This header is only for engine/run/.
 */
#ifndef QDQI_RUN_OPERATORS_MOMENTS_CUDA_H
#define QDQI_RUN_OPERATORS_MOMENTS_CUDA_H

#include "numbers/range/patches.h"
#include "run/operators/device_memory.h"

/* The moments of one session. */
struct qdqi_cuda_moments;

/* Allocates empty moments. Borrows those of the host and the device. DEVICE_MEMORY,
   DEVICE_LOST. */
enum qdq_code qdqi_cuda_moments_open(struct qdqi_moments *moments,
                                     const struct qdqi_device *dev,
                                     struct qdqi_cuda_moments **ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_cuda_moments_close(struct qdqi_cuda_moments **cuda_moments);

/* Moves what is on the device to the moments of the host, which are added to. */
enum qdq_code qdqi_cuda_moments_collect(struct qdqi_cuda_moments *cuda_moments,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the error of the last node that failed; its code is QDQ_OK when none did. */
const struct qdq_error *
qdqi_cuda_moments_fault(const struct qdqi_cuda_moments *cuda_moments);

void qdqi_moments_cuda_init(struct qdqi_op *op, const OrtApi *api,
                            struct qdqi_cuda_moments *cuda_moments);

#endif
