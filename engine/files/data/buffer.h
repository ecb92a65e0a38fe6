/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one input of a run. A large buffer is a mapped file without a name, so
 * that the system can move a sample of a gigabyte out of memory and leave the memory to
 * the run's own tensors. Where no such file can be made, the buffer is ordinary memory.
 */
#ifndef QDQI_FILES_DATA_BUFFER_H
#define QDQI_FILES_DATA_BUFFER_H

#include "qdq/error.h"

enum { QDQI_BUFFER_LARGE = 256 << 20 }; /* bytes */

struct qdqi_buffer {
    unsigned char *data;
    size_t size;
    int fd; /* descriptor of the file; -1: the buffer is ordinary memory */
};

/* Makes a buffer of `size` bytes, > 0. It is a file when it has at least `large`
   bytes. */
enum qdq_code qdqi_buffer_new(size_t size, size_t large, struct qdqi_buffer *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;
/* Copies bytes into the buffer. For a file this is faster than writing through
   `data`. */
enum qdq_code qdqi_buffer_write(const struct qdqi_buffer *buffer, size_t at,
                                const void *from, size_t size,
                                struct qdq_error *err) QDQ_MUST_CHECK;
/* Accepts a buffer that is all zeros, and one whose making failed. */
void qdqi_buffer_free(struct qdqi_buffer *buffer);

#endif
