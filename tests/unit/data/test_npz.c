/* SPDX-License-Identifier: Apache-2.0 */
/* .npz files: member names as keys, refusal of damaged and hostile files, and
   readers side by side. */
#include "config.h"

#include "files/data/dataset.h"
#include "files/data/npz.h"
#include "files/data/reader.h"
#include "data_files.h"

static struct bytes
floats(const char *shape, size_t n)
{
    float data[1024];
    ck_assert_uint_le(n, 1024);
    for (size_t i = 0; i < n; i++)
        data[i] = (float)i;
    return npy_c("<f4", shape, data, n * sizeof *data);
}

static enum qdq_code
open_zip(struct zip *z, struct qdq_dataset **ret, struct qdq_error *err)
{
    int fd = zip_file_of(z);
    enum qdq_code code = qdq_dataset_open(fd, ret, err);
    close(fd);
    return code;
}

UNIT_TEST(names_are_keys)
{
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    /* an entry for a folder, as zip -r makes */
    zip_add(&z, "images/", (struct bytes){0});
    zip_add(&z, "images/left.npy", floats("(2, 3)", 6));
    zip_add(&z, "../../etc/passwd.npy", floats("(2,)", 2));
    zip_add(&z, "/abs:0", floats("(2, 1)", 2));
    zip_add(&z, "a.npy.npy", floats("(2, 1, 1)", 2));
    ck_assert_msg(open_zip(&z, &dataset, &err) == QDQ_OK, "%s", err.text);
    const struct qdq_dataset_info *info = qdq_dataset_info(dataset);
    static const char *const names[] = {"images/left", "../../etc/passwd", "/abs:0",
                                        "a.npy"};
    ck_assert_uint_eq(info->n_arrays, 4);
    ck_assert_int_eq(info->samples, 2);
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(info->arrays[i].name, names[i]);
    ck_assert_str_eq(info->arrays[0].dtype, "float32");
    ck_assert_uint_eq(info->arrays[0].rank, 2);
    ck_assert_int_eq(info->arrays[0].shape[1], 3);
    qdq_dataset_free(&dataset);
}

/* Archives of two members, the second of which has these properties. */
static const struct {
    const char *what, *name, *shape;
    size_t n;
    struct zip_how how;
    enum qdq_code code;
    const char *error;
} seconds[] = {
    {"stored", "b.npy", "(2, 2)", 4, {0}, QDQ_OK, NULL},
    {"deflated", "b.npy", "(2, 2)", 4, {.deflate = true}, QDQ_OK, NULL},
    {"the same name", "a.npy", "(2,)", 2, {0}, QDQ_INVALID_DATASET, "'a': the name is"},
    {"the same key", "a", "(2,)", 2, {0}, QDQ_INVALID_DATASET, "'a': the name is"},
    {"encrypted", "b.npy", "(2,)", 2, {.flags = 1}, QDQ_INVALID_DATASET, "password"},
    {"bzip2", "b.npy", "(2,)", 2, {.method = 12}, QDQ_INVALID_DATASET, "method 12"},
    {"no name", ".npy", "(2,)", 2, {0}, QDQ_INVALID_DATASET, "no name"},
    {"other samples", "b.npy", "(3,)", 3, {0}, QDQ_INVALID_DATASET, "'b': 3 samples"},
    {"scalar", "b.npy", "()", 1, {0}, QDQ_INVALID_DATASET, "'b': a scalar"},
    {"larger in the directory",
     "b.npy",
     "(2,)",
     2,
     {.size_error = 4},
     QDQ_INVALID_DATASET,
     "4 bytes follow"},
    {"smaller in the directory",
     "b.npy",
     "(2,)",
     2,
     {.size_error = -1},
     QDQ_INVALID_DATASET,
     "truncated"},
};

UNIT_ROWS(second_member, seconds)
{
    struct zip z = {0};
    struct qdq_dataset *dataset = NULL;
    struct qdq_error err = {0};
    zip_add(&z, "a.npy", floats("(2,)", 2));
    zip_add_how(&z, seconds[_i].name, floats(seconds[_i].shape, seconds[_i].n),
                seconds[_i].how);
    enum qdq_code code = open_zip(&z, &dataset, &err);
    ck_assert_msg(code == seconds[_i].code, "%s: %s", seconds[_i].what, err.text);
    if (seconds[_i].error)
        ck_assert_msg(strstr(err.text, seconds[_i].error) != NULL, "%s: %s",
                      seconds[_i].what, err.text);
    qdq_dataset_free(&dataset);
}

UNIT_TEST(no_array)
{
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    ck_assert_int_eq(open_zip(&z, &dataset, &err), QDQ_INVALID_DATASET);
    ck_assert_ptr_nonnull(strstr(err.text, "no array"));
    struct bytes text = {0};
    err = (struct qdq_error){0};
    put(&text, "no array at all", 15);
    zip_add(&z, "README", text);
    ck_assert_int_eq(open_zip(&z, &dataset, &err), QDQ_INVALID_DATASET);
    ck_assert_str_eq(err.where, "README");
    ck_assert_int_eq(err.kind, QDQ_AT_INPUT);
}

UNIT_TEST(long_name)
{
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    char name[QDQI_NPZ_MAX_NAME + 8] = {0};
    memset(name, 'n', QDQI_NPZ_MAX_NAME);
    zip_add(&z, name, floats("(2,)", 2));
    ck_assert_int_eq(open_zip(&z, &dataset, &err), QDQ_OK);
    qdq_dataset_free(&dataset);
    name[QDQI_NPZ_MAX_NAME] = 'n';
    zip_add(&z, name, floats("(2,)", 2));
    ck_assert_int_eq(open_zip(&z, &dataset, &err), QDQ_INVALID_DATASET);
}

/* A wrong checksum is an error of the read that reaches the last element. */
UNIT_LOOP(checksum, 2)
{
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdqi_reader *reader;
    struct qdq_error err = {0};
    float data[4];
    zip_add_how(&z, "x.npy", floats("(4,)", 4),
                (struct zip_how){.bad_crc = true, .deflate = _i == 1});
    ck_assert_int_eq(open_zip(&z, &dataset, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_reader_open(dataset, 0, &reader, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_reader_read(reader, data, 12, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_reader_read(reader, data, 4, &err), QDQ_INVALID_DATASET);
    ck_assert_str_eq(err.where, "x");
    qdqi_reader_close(&reader);
    qdq_dataset_free(&dataset);
}

/* Readers of stored and deflated members that read in turns do not disturb each
   other. */
UNIT_TEST(side_by_side)
{
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdqi_reader *reader[3];
    struct qdq_error err = {0};
    zip_add_how(&z, "a.npy", floats("(1000,)", 1000),
                (struct zip_how){.deflate = true});
    zip_add(&z, "b.npy", floats("(1000,)", 1000));
    ck_assert_int_eq(open_zip(&z, &dataset, &err), QDQ_OK);
    for (size_t k = 0; k < 3; k++) /* two readers of the first array */
        ck_assert_int_eq(qdqi_reader_open(dataset, k % 2, &reader[k], &err), QDQ_OK);
    for (size_t i = 0; i < 1000; i++)
        for (size_t k = 0; k < 3; k++) {
            float value;
            ck_assert_int_eq(qdqi_reader_read(reader[k], &value, 4, &err), QDQ_OK);
            ck_assert(value == (float)i);
        }
    for (size_t k = 0; k < 3; k++)
        qdqi_reader_close(&reader[k]);
    qdq_dataset_free(&dataset);
}

/* A flipped byte at any place gives an error or an array, never a crash. */
UNIT_TEST(every_byte)
{
    struct zip z = {0};
    zip_add_how(&z, "a.npy", floats("(8,)", 8), (struct zip_how){.deflate = true});
    zip_add(&z, "b.npy", floats("(8,)", 8));
    struct bytes whole = zip_end(&z, 2);
    int good = 0;
    for (size_t i = 0; i < whole.n; i++) {
        struct bytes copy = {0};
        struct qdq_dataset *dataset = NULL;
        struct qdqi_reader *reader = NULL;
        struct qdq_error err = {0};
        float data[8];
        put(&copy, whole.p, whole.n);
        copy.p[i] ^= 0x10;
        int fd = file_of(&copy);
        enum qdq_code code = qdq_dataset_open(fd, &dataset, &err);
        if (code == QDQ_OK)
            code = qdqi_reader_open(dataset, 0, &reader, &err);
        if (code == QDQ_OK)
            code = qdqi_reader_read(reader, data, sizeof data, &err);
        ck_assert_msg(code == QDQ_OK || code == QDQ_INVALID_DATASET ||
                          code == QDQ_LIMIT_EXCEEDED,
                      "byte %zu: %s", i, err.text);
        good += code == QDQ_OK;
        qdqi_reader_close(&reader);
        qdq_dataset_free(&dataset);
        close(fd);
    }
    /* flips in times, versions and the other member's elements do no harm */
    ck_assert_int_gt(good, 0);
    ck_assert_int_lt(good, (int)whole.n / 2);
    free(whole.p);
}

/* Reading and skipping in pieces of every size gives the same elements: read-ahead
   does not show. */
UNIT_LOOP(pieces, 3)
{
    enum { N = 70000 };
    static const size_t sizes[] = {4, 12, 4096, 16380, 16384, 16388, 40000, 8, 65536};
    const struct zip_how how = {.deflate = _i == 1, .bad_crc = _i == 2};
    uint32_t *data = calloc(N, sizeof *data), got[65536 / 4];
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdqi_reader *reader;
    struct qdq_error err = {0};
    enum qdq_code code = QDQ_OK;
    ck_assert_ptr_nonnull(data);
    for (uint32_t i = 0; i < N; i++)
        data[i] = 2654435761u * i;
    zip_add_how(&z, "x.npy", npy_c("<u4", "(70000,)", data, N * sizeof *data), how);
    ck_assert_int_eq(open_zip(&z, &dataset, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_reader_open(dataset, 0, &reader, &err), QDQ_OK);
    size_t at = 0, left = N * sizeof *data;
    for (size_t i = 0; !code && left > 0; i++) {
        size_t n = sizes[i % (sizeof sizes / sizeof *sizes)];
        n = n < left ? n : left;
        if (i % 3 == 2 && n < left) {
            code = qdqi_reader_skip(reader, n, &err);
        } else {
            code = qdqi_reader_read(reader, got, n, &err);
            ck_assert(code || memcmp(got, (char *)data + at, n) == 0);
        }
        at += n;
        left -= n;
    }
    ck_assert_int_eq(code, how.bad_crc ? QDQ_INVALID_DATASET : QDQ_OK);
    qdqi_reader_close(&reader);
    qdq_dataset_free(&dataset);
    free(data);
}

UNIT_TEST(too_many_members)
{
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    zip_add(&z, "a.npy", floats("(8,)", 8));
    struct bytes lie = zip_end(&z, QDQI_NPZ_MAX_MEMBERS + 1);
    int fd = file_of(&lie);
    ck_assert_int_eq(qdq_dataset_open(fd, &dataset, &err), QDQ_LIMIT_EXCEEDED);
    close(fd);
    err = (struct qdq_error){0};
    for (int i = 0; i < QDQI_NPZ_MAX_MEMBERS + 1; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        zip_add(&z, name, floats("(1,)", 1));
    }
    ck_assert_int_eq(open_zip(&z, &dataset, &err), QDQ_LIMIT_EXCEEDED);
    ck_assert_ptr_nonnull(strstr(err.text, "members"));
}

UNIT_TEST(too_many_arrays)
{
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    for (int i = 0; i < QDQI_MAX_ARRAYS + 1; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.npy", i);
        zip_add(&z, name, floats("(1,)", 1));
    }
    ck_assert_int_eq(open_zip(&z, &dataset, &err), QDQ_LIMIT_EXCEEDED);
    ck_assert_ptr_nonnull(strstr(err.text, "arrays"));
}

/* The directory has a limit of bytes, so that a few members cannot make the reader
   load much. */
UNIT_TEST(large_directory)
{
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    char name[60001];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 200; i++) /* 12 MB in all */
        zip_add(&z, name, (struct bytes){0});
    ck_assert_int_eq(open_zip(&z, &dataset, &err), QDQ_LIMIT_EXCEEDED);
}

/* Reads a member beyond 4 GB, in a sparse file with zip64 records. */
UNIT_TEST(zip64)
{
    const uint64_t far = 5ull << 30;
    struct bytes member = floats("(3,)", 3), head = {0}, tail = {0};
    put(&head, "PK\3\4", 4);
    put_number(&head, 45, 2);
    put_number(&head, 0, 8); /* flags, method, time */
    put_number(&head, crc32_of(member.p, member.n), 4);
    put_number(&head, ~0u, 4);
    put_number(&head, ~0u, 4);
    put_number(&head, 5, 2);
    put_number(&head, 20, 2);
    put(&head, "x.npy\1\0\20\0", 9);
    put_number(&head, member.n, 8);
    put_number(&head, member.n, 8);
    put(&head, member.p, member.n);
    put(&tail, "PK\1\2", 4);
    put_number(&tail, 45, 2);
    put_number(&tail, 45, 2);
    put_number(&tail, 0, 8);
    put_number(&tail, crc32_of(member.p, member.n), 4);
    put_number(&tail, ~0u, 4);
    put_number(&tail, ~0u, 4);
    put_number(&tail, 5, 2);
    put_number(&tail, 28, 2);
    put_number(&tail, 0, 10);
    put_number(&tail, ~0u, 4);
    put(&tail, "x.npy\1\0\30\0", 9);
    put_number(&tail, member.n, 8);
    put_number(&tail, member.n, 8);
    put_number(&tail, far, 8);
    size_t directory = tail.n;
    put(&tail, "PK\6\6", 4);
    put_number(&tail, 44, 8);
    put_number(&tail, 45, 2);
    put_number(&tail, 45, 2);
    put_number(&tail, 0, 8);
    put_number(&tail, 1, 8);
    put_number(&tail, 1, 8);
    put_number(&tail, directory, 8);
    put_number(&tail, far + head.n, 8);
    put(&tail, "PK\6\7\0\0\0\0", 8);
    put_number(&tail, far + head.n + directory, 8);
    put_number(&tail, 1, 4);
    put(&tail, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    put_number(&tail, directory, 4);
    put_number(&tail, ~0u, 4);
    put_number(&tail, 0, 2);

    int fd = memfd_create("zip64", MFD_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, "PK\3\4", 4, 0), 4);
    ck_assert_int_eq(pwrite(fd, head.p, head.n, (off_t)far), (ssize_t)head.n);
    ck_assert_int_eq(pwrite(fd, tail.p, tail.n, (off_t)(far + head.n)),
                     (ssize_t)tail.n);
    struct qdq_dataset *dataset;
    struct qdqi_reader *reader;
    struct qdq_error err = {0};
    float data[3];
    ck_assert_msg(qdq_dataset_open(fd, &dataset, &err) == QDQ_OK, "%s", err.text);
    ck_assert_int_eq(qdqi_reader_open(dataset, 0, &reader, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_reader_read(reader, data, sizeof data, &err), QDQ_OK);
    ck_assert(data[0] == 0 && data[1] == 1 && data[2] == 2);
    qdqi_reader_close(&reader);
    qdq_dataset_free(&dataset);
    close(fd);
    free(member.p);
    free(head.p);
    free(tail.p);
}

UNIT_SUITE("data/npz")
