/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ONNX model whose weights stay in the mapped files: the model's own, and those of its
 * external data.
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
    uint64_t external_size; /* bytes of the files of external data that it names */
    size_t n_nodes, n_initializers, n_inputs, n_outputs, n_ops;
    const struct qdq_value *inputs; /* without initializers that older files list too */
    const struct qdq_value *outputs;
    const struct qdq_op_count *ops; /* by name */
};

/* A file that may hold external data of a model. */
struct qdq_external {
    const char *path; /* as its sender names it; never opened */
    int fd;           /* a regular file, read from its first byte; stays the caller's */
};

/*
 * Opens the model in the regular file `fd` from its first byte; descriptors stay the
 * caller's and may be closed afterwards. The files must not change while the model is
 * open.
 *
 * A location that the model names is the file of that path ("./a//b" is "a/b"), else the
 * only file with its base name that no other location means. A file that no tensor names
 * is left alone; of the others nothing is read before it is asked for.
 *
 * INVALID_MODEL (with the byte offset where known; also a location that leads out of the
 * model's folder, and data beyond the end of its file), EXTERNAL_MISSING,
 * EXTERNAL_AMBIGUOUS, LIMIT_EXCEEDED, UNSUPPORTED, NO_MEMORY, IO.
 */
QDQ_API enum qdq_code qdq_model_open_files(int fd, const struct qdq_external *files,
                                           size_t n, struct qdq_model **ret,
                                           struct qdq_error *err) QDQ_MUST_CHECK;
/* The same with no files. */
QDQ_API enum qdq_code qdq_model_open(int fd, struct qdq_model **ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_model_free(struct qdq_model **model);

/* The location that file `i` of those passed serves, as the model writes it (the first of
   several spellings); NULL when none does. */
QDQ_API const char *qdq_model_location(const struct qdq_model *model, size_t i);

/* The locations of a model's external data, each once, in the order of the file. */
struct qdq_locations {
    size_t n;
    const char *const *names;
};

/*
 * Lists them without any of the files; the caller frees *ret with qdq_locations_free().
 * Each leads into the model's folder: it is neither absolute nor has it "..", a
 * backslash or a NUL. The codes of qdq_model_open_files(), but shapes, sizes and the
 * graph are not looked at.
 */
QDQ_API enum qdq_code qdq_model_locations(int fd, struct qdq_locations **ret,
                                          struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_locations_free(struct qdq_locations **locations);

QDQ_API const struct qdq_model_info *qdq_model_info(const struct qdq_model *model);

#endif
