/* SPDX-License-Identifier: Apache-2.0 */
/* Our operators on the host, and what those on a CUDA device have in common with them. This
   header is only for engine/run/. A node's slot is an index into the objects that an operator
   is initialized with, which are borrowed. */
#ifndef QDQI_RUN_OPERATORS_OPERATORS_H
#define QDQI_RUN_OPERATORS_OPERATORS_H

#include "numbers/arithmetic/fake.h"
#include "numbers/range/patches.h"
#include "numbers/range/peaks.h"
#include "numbers/range/observer.h"
#include "run/operators/compare.h"
#include "run/operators/op.h"

/* --- compare.c ------------------------------------------------------------ */

void qdqi_compare_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_comparisons *comparisons);
/* Reads the two input tensors of a Compare node. Sets *ret to whether they can be
   compared; if they cannot, marks the comparison as `differs`. */
OrtStatusPtr qdqi_compared_inputs(const struct qdqi_kernel *kernel,
                                  OrtKernelContext *context,
                                  struct qdqi_comparison *row, struct qdqi_op_tensor *f,
                                  struct qdqi_op_tensor *q, bool *ret);
/* Adds n elements of two tensors, each of float32 or float16, to the sums. */
void qdqi_compare_add(struct qdqi_noise *sums, enum qdqi_dtype f_dtype, const void *f,
                      enum qdqi_dtype q_dtype, const void *q, size_t n);
/* Initializes the operator Pass, whose output is its input. The elements must be
   whole bytes. Its only slot is 0. */
void qdqi_pass_init(struct qdqi_op *op, const OrtApi *api);

/* --- fake.c ---------------------------------------------------------------- */

void qdqi_fake_init(struct qdqi_op *op, const OrtApi *api,
                    const struct qdqi_fakes *fakes);
/* Initializes the same operator under the name with which it works in blocks
   (transform/rewrite/blocked.h). */
void qdqi_fake_blocked_init(struct qdqi_op *op, const OrtApi *api,
                            const struct qdqi_fakes *fakes);
/* Reads the input tensor of a FakeQuant node and returns the memory for its output. */
OrtStatusPtr qdqi_faked_tensors(const struct qdqi_kernel *kernel,
                                OrtKernelContext *context, const struct qdqi_fake *fake,
                                struct qdqi_op_tensor *ret, void **ret_to);

/* --- moments.c: Moment and Peak --------------------------------------------- */

enum { QDQI_MOMENTS_RANK = 64 }; /* the most of an input */

/* Describes the input of a Moment or Peak node. `dims` has room for QDQI_MOMENTS_RANK. */
OrtStatusPtr qdqi_moments_input(const struct qdqi_kernel *k, OrtKernelContext *context,
                                int64_t *dims, struct qdqi_patched *ret);
/* Makes the status for an input that could not be taken in. */
OrtStatusPtr qdqi_moments_misfit(const struct qdqi_kernel *k);

void qdqi_moments_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_moments *moments);
void qdqi_peaks_init(struct qdqi_op *op, const OrtApi *api,
                     struct qdqi_all_peaks *peaks);

/* --- observe.c --------------------------------------------------------------- */

void qdqi_observe_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_observers *observers);
/* Initializes the operator that reads tensors which may be in blocks
   (transform/rewrite/blocked.h). */
void qdqi_observe_blocked_init(struct qdqi_op *op, const OrtApi *api,
                               struct qdqi_observers *observers);
/* Reads the input tensor of an Observe node. Fails if its type is not the
   observer's; otherwise *ret_dtype is that type. */
OrtStatusPtr qdqi_observed_input(const struct qdqi_kernel *kernel,
                                 OrtKernelContext *context,
                                 const struct qdqi_observers *observers,
                                 struct qdqi_op_tensor *ret,
                                 enum qdqi_dtype *ret_dtype);

#endif
