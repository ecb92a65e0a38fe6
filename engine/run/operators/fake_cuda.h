/* SPDX-License-Identifier: Apache-2.0 */
/* FakeQuant on a CUDA device. Scales and chosen numbers are in device memory and are
   uploaded again only when they have changed. This header is only for engine/run/. */
#ifndef QDQI_RUN_OPERATORS_FAKE_CUDA_H
#define QDQI_RUN_OPERATORS_FAKE_CUDA_H

#include "numbers/arithmetic/fake.h"
#include "run/operators/device_memory.h"

struct qdqi_uploaded; /* what one slot needs on the device */

/* The state that the FakeQuant nodes of one session share. */
struct qdqi_cuda_fakes {
    const struct qdqi_fakes *host;
    const struct qdqi_device *dev;
    struct qdqi_uploaded *rows; /* indexed by slot */
    struct qdq_error fault;     /* the error of the last operator that failed */
};

/* Borrows both. Nothing is uploaded yet. NO_MEMORY. */
enum qdq_code qdqi_cuda_fakes_open(const struct qdqi_fakes *fakes,
                                   const struct qdqi_device *dev,
                                   struct qdqi_cuda_fakes **ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_cuda_fakes_close(struct qdqi_cuda_fakes **cuda_fakes);

void qdqi_fake_cuda_init(struct qdqi_op *op, const OrtApi *api,
                         struct qdqi_cuda_fakes *cuda_fakes);

#endif
