/* SPDX-License-Identifier: Apache-2.0 */
/* A file that tensors are read from where it is mapped. */
#ifndef QDQI_MODEL_MAPPED_H
#define QDQI_MODEL_MAPPED_H

#include "qdq/error.h"

struct qdqi_mapped {
    const uint8_t *map; /* the whole file; NULL: empty, or not mapped */
    size_t size;
    int fd; /* its own duplicate, for copying file to file; -1: not mapped */
};

/* Maps a regular file of any size; `what` it is stands in errors. On failure there is
   nothing to be unmapped. INVALID_MODEL for what is no regular file, IO. */
enum qdq_code qdqi_map_file(int fd, const char *what, struct qdqi_mapped *ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_unmap(struct qdqi_mapped *file);

#endif
