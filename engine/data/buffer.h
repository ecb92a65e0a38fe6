/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for what a run is fed. A large one is a file without a name that is mapped, so
 * that the system may move a sample of a gigabyte out of memory and the run has what
 * there is for its own tensors. Where no such file can be had it is plain memory.
 */
#ifndef QDQI_DATA_BUFFER_H
#define QDQI_DATA_BUFFER_H

#include "qdq/error.h"

enum { QDQI_BUFFER_LARGE = 256 << 20 }; /* bytes */

struct qdqi_buffer {
    unsigned char *data;
    size_t size;
    int fd; /* of the file, or -1: it is memory */
};

/* Of `size` bytes, > 0; a file from `large` bytes on. */
enum qdq_code qdqi_buffer_make(size_t size, size_t large, struct qdqi_buffer *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Puts bytes where they belong; faster than writing to data where it is a file. */
enum qdq_code qdqi_buffer_put(const struct qdqi_buffer *buffer, size_t at,
                              const void *from, size_t size,
                              struct qdq_error *err) QDQ_MUST_CHECK;
/* Safe for a buffer that is all zeros and for one that was never made. */
void qdqi_buffer_free(struct qdqi_buffer *buffer);

#endif
