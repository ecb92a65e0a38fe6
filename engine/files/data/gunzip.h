/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacks a gzip file from front to back, also one of several members in a row, and
 * checks the checksums in it (libarchive's own reader does not). Reads with pread(), so
 * the descriptor's position does not move.
 */
#ifndef QDQI_FILES_DATA_GUNZIP_H
#define QDQI_FILES_DATA_GUNZIP_H

#include "qdq/error.h"

struct qdqi_gunzip;

/* Opens the file; the descriptor is borrowed. More than `most` unpacked bytes are
   LIMIT_EXCEEDED: a gzip file can unpack to a thousand times its size. */
enum qdq_code qdqi_gunzip_open(int fd, uint64_t most, struct qdqi_gunzip **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Reads up to `size` (> 0) bytes; *ret_got is 0 at the end. INVALID_DATASET names
   the byte of the file. */
enum qdq_code qdqi_gunzip_read(struct qdqi_gunzip *gunzip, void *to, size_t size,
                               size_t *ret_got, struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_gunzip_close(struct qdqi_gunzip **gunzip);

/* Sets the LIMIT_EXCEEDED that qdqi_gunzip_read() sets. */
enum qdq_code qdqi_gunzip_limit(uint64_t most, struct qdq_error *err);

#endif
