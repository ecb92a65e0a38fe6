/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ONNX model whose weights stay in the mapped file (DESIGN: skeleton).
 *
 * A model is read-only after opening and may be shared by threads. Everything that a
 * getter returns is borrowed and lives as long as the model.
 */
#ifndef QDQ_MODEL_H
#define QDQ_MODEL_H

#include "qdq/error.h"

struct qdq_model;

/* One dimension of a shape: a size, or a symbol (value -1), or unknown (-1, NULL). */
struct qdq_dim {
    int64_t value;
    const char *symbol;
};

/* A graph input or output. dtype is ONNX's name in lower case ("float32", "int64"). */
struct qdq_value {
    const char *name;
    const char *dtype; /* "" when the file does not say */
    bool has_shape;
    size_t rank;
    const struct qdq_dim *dims;
};

struct qdq_op_count {
    const char *op; /* "Conv"; with its domain where that is not ONNX's: "com.x:Foo" */
    size_t count;
};

struct qdq_model_info {
    const char *name;     /* the graph's name, "" when unnamed */
    const char *producer; /* "" when the file does not say */
    int64_t ir_version;
    int64_t opset; /* version of ONNX's own operator set; 0 when not imported */
    uint64_t size; /* bytes of the file */
    size_t n_nodes, n_initializers, n_inputs, n_outputs, n_ops;
    const struct qdq_value *inputs; /* without initializers that older files list too */
    const struct qdq_value *outputs;
    const struct qdq_op_count *ops; /* by name */
};

/*
 * Opens the model in the regular file `fd` from its first byte; the descriptor stays
 * the caller's and may be closed afterwards. The file must not change while the model
 * is open.
 * INVALID_MODEL (with the byte offset where known), EXTERNAL_MISSING, LIMIT_EXCEEDED,
 * UNSUPPORTED, NO_MEMORY, IO.
 */
QDQ_API enum qdq_code qdq_model_open(int fd, struct qdq_model **ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_model_free(struct qdq_model **model);

QDQ_API const struct qdq_model_info *qdq_model_info(const struct qdq_model *model);

#endif
