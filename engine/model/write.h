/* SPDX-License-Identifier: Apache-2.0 */
/* A model's messages back into bytes; bulks are copied from the source's files. */
#ifndef QDQI_MODEL_WRITE_H
#define QDQI_MODEL_WRITE_H

#include "model/model.h"
#include "qdq/spec.h"

/* An edited copy of a model, and the bulks that its tensors name: the source's, then
   those that the edit made. */
struct qdqi_edited {
    const Onnx__ModelProto *proto;
    struct qdqi_bulks bulks;
    /* By node of the main graph: which node of the source it is, or its copy; SIZE_MAX: one
       that was added. NULL: nobody asks. */
    const size_t *origins;
};

/*
 * Writes an edited copy of `source` to `fd` from its beginning; what the file held
 * before is cut off. *ret_size: bytes of the new file. IO, NO_MEMORY.
 */
enum qdq_code qdqi_model_write(const struct qdq_model *source,
                               const struct qdqi_edited *edited, int fd,
                               uint64_t *ret_size,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Where a result goes, and how. */
struct qdqi_target {
    int fd;
    int data;         /* a second file, or -1: none may be written */
    const char *name; /* of that file, as the model is to say it */
    enum qdq_external_data external;
};

struct qdqi_written {
    uint64_t model, data; /* bytes; no data: nothing lies outside */
};

/* The same in one file or two. INVALID_SPEC, UNSUPPORTED where the size allows no other
   answer; IO, NO_MEMORY. */
enum qdq_code qdqi_model_write_result(const struct qdq_model *source,
                                      const struct qdqi_edited *edited,
                                      const struct qdqi_target *target,
                                      struct qdqi_written *ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

/* A model to be run: messages whose bulks lie in the files of some open models. */
struct qdqi_runnable {
    const Onnx__ModelProto *proto;
    struct qdqi_bulks bulks;         /* none is made */
    const struct qdqi_mapped *files; /* by qdqi_bulk.file */
    size_t n_files;
};

/*
 * The bytes that ONNX Runtime gets: initializers of the main graph are external data of
 * the mapped files (qdqi_mapped_name()), so weights are not copied. The caller frees
 * ret->data with free().
 */
enum qdq_code qdqi_model_to_memory(const struct qdqi_runnable *model,
                                   struct qdqi_bytes *ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
