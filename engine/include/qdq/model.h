/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ONNX model whose weights stay in mapped files: in the model's own file and in
 * those of its external data.
 *
 * A model is read-only after opening and may be shared by threads. Getters return
 * borrowed pointers that live as long as the model.
 */
#ifndef QDQ_MODEL_H
#define QDQ_MODEL_H

#include "qdq/error.h"

struct qdq_model;

/* One dimension of a shape: a size, a symbol (value -1), or unknown (-1 and NULL). */
struct qdq_dim {
    int64_t value;
    const char *symbol;
};

/* A graph input or output. dtype is ONNX's type name in lower case ("float32",
   "int64"). */
struct qdq_value {
    const char *name;
    const char *dtype; /* "" when the file declares none */
    bool has_shape;
    size_t rank;
    const struct qdq_dim *dims;
};

struct qdq_op_count {
    const char *op; /* "Conv"; for another domain than ONNX's "com.x:Foo" */
    size_t count;
};

struct qdq_model_info {
    const char *name;     /* the graph's name, "" when unnamed */
    const char *producer; /* "" when the file names none */
    int64_t ir_version;
    int64_t opset; /* version of ONNX's own operator set; 0 when not imported */
    uint64_t size; /* bytes of the file */
    uint64_t external_size; /* bytes of the external data files that it names */
    size_t n_nodes, n_initializers, n_inputs, n_outputs, n_ops;
    /* without the initializers that older files list as inputs */
    const struct qdq_value *inputs;
    const struct qdq_value *outputs;
    const struct qdq_op_count *ops; /* sorted by name */
};

/* A file that may hold external data of a model. */
struct qdq_external {
    const char *path; /* name that the sender gave it; never opened */
    int fd; /* a regular file, read from its first byte; the caller keeps it */
};

/*
 * Opens the model in the regular file `fd`, from its first byte. The caller keeps all
 * descriptors and may close them afterwards. The files must not change while the model
 * is open.
 *
 * A location in the model is served by the file with that path ("./a//b" equals "a/b");
 * otherwise by the only file with its base name, if no other location means that file.
 * Files that no tensor names are ignored; the others are mapped and read on demand.
 *
 * INVALID_MODEL (with the byte offset where known; also for a location outside the
 * model's folder, and for data beyond the end of its file), EXTERNAL_MISSING,
 * EXTERNAL_AMBIGUOUS, LIMIT_EXCEEDED, UNSUPPORTED, NO_MEMORY, IO.
 */
QDQ_API enum qdq_code qdq_model_open_files(int fd, const struct qdq_external *files,
                                           size_t n, struct qdq_model **ret,
                                           struct qdq_error *err) QDQ_MUST_CHECK;
/* Does the same without external files. */
QDQ_API enum qdq_code qdq_model_open(int fd, struct qdq_model **ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_model_free(struct qdq_model **model);

/* Returns the location that file `i` of those passed serves, as the model spells it
   first; NULL when it serves none. */
QDQ_API const char *qdq_model_location(const struct qdq_model *model, size_t i);

/* The locations of a model's external data, each once, in the order of the file. */
struct qdq_locations {
    size_t n;
    const char *const *names;
};

/*
 * Lists the locations without needing the files. The caller frees *ret with
 * qdq_locations_free(). Each location lies inside the model's folder: it is not
 * absolute and has no "..", backslash or NUL. The codes of qdq_model_open_files();
 * shapes, sizes and the graph are not checked.
 */
QDQ_API enum qdq_code qdq_model_locations(int fd, struct qdq_locations **ret,
                                          struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_locations_free(struct qdq_locations **locations);

QDQ_API const struct qdq_model_info *qdq_model_info(const struct qdq_model *model);

#endif
