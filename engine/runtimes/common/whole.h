/* SPDX-License-Identifier: Apache-2.0 */
/* A model as the bytes of one file, for a runtime that reads no other files. */
#ifndef QDQI_RUNTIMES_COMMON_WHOLE_H
#define QDQI_RUNTIMES_COMMON_WHOLE_H

#include "files/model/model.h"

struct qdqi_whole {
    const void *data; /* borrowed from the model, or from `copy` */
    size_t size;
    struct qdqi_mapped copy;
    int fd; /* of the copy; -1: there is none */
};

/* A model of several files becomes a copy with all weights inside, in a temporary file.
   UNSUPPORTED when that would be larger than 2 GB; IO, NO_MEMORY. */
enum qdq_code qdqi_whole_open(const struct qdq_model *model, struct qdqi_whole *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_whole_close(struct qdqi_whole *whole);

#endif
