/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks the pages of a Parquet file: not packed, Snappy, gzip and Zstandard. */
#ifndef QDQI_FILES_DATA_PARQUET_CODEC_H
#define QDQI_FILES_DATA_PARQUET_CODEC_H

#include <stddef.h>
#include <stdint.h>

enum { QDQI_CODEC_NONE = 0 };

/* Returns the name of a codec that is not read; NULL for one that is. */
const char *qdqi_codec_refused(int codec);

/* Unpacks `packed` bytes into exactly `size`. Returns NULL, or what is wrong. */
const char *qdqi_codec_unpack(int codec, const unsigned char *from, size_t packed,
                              unsigned char *to, size_t size);

/* Returns the checksum that pages have, CRC-32. */
uint32_t qdqi_codec_crc(const unsigned char *from, size_t size);

#endif
