/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacks a gzip file front to back, also one of several members in a row, and holds
 * what comes out against the checksums in it. (libarchive's own reader does not.)
 * Reads by pread, so the descriptor's position is not moved.
 */
#ifndef QDQI_DATA_GUNZIP_H
#define QDQI_DATA_GUNZIP_H

#include "qdq/error.h"

struct qdqi_gunzip;

/*
 * The descriptor is borrowed. More than `most` unpacked bytes are LIMIT_EXCEEDED: a
 * file of this kind may unpack to a thousand times its size.
 */
enum qdq_code qdqi_gunzip_open(int fd, uint64_t most, struct qdqi_gunzip **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Up to `size` (> 0) bytes; 0 at the end. INVALID_DATASET names the byte of the file. */
enum qdq_code qdqi_gunzip_read(struct qdqi_gunzip *gunzip, void *to, size_t size,
                               size_t *ret_got, struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_gunzip_close(struct qdqi_gunzip **gunzip);

/* LIMIT_EXCEEDED, as the reader has it. */
enum qdq_code qdqi_gunzip_limit(uint64_t most, struct qdq_error *err);

#endif
