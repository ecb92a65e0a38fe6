/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/parquet/codec.h"

#include <limits.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

typedef const char *(*unpack_fn)(const unsigned char *from, size_t packed,
                                 unsigned char *to, size_t size);

static const char *
unpack_snappy(const unsigned char *from, size_t packed, unsigned char *to, size_t size)
{
    size_t found = size;
    if (snappy_uncompressed_length((const char *)from, packed, &found) != SNAPPY_OK)
        return "the Snappy data is damaged, or libsnappy cannot be loaded";
    if (found != size)
        return "the Snappy data unpacks to another size than the page has";
    return snappy_uncompress((const char *)from, packed, (char *)to, &found) ==
                       SNAPPY_OK &&
                   found == size
               ? NULL
               : "the Snappy data is damaged";
}

static const char *
unpack_gzip(const unsigned char *from, size_t packed, unsigned char *to, size_t size)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)from,
                  .avail_in = (unsigned)packed,
                  .next_out = to,
                  .avail_out = (unsigned)size};
    if (packed > UINT_MAX || size > UINT_MAX)
        return "it is too large";
    /* 32: the format gzip or zlib, whichever is there */
    if (inflateInit2(&z, 32 + MAX_WBITS) != Z_OK)
        return "there is no memory to unpack it";
    const int rc = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    return rc == Z_STREAM_END && z.avail_out == 0
               ? NULL
               : "the gzip data is damaged, or of another size than the page has";
}

static const char *
unpack_zstd(const unsigned char *from, size_t packed, unsigned char *to, size_t size)
{
    const size_t found = ZSTD_decompress(to, size, from, packed);
    return !ZSTD_isError(found) && found == size
               ? NULL
               : "the Zstandard data is damaged, of another size than the page has, or "
                 "libzstd cannot be loaded";
}

static const struct {
    const char *name;
    unpack_fn unpack; /* NULL: is not read */
} codecs[] = {
    {"none", NULL},        {"SNAPPY", unpack_snappy}, {"GZIP", unpack_gzip},
    {"LZO", NULL},         {"BROTLI", NULL},          {"LZ4", NULL},
    {"ZSTD", unpack_zstd}, {"LZ4_RAW", NULL},
};

enum { N_CODECS = sizeof codecs / sizeof *codecs };

const char *
qdqi_codec_refused(int codec)
{
    if (codec < 0 || codec >= N_CODECS)
        return "an unknown codec";
    return codec == QDQI_CODEC_NONE || codecs[codec].unpack ? NULL : codecs[codec].name;
}

const char *
qdqi_codec_unpack(int codec, const unsigned char *from, size_t packed,
                  unsigned char *to, size_t size)
{
    if (size == 0) /* a page of nulls alone may hold no bytes at all */
        return NULL;
    return codecs[codec].unpack(from, packed, to, size);
}

uint32_t
qdqi_codec_crc(const unsigned char *from, size_t size)
{
    return (uint32_t)crc32(0, from, (unsigned)size);
}
