/* SPDX-License-Identifier: Apache-2.0 */
/* Reading constant tensors where they lie: in the mapped file or in the skeleton. */
#ifndef QDQI_MODEL_CONSTANT_H
#define QDQI_MODEL_CONSTANT_H

#include "model/model.h"

struct qdqi_constant {
    enum qdqi_dtype dtype;
    size_t rank;
    const int64_t *dims;
    size_t n;               /* elements */
    const uint8_t *bytes;   /* little-endian, perhaps unaligned: use memcpy */
    const int64_t *strides; /* struct qdqi_view's; NULL: all n in C order */
};

/* Whether one stored element stands for all. */
static inline bool
qdqi_constant_is_fill(const struct qdqi_constant *c)
{
    return c->strides && c->strides[0] == 0;
}

/*
 * The elements of a fixed tensor: those of a float32, float64 or float16 one, or of any
 * other type that is kept as raw_data. UNSUPPORTED for other forms and for what has no
 * view, INVALID_MODEL when data and shape disagree.
 */
enum qdq_code qdqi_constant_read(const struct qdq_model *model,
                                 const struct qdqi_tensor *tensor,
                                 struct qdqi_constant *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* The same for a tensor as the file stores it; `name` stands in the error. */
enum qdq_code qdqi_stored_read(const struct qdq_model *model,
                               const Onnx__TensorProto *proto, const char *name,
                               struct qdqi_constant *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * The integers of a small fixed int64 tensor in any form, for axes and shapes. False
 * when it is none, has more than `max`, or cannot be read.
 */
bool qdqi_constant_ints(const struct qdq_model *model, const struct qdqi_tensor *tensor,
                        int64_t *ret, size_t max, size_t *ret_n);

/* Number of elements of a shape; false when a size is negative or int64 overflows. */
bool qdqi_count_elements(const int64_t *dims, size_t rank, size_t *ret);

/* A tensor of the engine's own, its data still to be set; NULL when out of memory. */
Onnx__TensorProto *qdqi_constant_new(struct qdqi_arena *arena, enum qdqi_dtype dtype,
                                     size_t rank, int64_t n);

/*
 * The tensor that a Constant node holds in any of its numeric forms ("value",
 * "value_float", …). NULL when it has none that is read, or when the arena is
 * exhausted.
 */
const Onnx__TensorProto *qdqi_constant_value(struct qdqi_arena *arena,
                                             const Onnx__NodeProto *node);

/* Whether a caller of the model may send other elements than the file holds. */
bool qdqi_constant_is_overridable(const struct qdq_model *model,
                                  const struct qdqi_tensor *tensor);

#endif
