/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a regular file at an offset, whatever the position of its descriptor. */
#ifndef QDQI_FILE_H
#define QDQI_FILE_H

#include <stddef.h>
#include <stdint.h>

/* 0 or an errno; *ret_got is less than `size` only at the end of the file. */
int qdqi_file_read(int fd, uint64_t offset, void *to, size_t size, size_t *ret_got);

#endif
