/* SPDX-License-Identifier: Apache-2.0 */
/* Regular files by offset, whatever the position of their descriptors. */
#ifndef QDQI_DATA_FILE_H
#define QDQI_DATA_FILE_H

#include <stddef.h>
#include <stdint.h>

/* 0 or an errno; *ret_got is less than `size` only at the end of the file. */
int qdqi_file_read(int fd, uint64_t offset, void *to, size_t size, size_t *ret_got);
/* All of it; 0 or an errno. */
int qdqi_file_write(int fd, uint64_t offset, const void *from, size_t size);
/*
 * An empty file without a name, in the folder that TMPDIR names or in /var/tmp, which
 * is meant for what may be large; -1 and errno.
 */
int qdqi_file_scratch(void);

#endif
