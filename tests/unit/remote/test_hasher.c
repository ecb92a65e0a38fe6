/* SPDX-License-Identifier: Apache-2.0 */
/* Digests that another thread computes while a file grows. */
#include "config.h"
#include "base/hasher.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE ((size_t)5 << 20)

static unsigned char *bytes;
static int fd;

static void
setup(void)
{
    char path[] = "/tmp/hasher-XXXXXX";
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    unlink(path);
    bytes = malloc(SIZE);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 12));
}

static void
teardown(void)
{
    free(bytes);
    close(fd);
}

static void
append(size_t from, size_t to)
{
    ck_assert_int_eq(pwrite(fd, bytes + from, to - from, (off_t)from), to - from);
}

UNIT_TEST(a_file_that_grows)
{
    char wanted[DIGEST_SIZE], found[DIGEST_SIZE];
    struct hasher *hasher = hasher_start(fd, 0);
    ck_assert_ptr_nonnull(hasher);
    for (size_t at = 0; at < SIZE; at += 99999) {
        size_t end = at + 99999 < SIZE ? at + 99999 : SIZE;
        append(at, end);
        hasher_allow(hasher, (int64_t)end);
    }
    ck_assert(digest_of(bytes, SIZE, wanted));
    ck_assert(hasher_finish(&hasher, (int64_t)SIZE, found));
    ck_assert_str_eq(found, wanted);
    ck_assert_ptr_null(hasher);
}

static const struct {
    size_t from, to;
} parts[] = {{0, 0},       {0, 1},         {0, 1000},       {1 << 20, SIZE},
             {3, 2 << 20}, {12345, 12345}, {SIZE - 1, SIZE}};

UNIT_ROWS(a_part, parts)
{
    char wanted[DIGEST_SIZE], found[DIGEST_SIZE];
    append(0, SIZE);
    struct hasher *hasher = hasher_start(fd, (int64_t)parts[_i].from);
    ck_assert_ptr_nonnull(hasher);
    hasher_allow(hasher, (int64_t)parts[_i].to);
    ck_assert(digest_of(bytes + parts[_i].from, parts[_i].to - parts[_i].from, wanted));
    ck_assert(hasher_finish(&hasher, (int64_t)parts[_i].to, found));
    ck_assert_str_eq(found, wanted);
}

UNIT_TEST(a_file_that_is_too_short)
{
    char found[DIGEST_SIZE];
    append(0, 2 << 20);
    struct hasher *hasher = hasher_start(fd, 0);
    ck_assert_ptr_nonnull(hasher);
    hasher_allow(hasher, (int64_t)SIZE);
    ck_assert(!hasher_finish(&hasher, (int64_t)SIZE, found));
    ck_assert_ptr_null(hasher);
}

UNIT_TEST(given_up)
{
    append(0, SIZE);
    struct hasher *hasher = hasher_start(fd, 0);
    ck_assert_ptr_nonnull(hasher);
    hasher_allow(hasher, (int64_t)SIZE);
    hasher_free(&hasher);
    ck_assert_ptr_null(hasher);
    hasher_free(&hasher);
    hasher = hasher_start(fd, 0); /* which still waits for its first byte */
    hasher_free(&hasher);
}

UNIT_SUITE("hasher", .setup = setup, .teardown = teardown)
