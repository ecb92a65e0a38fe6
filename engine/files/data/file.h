/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes regular files by offset, independent of the descriptor's
   position. */
#ifndef QDQI_FILES_DATA_FILE_H
#define QDQI_FILES_DATA_FILE_H

#include "qdq/error.h"

#include <stddef.h>
#include <stdint.h>

/* Returns 0 or an errno. *ret_got is less than `size` only at the end of the file. */
int qdqi_file_read(int fd, uint64_t offset, void *to, size_t size, size_t *ret_got);
/* Does the same for a dataset, and sets IO. */
enum qdq_code qdqi_data_read(int fd, uint64_t offset, void *to, size_t size,
                             size_t *ret_got, struct qdq_error *err) QDQ_MUST_CHECK;
/* Sets that error, from an errno. */
enum qdq_code qdqi_data_failed(int number, struct qdq_error *err);

/* Writes all bytes. Returns 0 or an errno. */
int qdqi_file_write(int fd, uint64_t offset, const void *from, size_t size);
/*
 * Opens an empty file without a name, by the function of qdq_set_open_temporary() or else
 * in the folder that TMPDIR names or in /var/tmp, which is meant for large files. Returns
 * -1 and sets errno on failure.
 */
int qdqi_file_open_temporary(void);
/* Does the same for a file that is read soon after it is written: without that function it
   is in memory. */
int qdqi_file_open_buffer(void);

#endif
