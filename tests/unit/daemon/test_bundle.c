/* SPDX-License-Identifier: Apache-2.0 */
/* The headers in a bundle. End-to-end tests unpack bundles with tar itself. */
#include "config.h"
#include "library/bundle.h"
#include "daemon.h"

#define BIG (INT64_C(9) << 30) /* more than a ustar header can say */

static struct api_problem problem;

static int
file_of(const char *name, const char *text, off_t size)
{
    scratch_write(name, text);
    int fd = open(scratch_path(name), O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, size), 0);
    return fd;
}

/* Reads the whole bundle in reads of `step` bytes. */
static char *
read_all(struct bundle *bundle, size_t step)
{
    size_t size = (size_t)bundle_size(bundle), at = 0;
    char *bytes = malloc(size + step);
    for (ssize_t n; (n = bundle_read(bundle, at, bytes + at, step)) != 0;
         at += (size_t)n)
        ck_assert_int_gt(n, 0);
    ck_assert_uint_eq(at, size);
    return bytes;
}

UNIT_TEST(small_files)
{
    struct bundle *bundle;
    struct bundle_file files[] = {{"m.onnx", file_of("m", "model", 5), 5},
                                  {"d/w.bin", file_of("w", "x", 600), 600}};
    ck_assert(bundle_open(files, 2, &bundle, &problem));
    ck_assert_uint_eq(bundle_size(bundle), 512 + 512 + 512 + 1024 + 1024);
    char *bytes = read_all(bundle, 1000), *again = read_all(bundle, 7);
    ck_assert_mem_eq(bytes, again, bundle_size(bundle));
    ck_assert_str_eq(bytes, "m.onnx");
    ck_assert_str_eq(bytes + 124, "00000000005");
    ck_assert_str_eq(bytes + 257, "ustar");
    ck_assert_mem_eq(bytes + 512, "model\0\0", 7);
    ck_assert_str_eq(bytes + 1024, "d/w.bin");
    ck_assert_str_eq(bytes + 1024 + 124, "00000001130");
    ck_assert_int_eq(bytes[1536], 'x');
    ck_assert_int_eq(bundle_read(bundle, bundle_size(bundle), bytes, 9), 0);
    free(bytes);
    free(again);
    bundle_close(&bundle);
    ck_assert_int_eq(fcntl(files[0].fd, F_GETFD), -1);
    ck_assert_int_eq(fcntl(files[1].fd, F_GETFD), -1);
}

/* The size of a file beyond 8 GB is in a pax header of its own. */
UNIT_TEST(large_file)
{
    struct bundle *bundle;
    char bytes[2048], last[4] = "abc";
    int fd = file_of("big", "", BIG);
    ck_assert_int_eq(pwrite(fd, "end", 3, BIG - 3), 3);
    ck_assert(bundle_open(&(struct bundle_file){"big", fd, BIG}, 1, &bundle, &problem));
    ck_assert_uint_eq(bundle_size(bundle), 3 * 512 + BIG + 1024);
    for (size_t at = 0; at < 1536;)
        at += (size_t)bundle_read(bundle, at, bytes + at, 1536 - at);
    ck_assert_int_eq(bytes[156], 'x');
    /* size of the pax records: 19 bytes */
    ck_assert_str_eq(bytes + 124, "00000000023");
    ck_assert_mem_eq(bytes + 512, "19 size=9663676416\n", 19);
    ck_assert_str_eq(bytes + 1024, "big");
    ck_assert_int_eq(bundle_read(bundle, 3 * 512 + BIG - 3, last, 3), 3);
    ck_assert_str_eq(last, "end");
    bundle_close(&bundle);
}

static const char *const long_names[] = {
    "0123456789012345678901234567890123456789012345678901234567890123456789"
    "0123456789012345678901234567890", /* 101 characters */
    "0123456789012345678901234567890123456789012345678901234567890123456789"
    /* 100 characters: they fit into the field, but some readers want a NUL behind
       them */
    "012345678901234567890123456789",
    "w\xc3\xb6rter",
};

UNIT_ROWS(names_in_a_header_of_their_own, long_names)
{
    struct bundle *bundle;
    char bytes[1024] = "", wanted[256];
    const char *name = long_names[_i];
    struct bundle_file file = {name, file_of("w", "x", 1), 1};
    ck_assert(bundle_open(&file, 1, &bundle, &problem));
    ck_assert_int_eq(bundle_read(bundle, 0, bytes, 1024), 1024);
    ck_assert_int_eq(bytes[156], 'x');
    size_t len = strlen(name) + strlen(" path=\n");
    snprintf(wanted, sizeof wanted, "%zu path=%s\n", len + (len + 2 < 100 ? 2 : 3),
             name);
    ck_assert_uint_eq(strlen(wanted), len + (len + 2 < 100 ? 2 : 3));
    ck_assert_mem_eq(bytes + 512, wanted, strlen(wanted));
    bundle_close(&bundle);
}

/* A file that has become shorter ends the answer early; it is never filled up. */
UNIT_TEST(cut_file)
{
    struct bundle *bundle;
    char bytes[1024];
    struct bundle_file file = {"w", file_of("w", "x", 10), 600};
    ck_assert(bundle_open(&file, 1, &bundle, &problem));
    ck_assert_int_eq(bundle_read(bundle, 512, bytes, 1024), 10);
    ck_assert_int_lt(bundle_read(bundle, 522, bytes, 1024), 0);
    bundle_close(&bundle);
}

UNIT_SUITE("daemon/bundle", .setup = scratch_make, .teardown = scratch_remove)
