/* SPDX-License-Identifier: Apache-2.0 */
/* Reading constant tensors where they lie: in the mapped file or in the skeleton. */
#ifndef QDQI_CONSTANT_H
#define QDQI_CONSTANT_H

#include "model/model.h"

struct qdqi_constant {
    enum qdqi_dtype dtype;
    size_t rank;
    const int64_t *dims;
    size_t n;             /* elements */
    const uint8_t *bytes; /* little-endian, C order, perhaps unaligned: use memcpy */
};

/*
 * The elements of a float32, float64 or float16 tensor, or of any other type that is
 * kept as raw_data. UNSUPPORTED for other forms, INVALID_MODEL when data and shape
 * disagree; `name` stands in the error.
 */
enum qdq_code qdqi_constant_read(const struct qdq_model *model,
                                 const Onnx__TensorProto *proto, const char *name,
                                 struct qdqi_constant *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * The integers of a small int64 tensor in any form, for axes and shapes. False when it
 * is none or has more than `max`.
 */
bool qdqi_constant_ints(const struct qdq_model *model, const Onnx__TensorProto *proto,
                        int64_t *ret, size_t max, size_t *ret_n);

#endif
