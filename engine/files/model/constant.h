/* SPDX-License-Identifier: Apache-2.0 */
/* Reads constant tensors in place: in the mapped file or in the skeleton. */
#ifndef QDQI_FILES_MODEL_CONSTANT_H
#define QDQI_FILES_MODEL_CONSTANT_H

#include "files/model/model.h"

struct qdqi_constant {
    enum qdqi_dtype dtype;
    size_t rank;
    const int64_t *dims;
    size_t n;             /* number of elements */
    const uint8_t *bytes; /* little-endian, possibly unaligned: copy with memcpy */
    /* as in struct qdqi_view; NULL: all n elements in C order */
    const int64_t *strides;
};

/* Returns whether one stored element stands for all elements. */
static inline bool
qdqi_constant_is_fill(const struct qdqi_constant *c)
{
    return c->strides && c->strides[0] == 0;
}

/*
 * Reads the elements of a fixed tensor: of float32, float64 or float16 in any stored
 * form, of other types only from raw_data. UNSUPPORTED for other forms and for a tensor
 * without a view, INVALID_MODEL when data and shape disagree.
 */
enum qdq_code qdqi_constant_read(const struct qdq_model *model,
                                 const struct qdqi_tensor *tensor,
                                 struct qdqi_constant *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Does the same for a tensor as the file stores it. `name` is used in the error. */
enum qdq_code qdqi_stored_read(const struct qdq_model *model,
                               const Onnx__TensorProto *proto, const char *name,
                               struct qdqi_constant *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Reads the integers of a small fixed int64 tensor in any form, for axes and shapes.
 * Returns false when the tensor is not of that kind, has more than `max` elements, or
 * cannot be read.
 */
bool qdqi_constant_ints(const struct qdq_model *model, const struct qdqi_tensor *tensor,
                        int64_t *ret, size_t max, size_t *ret_n);

/* Returns the index of the bulk that holds the tensor's data; -1 when there is none. */
int64_t qdqi_tensor_bulk(const Onnx__TensorProto *proto, size_t n_bulks);

/* Makes a bulk hold the tensor's data: the reference to it stands behind the other unknown
   fields, in a list in the arena. Returns false when out of memory. */
bool qdqi_tensor_refer(struct qdqi_arena *arena, Onnx__TensorProto *proto,
                       size_t index);

/* Computes the number of elements of a shape. Returns false when a size is negative
   or the product overflows int64. */
bool qdqi_count_elements(const int64_t *dims, size_t rank, size_t *ret);

/* Makes a tensor that belongs to the engine; the caller sets its data. Returns NULL
   when out of memory. */
Onnx__TensorProto *qdqi_constant_new(struct qdqi_arena *arena, enum qdqi_dtype dtype,
                                     size_t rank, int64_t n);

/*
 * Returns the tensor that a Constant node holds in any of its numeric forms ("value",
 * "value_float", …); NULL when the node has no form that is supported, or when the
 * arena is exhausted.
 */
const Onnx__TensorProto *qdqi_constant_value(struct qdqi_arena *arena,
                                             const Onnx__NodeProto *node);

/* Returns whether a caller of the model may pass other elements than the file holds. */
bool qdqi_constant_is_overridable(const struct qdq_model *model,
                                  const struct qdqi_tensor *tensor);

#endif
