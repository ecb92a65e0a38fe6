/* SPDX-License-Identifier: Apache-2.0 */
/* A memory-mapped file that tensors are read from. */
#ifndef QDQI_FILES_MODEL_MAPPED_H
#define QDQI_FILES_MODEL_MAPPED_H

#include "qdq/error.h"

struct qdqi_mapped {
    const uint8_t *map; /* the whole file; NULL: the file is empty or not mapped */
    size_t size;
    /* a duplicate that this struct owns, for copying from file to file; -1: not
       mapped */
    int fd;
};

/* Maps a regular file of any size; `what` names the file in errors. On failure
   nothing stays mapped. INVALID_MODEL when it is not a regular file, IO. */
enum qdq_code qdqi_map_file(int fd, const char *what, struct qdqi_mapped *ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_unmap(struct qdqi_mapped *file);

/* Gives the memory of the whole pages of a piece back, if it lies in the file's mapping: the next
   one that reads them gets them from the file. */
void qdqi_mapped_forget(const struct qdqi_mapped *file, const uint8_t *piece,
                        size_t size);

#endif
