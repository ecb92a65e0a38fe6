/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX's test data in a tar archive, plain and compressed: it is read in place, in the
 * order of the sets. Truncated and damaged archives, and members that are not plain
 * files, are refused.
 */
#include "config.h"

#include "files/data/file.h"
#include "files/data/gunzip.h"
#include "files/data/reader.h"
#include "files/data/sets.h"
#include "files/data/tar.h"
#include "data_files.h"
#include "failing.h"

/* --- archives, byte by byte ----------------------------------------------- */

struct member {
    const char *name;
    char type; /* 0: a plain file */
    const char *link;
    const char *data;
    int64_t size_error; /* added to the size in the header */
    bool bad_sum;
};

static void
put_member(struct bytes *b, const struct member *m)
{
    char head[512] = {0};
    size_t n = m->data ? strlen(m->data) : 0;
    unsigned sum = 0;
    snprintf(head, 100, "%s", m->name);
    memcpy(head + 100, "0000644\0000000000\0000000000", 24);
    snprintf(head + 124, 12, "%011llo",
             (unsigned long long)((int64_t)n + m->size_error));
    memcpy(head + 136, "00000000000", 12);
    memset(head + 148, ' ', 8);
    head[156] = m->type ? m->type : '0';
    snprintf(head + 157, 100, "%s", m->link ? m->link : "");
    memcpy(head + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof head; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum + (m->bad_sum ? 1 : 0));
    put(b, head, sizeof head);
    put(b, m->data, n);
    put_number(b, 0, (int)((512 - n % 512) % 512));
}

static void
put_end(struct bytes *b)
{
    put_number(b, 0, 1024);
}

/* Compresses the bytes to a gzip file, and frees them. */
static struct bytes
packed(struct bytes data)
{
    struct bytes b = {0}, deflated = deflate_stored(&data);
    put(&b, "\x1f\x8b\10\0\0\0\0\0\0\377", 10);
    put(&b, deflated.p, deflated.n);
    put_number(&b, crc32_of(data.p, data.n), 4);
    put_number(&b, data.n, 4);
    free(deflated.p);
    free(data.p);
    return b;
}

/* --- reading -------------------------------------------------------------- */

/* A float32 tensor [1, 2] without a name, in float_data. No byte is 0, so the
   tensors can be written as strings. */
#define HEAD "\10\1\10\2\20\1\42\10"
static const char first[] = HEAD "\1\1\200\77\1\1\1\100";
static const char second[] = HEAD "\1\1\100\100\1\1\200\100";

static struct bytes
two_sets(void)
{
    const struct member members[] = {
        {.name = "net/", .type = '5'},
        {.name = "net/test_data_set_10/input_0.pb", .data = second},
        {.name = "net/model.onnx", .data = "anything"},
        {.name = "net/test_data_set_9/output_0.pb", .type = '2', .link = "/etc/passwd"},
        {.name = "net/test_data_set_9/input_0.pb", .data = first},
        {.name = "net/empty", .data = ""},
    };
    struct bytes b = {0};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        put_member(&b, &members[i]);
    put_end(&b);
    return b;
}

/* Opens the bytes and reads all elements, the four floats of both sets in order. */
static enum qdq_code
read_all(int fd, unsigned char ret[16], struct qdq_error *err)
{
    struct qdq_dataset *dataset = NULL;
    struct qdqi_reader *reader = NULL;
    enum qdq_code code = qdq_dataset_open(fd, &dataset, err);
    if (!code)
        code = qdqi_reader_open(dataset, 0, &reader, err);
    if (!code)
        code = qdqi_reader_read(reader, ret, 16, err);
    qdqi_reader_close(&reader);
    qdq_dataset_free(&dataset);
    return code;
}

static enum qdq_code
read_bytes(const unsigned char *p, size_t n, unsigned char ret[16],
           struct qdq_error *err)
{
    struct bytes b = {0};
    put(&b, p, n);
    int fd = file_of(&b);
    enum qdq_code code = read_all(fd, ret, err);
    close(fd);
    return code;
}

static void
expect_both(const unsigned char got[16])
{
    ck_assert(memcmp(got, first + 8, 8) == 0 && memcmp(got + 8, second + 8, 8) == 0);
}

UNIT_LOOP(in_order_of_sets, 2)
{
    struct bytes b = _i ? packed(two_sets()) : two_sets();
    unsigned char got[16];
    struct qdq_error err = {0};
    ck_assert_msg(!read_bytes(b.p, b.n, got, &err), "%s", err.text);
    expect_both(got);
    free(b.p);
}

/* A gzip file may consist of several in a row, as pigz and cat make them. */
UNIT_TEST(gzip_members)
{
    struct bytes whole = two_sets(), all = {0};
    unsigned char got[16];
    struct qdq_error err = {0};
    for (size_t at = 0; at < whole.n; at += 700) {
        struct bytes part = {0};
        put(&part, whole.p + at, whole.n - at < 700 ? whole.n - at : 700);
        part = packed(part);
        put(&all, part.p, part.n);
        free(part.p);
    }
    ck_assert_msg(!read_bytes(all.p, all.n, got, &err), "%s", err.text);
    expect_both(got);
    free(whole.p);
    free(all.p);
}

/* A plain archive is read in place, and nothing is copied. */
UNIT_TEST(in_place)
{
    const struct qdqi_tar_options options = {false, 0, qdqi_sets_is_input};
    struct bytes b = two_sets();
    uint64_t size = b.n;
    int fd = file_of(&b);
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_tar *tar;
    struct qdq_error err = {0};
    ck_assert(!qdqi_tar_open(fd, size, &options, arena, &tar, &err));
    ck_assert_int_eq(qdqi_tar_fd(tar), fd);
    ck_assert_uint_eq(qdqi_tar_count(tar), 2);
    for (size_t i = 0; i < 2; i++) {
        const struct qdqi_tar_file *file = qdqi_tar_file(tar, i);
        char data[16];
        size_t got;
        ck_assert_uint_eq(file->size, sizeof data);
        ck_assert_int_eq(qdqi_file_read(fd, file->offset, data, sizeof data, &got), 0);
        ck_assert(memcmp(data, i ? first : second, sizeof data) == 0);
    }
    qdqi_tar_close(&tar);
    qdqi_arena_free(&arena);
    close(fd);
}

/* --- damaged archives ----------------------------------------------------- */

/* An archive that is cut at any byte is refused, except behind its last member. */
UNIT_LOOP(cut_short, 2)
{
    struct bytes b = _i ? packed(two_sets()) : two_sets();
    size_t needed = _i ? b.n : b.n - 512;
    for (size_t n = 0; n < b.n; n++) {
        unsigned char got[16];
        struct qdq_error err = {0};
        enum qdq_code code = read_bytes(b.p, n, got, &err);
        ck_assert_msg(n < needed ? code == QDQ_INVALID_DATASET && *err.text
                                 : code == QDQ_OK,
                      "byte %zu of %zu: code %d, %s", n, b.n, code, err.text);
    }
    free(b.p);
}

/* A wrong bit anywhere in a compressed archive is found, except in gzip's own
   header. */
UNIT_TEST(damaged)
{
    struct bytes b = packed(two_sets());
    for (size_t i = 0; i < b.n; i++) {
        unsigned char got[16];
        struct qdq_error err = {0};
        b.p[i] ^= 4;
        enum qdq_code code = read_bytes(b.p, b.n, got, &err);
        b.p[i] ^= 4;
        ck_assert_msg(code == QDQ_INVALID_DATASET || (!code && i >= 3 && i < 10),
                      "byte %zu: code %d, %s", i, code, err.text);
    }
    free(b.p);
}

#define SET "test_data_set_0/input_0.pb"

static const struct broken {
    struct member member;
    const char *text;
} broken[] = {
    {{.name = SET, .data = first, .bad_sum = true}, "at byte 1024"},
    {{.name = SET, .type = '2', .link = "net/model.onnx"}, "link"},
    {{.name = SET, .type = '1', .link = "net/model.onnx"}, "link"},
    {{.name = SET, .type = '3'}, "no file"},
    {{.name = SET, .type = '6'}, "no file"},
    {{.name = SET, .data = first, .size_error = 1 << 20}, "member '" SET "'"},
    {{.name = "/net/" SET, .data = first}, "'..'"},
    {{.name = "../" SET, .data = first}, "'..'"},
    {{.name = "a/../" SET, .data = first}, "'..'"},
    {{.name = "net/../" SET, .type = '2', .link = "/"}, "link"},
    {{.name = SET, .data = ""}, "elements"},
    {{.name = "test_data_set_0/input_1.pb", .data = first}, "other inputs"},
    {{.name = "net/test_data_set_9/input_0.pb", .data = first}, "twice"},
};

UNIT_LOOP(refused, 2 * sizeof broken / sizeof *broken)
{
    const struct broken *c = &broken[_i / 2];
    const struct member model = {.name = "net/model.onnx", .data = "anything"};
    const struct member good = {.name = "net/test_data_set_9/input_0.pb",
                                .data = first};
    struct bytes b = {0};
    unsigned char got[16];
    struct qdq_error err = {0};
    put_member(&b, &model);
    put_member(&b, &c->member);
    put_member(&b, &good);
    put_end(&b);
    if (_i % 2)
        b = packed(b);
    ck_assert_int_eq(read_bytes(b.p, b.n, got, &err), QDQ_INVALID_DATASET);
    ck_assert_msg(strstr(err.text, c->text) != NULL, "%s: %s", c->text, err.text);
    free(b.p);
}

static const struct member strays[] = {
    {.name = "model.onnx", .data = "anything"},
    {.name = "test_data_set_0/input_0.pb/", .type = '5'},
    {.name = "test_data_set_0/input_0.pb.txt", .data = "anything"},
    {.name = "x.txt", .data = "anything"},
};

UNIT_TEST(no_sets)
{
    struct bytes b = {0};
    unsigned char got[16];
    struct qdq_error err = {0};
    for (size_t i = 0; i < sizeof strays / sizeof *strays; i++)
        put_member(&b, &strays[i]);
    put_end(&b);
    ck_assert_int_eq(read_bytes(b.p, b.n, got, &err), QDQ_INVALID_DATASET);
    ck_assert_ptr_nonnull(strstr(err.text, "without test_data_set_N/input_M.pb"));
    free(b.p);
}

/* --- limits --------------------------------------------------------------- */

static enum qdq_code
open_packed(struct bytes b, uint64_t most, struct qdq_error *err)
{
    const struct qdqi_tar_options options = {true, most, qdqi_sets_is_input};
    uint64_t size = b.n;
    int fd = file_of(&b);
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_tar *tar = NULL;
    enum qdq_code code = qdqi_tar_open(fd, size, &options, arena, &tar, err);
    qdqi_tar_close(&tar);
    qdqi_arena_free(&arena);
    close(fd);
    return code;
}

UNIT_TEST(unpacks_to_too_much)
{
    struct bytes b = two_sets();
    struct qdq_error err = {0};
    uint64_t size = b.n;
    ck_assert_int_eq(open_packed(packed(b), size, &err), QDQ_OK);
    ck_assert_int_eq(open_packed(packed(two_sets()), size - 1, &err),
                     QDQ_LIMIT_EXCEEDED);
    ck_assert_ptr_nonnull(strstr(err.text, "unpacks to more than"));
}

/* The size in the header is enough for a refusal: nothing is unpacked first. */
UNIT_TEST(claims_too_much)
{
    const struct member member = {.name = SET, .data = first, .size_error = 8000000000};
    struct bytes b = {0};
    struct qdq_error err = {0};
    put_member(&b, &member);
    ck_assert_int_eq(open_packed(packed(b), 1 << 30, &err), QDQ_LIMIT_EXCEEDED);
}

UNIT_TEST(too_many_members)
{
    struct bytes b = {0};
    unsigned char got[16];
    struct qdq_error err = {0};
    put_member(&b, &(struct member){.name = "net/", .type = '5'});
    for (int i = 0; i < QDQI_TAR_MAX_MEMBERS; i++) {
        unsigned char head[512];
        memcpy(head, b.p, sizeof head);
        put(&b, head, sizeof head);
    }
    put_end(&b);
    ck_assert_int_eq(read_bytes(b.p, b.n, got, &err), QDQ_LIMIT_EXCEEDED);
    ck_assert_ptr_nonnull(strstr(err.text, "members"));
    free(b.p);
}

UNIT_LOOP(every_allocation_may_fail, 2)
{
    struct bytes b = _i ? packed(two_sets()) : two_sets();
    int fd = file_of(&b);
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    while (code != QDQ_OK && ++n < 1000) {
        unsigned char got[16];
        struct qdq_error err = {0};
        fail_at = n;
        code = read_all(fd, got, &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_msg(code == (reached ? QDQ_NO_MEMORY : QDQ_OK),
                      "allocation %ld: code %d, %s", n, code, err.text);
    }
    ck_assert_int_gt(n, 5);
    ck_assert_int_lt(n, 1000);
    close(fd);
}

/* A missing folder is an error that says so; no other folder is tried. */
UNIT_TEST(no_place_to_unpack)
{
    struct bytes b = packed(two_sets());
    unsigned char got[16];
    struct qdq_error err = {0};
    setenv("TMPDIR", "/nowhere", 1);
    ck_assert_int_eq(read_bytes(b.p, b.n, got, &err), QDQ_IO);
    unsetenv("TMPDIR");
    ck_assert_ptr_nonnull(strstr(err.text, "unpack"));
    free(b.p);
}

UNIT_SUITE("data/tar")
