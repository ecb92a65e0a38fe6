/* SPDX-License-Identifier: Apache-2.0 */
/* Builds .npy and .npz files byte by byte, so that tests of the reader do not depend
   on a writer, and can make any byte wrong. */
#ifndef TESTS_UNIT_DATA_FILES_H
#define TESTS_UNIT_DATA_FILES_H

#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

struct bytes {
    unsigned char *p;
    size_t n, capacity;
};

static inline void
put(struct bytes *b, const void *from, size_t n)
{
    if (b->n + n + 1 > b->capacity) {
        b->capacity = 2 * (b->n + n + 1);
        b->p = realloc(b->p, b->capacity);
        ck_assert_ptr_nonnull(b->p);
    }
    if (n > 0)
        memcpy(b->p + b->n, from, n);
    b->n += n;
}

/* Appends a number in `size` bytes, little-endian. */
static inline void
put_number(struct bytes *b, uint64_t value, int size)
{
    for (int i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(i < 8 ? value >> (8 * i) : 0);
        put(b, &byte, 1);
    }
}

/* Returns a descriptor of a file in memory with these bytes, and frees them. */
static inline int
file_of(struct bytes *b)
{
    int fd = memfd_create("dataset", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, b->p, b->n), (ssize_t)b->n);
    free(b->p);
    *b = (struct bytes){0};
    return fd;
}

/* --- .npy ----------------------------------------------------------------- */

/* Makes a .npy file of `version` with this dict literal and these bytes of elements. */
static inline struct bytes
npy(int version, const char *dict, const void *data, size_t size)
{
    struct bytes b = {0};
    unsigned char v[2] = {(unsigned char)version, 0};
    put(&b, "\x93NUMPY", 6);
    put(&b, v, 2);
    put_number(&b, strlen(dict), version == 1 ? 2 : 4);
    put(&b, dict, strlen(dict));
    put(&b, data, size);
    return b;
}

/* Makes a .npy file with the usual header: descr, C order and the text of the shape. */
static inline struct bytes
npy_c(const char *descr, const char *shape, const void *data, size_t size)
{
    char dict[256];
    snprintf(dict, sizeof dict,
             "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
    return npy(1, dict, data, size);
}

/* --- .npz ----------------------------------------------------------------- */

static inline uint32_t
crc32_of(const unsigned char *p, size_t n)
{
    uint32_t crc = ~0u;
    while (n-- > 0) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

struct zip {
    struct bytes file, directory;
    unsigned members;
};

/* The properties of one member; all zero is a valid, stored one. */
struct zip_how {
    bool deflate;       /* uses stored blocks of deflate (RFC 1951 3.2.4) */
    unsigned flags;     /* general purpose bits: 1 is "encrypted" */
    unsigned method;    /* another method, when not 0 */
    bool bad_crc;       /* the checksum is made wrong */
    int64_t size_error; /* added to the uncompressed size in the directory */
};

static inline struct bytes
deflate_stored(const struct bytes *data)
{
    struct bytes b = {0};
    size_t at = 0;
    do {
        size_t n = data->n - at < 60000 ? data->n - at : 60000;
        put_number(&b, at + n == data->n, 1);
        put_number(&b, n, 2);
        put_number(&b, ~n, 2);
        put(&b, data->p + at, n);
        at += n;
    } while (at < data->n);
    return b;
}

/* Adds a member and frees its data. */
static inline void
zip_add_how(struct zip *z, const char *name, struct bytes data, struct zip_how how)
{
    struct bytes packed = how.deflate ? deflate_stored(&data) : data;
    uint32_t crc = crc32_of(data.p, data.n) ^ (how.bad_crc ? 1 : 0);
    size_t offset = z->file.n;
    unsigned method = how.method ? how.method : how.deflate ? 8 : 0;
    for (int central = 0; central < 2; central++) {
        struct bytes *b = central ? &z->directory : &z->file;
        put(b, central ? "PK\1\2" : "PK\3\4", 4);
        if (central)
            put_number(b, 20, 2);
        put_number(b, 20, 2);
        put_number(b, how.flags, 2);
        put_number(b, method, 2);
        put_number(b, 0, 4); /* time and date */
        put_number(b, crc, 4);
        put_number(b, packed.n, 4);
        put_number(b, data.n + (uint64_t)how.size_error, 4);
        put_number(b, strlen(name), 2);
        put_number(b, 0, 2); /* extra field */
        if (central) {
            put_number(b, 0, 10);
            put_number(b, offset, 4);
        }
        put(b, name, strlen(name));
    }
    put(&z->file, packed.p, packed.n);
    z->members++;
    if (how.deflate)
        free(packed.p);
    free(data.p);
}

static inline void
zip_add(struct zip *z, const char *name, struct bytes data)
{
    zip_add_how(z, name, data, (struct zip_how){0});
}

/* Appends the end record, which claims `members` members, and returns the file. */
static inline struct bytes
zip_end(struct zip *z, unsigned members)
{
    struct bytes b = z->file;
    size_t offset = b.n;
    put(&b, z->directory.p, z->directory.n);
    put(&b, "PK\5\6\0\0\0\0", 8);
    put_number(&b, members, 2);
    put_number(&b, members, 2);
    put_number(&b, z->directory.n, 4);
    put_number(&b, offset, 4);
    put_number(&b, 0, 2);
    free(z->directory.p);
    *z = (struct zip){0};
    return b;
}

static inline int
zip_file_of(struct zip *z)
{
    struct bytes b = zip_end(z, z->members);
    return file_of(&b);
}

#endif
