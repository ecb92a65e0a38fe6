/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a model's messages back into bytes; bulks are copied from the source's
   files. */
#ifndef QDQI_FILES_MODEL_WRITE_H
#define QDQI_FILES_MODEL_WRITE_H

#include "ground/base/tasks.h"
#include "files/model/model.h"
#include "qdq/spec.h"

/* An edited copy of a model, and the bulks that its tensors refer to: first the
   source's, then those that the edit added. */
struct qdqi_edited {
    const Onnx__ModelProto *proto;
    struct qdqi_bulks bulks;
    /*
     * For each node of the main graph: the index of the node of the source that it is
     * or was copied from; SIZE_MAX for a node that the edit added. NULL when no reader
     * needs it.
     */
    const size_t *origins;
};

/* Writes an edited copy of `source` to `fd` from its beginning and truncates the
   file behind it. *ret_size is the size of the new file in bytes. IO, NO_MEMORY. */
enum qdq_code qdqi_model_write(const struct qdq_model *source,
                               const struct qdqi_edited *edited, int fd,
                               uint64_t *ret_size,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* A value of the metadata that becomes known while the model is written. */
struct qdqi_pending_id {
    const char *key, *placeholder; /* as the edited model has them */
    /* waits for the value, as long as the placeholder; NULL: there is none */
    const char *(*wait)(void *arg);
    void *arg;
};

/* The destination of a result, and its form. */
struct qdqi_destination {
    int fd;
    int data;         /* a second file, for external data; -1: none may be written */
    const char *name; /* location of the second file as the model names it */
    enum qdq_external_data external;
    const struct qdqi_tasks *tasks;           /* generate bulks; NULL: this thread */
    const struct qdqi_pending_id *pending_id; /* NULL: all metadata is known */
};

struct qdqi_written {
    uint64_t model, data; /* in bytes; data is 0 when nothing lies outside */
};

/*
 * Writes an edited copy of `source` into one file or two. INVALID_SPEC and UNSUPPORTED
 * where the model's size and the spec contradict each other; IO, NO_MEMORY.
 */
enum qdq_code qdqi_model_write_result(const struct qdq_model *source,
                                      const struct qdqi_edited *edited,
                                      const struct qdqi_destination *destination,
                                      struct qdqi_written *ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

/* A model to run: messages whose bulks lie in the files of open models. */
struct qdqi_runnable {
    const Onnx__ModelProto *proto;
    struct qdqi_bulks bulks;         /* none is generated */
    const struct qdqi_mapped *files; /* indexed by qdqi_bulk.file */
    size_t n_files;
    /* by file: the name by which the runtime finds it in a folder; NULL: it is given the bytes under
       qdqi_mapped_name() */
    const char *const *locations;
};

/*
 * Makes the bytes that ONNX Runtime loads. Initializers of the main graph are external
 * data of the mapped files (qdqi_mapped_name()), so weights are not copied. The caller
 * frees ret->data with free().
 */
enum qdq_code qdqi_model_to_memory(const struct qdqi_runnable *model,
                                   struct qdqi_bytes *ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
