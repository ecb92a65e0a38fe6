/* SPDX-License-Identifier: Apache-2.0 */
/* Parquet: the protocol of its heads, its encodings, and files made byte by byte. */
#include "config.h"

#include "files/data/parquet/encodings.h"
#include "files/data/parquet/thrift.h"
#include "files/data/reader.h"
#include "data_files.h"
#include "failing.h"

/* --- Thrift's compact protocol -------------------------------------------------- */

static struct qdqi_thrift
thrift_of(const unsigned char *bytes, size_t size)
{
    return (struct qdqi_thrift){.bytes = bytes, .size = size};
}

START_TEST(fields)
{
    /* 1: i32 -3; 2: true; 3: "ab"; 20 (a long head): i64 300; 21: false */
    static const unsigned char bytes[] = {0x15, 5,    0x11, 0x18, 2,    'a', 'b',
                                          0x06, 0x28, 0xd8, 0x04, 0x12, 0};
    struct qdqi_thrift t = thrift_of(bytes, sizeof bytes);
    struct qdqi_thrift_field f = {0};
    size_t n;
    ck_assert(qdqi_thrift_next(&t, &f) && f.id == 1);
    ck_assert_int_eq(qdqi_thrift_integer(&t, &f), -3);
    ck_assert(qdqi_thrift_next(&t, &f) && f.id == 2 && qdqi_thrift_bool(&t, &f));
    ck_assert(qdqi_thrift_next(&t, &f) && f.id == 3);
    const char *text = qdqi_thrift_text(&t, &f, &n);
    ck_assert(n == 2 && memcmp(text, "ab", 2) == 0);
    ck_assert(qdqi_thrift_next(&t, &f) && f.id == 20);
    ck_assert_int_eq(qdqi_thrift_integer(&t, &f), 300);
    ck_assert(qdqi_thrift_next(&t, &f) && f.id == 21 && !qdqi_thrift_bool(&t, &f));
    ck_assert(!qdqi_thrift_next(&t, &f) && !t.failed);
    ck_assert_uint_eq(t.at, sizeof bytes);
}
END_TEST

START_TEST(skipped_fields)
{
    /* 1: a struct of a list of 2 strings and a map of i32 to bool; 2: a double; 3: a list of
       20 bools; 4: an empty map; 5: i8 7 */
    unsigned char bytes[64] = {0x1c, 0x19, 0x28, 1, 'x', 0, 0x1b, 1, 0x51, 2, 1, 0};
    size_t n = 12;
    bytes[n++] = 0x17;
    n += 8;
    bytes[n++] = 0x19;
    bytes[n++] = 0xf1;
    bytes[n++] = 20;
    n += 20;
    bytes[n++] = 0x1b;
    bytes[n++] = 0;
    bytes[n++] = 0x13;
    bytes[n++] = 7;
    bytes[n++] = 0;
    struct qdqi_thrift t = thrift_of(bytes, n);
    struct qdqi_thrift_field f = {0};
    for (int i = 1; i < 5; i++) {
        ck_assert(qdqi_thrift_next(&t, &f) && f.id == i);
        qdqi_thrift_skip(&t, &f);
        ck_assert_msg(!t.failed, "field %d: %s", i, t.why);
    }
    ck_assert(qdqi_thrift_next(&t, &f) && qdqi_thrift_integer(&t, &f) == 7);
    ck_assert(!qdqi_thrift_next(&t, &f) && !t.failed);
    for (size_t cut = 0; cut < n; cut++) { /* an end at every byte is a fault */
        t = thrift_of(bytes, cut);
        f = (struct qdqi_thrift_field){0};
        while (qdqi_thrift_next(&t, &f))
            qdqi_thrift_skip(&t, &f);
        ck_assert_msg(t.failed, "cut at %zu", cut);
    }
}
END_TEST

static const struct thrift_fault {
    const char *what, *why;
    unsigned char bytes[12];
    size_t size;
} thrift_faults[] = {
    {"a number of 70 bits",
     "64 bits",
     {0x16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1},
     12},
    {"a text behind the end", "too early", {0x18, 100, 'x', 0}, 4},
    {"a text of 2^63 bytes",
     "too early",
     {0x18, 255, 255, 255, 255, 255, 255, 255, 255, 127, 0},
     11},
    {"a list of 15 in 3 bytes", "more elements", {0x19, 0xf5, 15, 0, 0}, 5},
    {"an unknown type", "unknown type", {0x1e, 0}, 2},
    {"an unknown type in a list", "unknown type", {0x19, 0x10, 0, 0}, 4},
    {"a field of 2^20", "too large", {0x05, 128, 128, 128, 1, 0}, 6},
    {"lists in each other",
     "too deep",
     {0x19, 0x19, 0x19, 0x19, 0x19, 0x19, 0x19, 0x19, 0x19, 0x19, 0x19, 0x19},
     12},
};

START_TEST(thrift_fault)
{
    const struct thrift_fault *c = &thrift_faults[_i];
    unsigned char bytes[64];
    memset(bytes, 0x19, sizeof bytes);
    memcpy(bytes, c->bytes, c->size);
    struct qdqi_thrift t =
        thrift_of(bytes, strstr(c->why, "deep") ? sizeof bytes : c->size);
    struct qdqi_thrift_field f = {0};
    while (qdqi_thrift_next(&t, &f))
        qdqi_thrift_skip(&t, &f);
    ck_assert_msg(t.failed && strstr(t.why, c->why), "%s: %s", c->what,
                  t.why ? t.why : "no fault");
    ck_assert(!qdqi_thrift_next(&t, &f) && qdqi_thrift_integer(&t, &f) == 0);
}
END_TEST

/* --- runs ------------------------------------------------------------------------- */

START_TEST(runs)
{
    /* the example of Encodings.md: 0 to 7 in 3 bits; then 5 times 4; then 8 values of which
       only the bytes of 5 are there */
    static const unsigned char bytes[] = {3, 0x88, 0xc6, 0xfa, 10, 4, 3, 0x88, 0xc6};
    static const uint32_t wanted[] = {0, 1, 2, 3, 4, 5, 6, 7, 4,
                                      4, 4, 4, 4, 0, 1, 2, 3, 4};
    for (size_t piece = 1; piece <= 18; piece++) {
        struct qdqi_rle r;
        uint32_t found[18];
        qdqi_rle_start(&r, bytes, sizeof bytes, 3);
        for (size_t at = 0; at < 18; at += piece)
            ck_assert(qdqi_rle_take(&r, found + at, 18 - at < piece ? 18 - at : piece));
        ck_assert_mem_eq(found, wanted, sizeof wanted);
        ck_assert(!qdqi_rle_take(&r, found, 1));
    }
}
END_TEST

START_TEST(runs_of_any_width)
{
    for (unsigned width = 0; width <= 32; width++) {
        unsigned char bytes[1 + 32 * 2] = {2 << 1 | 1};
        uint32_t found[16];
        struct qdqi_rle r;
        for (unsigned i = 0; i < 16 * width;
             i++) /* each value is its number, if it fits */
            if (i % width < 4 && (i / width) >> i % width & 1)
                bytes[1 + i / 8] |= (unsigned char)(1u << i % 8);
        qdqi_rle_start(&r, bytes, 1 + 2 * width, width);
        ck_assert(qdqi_rle_take(&r, found, 16));
        for (uint32_t i = 0; i < 16; i++)
            ck_assert_uint_eq(found[i], width < 4 ? i & ((1u << width) - 1) : i);
    }
}
END_TEST

START_TEST(runs_that_are_damaged)
{
    static const unsigned char value_too_large[] = {4, 9}, no_value[] = {4},
                               no_end[] = {255, 255, 255},
                               huge[] = {255, 255, 255, 255, 255,
                                         255, 255, 255, 255, 1};
    struct qdqi_rle r;
    uint32_t found[4];
    qdqi_rle_start(&r, value_too_large, 2, 3);
    ck_assert(!qdqi_rle_take(&r, found, 1));
    qdqi_rle_start(&r, no_value, 1, 3);
    ck_assert(!qdqi_rle_take(&r, found, 1));
    qdqi_rle_start(&r, no_end, 3, 3);
    ck_assert(!qdqi_rle_take(&r, found, 1));
    qdqi_rle_start(&r, huge, sizeof huge, 32);
    ck_assert(!qdqi_rle_take(&r, found, 1));
    qdqi_rle_start(&r, huge, 0, 1);
    ck_assert(!qdqi_rle_take(&r, found, 1));
}
END_TEST

/* --- differences --------------------------------------------------------------------- */

START_TEST(differences)
{
    /* 7, 5, 3, 1, 2, 3, 4, 5 in blocks of 128 and 4 miniblocks: least difference -2, and the
       differences 0 0 0 3 3 3 3 above it in 2 bits, as in Encodings.md */
    unsigned char bytes[64] = {128, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0xc0, 0x3f};
    static const int64_t wanted[] = {7, 5, 3, 1, 2, 3, 4, 5};
    for (size_t piece = 1; piece <= 8; piece++) {
        struct qdqi_deltas d;
        int64_t found[8];
        ck_assert(qdqi_deltas_start(&d, bytes, 10 + 8));
        for (size_t at = 0; at < 8; at += piece)
            ck_assert(
                qdqi_deltas_take(&d, found + at, 8 - at < piece ? 8 - at : piece));
        ck_assert_mem_eq(found, wanted, sizeof wanted);
        ck_assert_ptr_eq(d.at, bytes + 10 + 8);
        ck_assert(!qdqi_deltas_take(&d, found, 1));
    }
    for (size_t cut = 0; cut < 10 + 8;
         cut++) { /* the miniblock is whole or not at all */
        struct qdqi_deltas d;
        int64_t found[8];
        ck_assert(!qdqi_deltas_start(&d, bytes, cut) ||
                  !qdqi_deltas_take(&d, found, 8));
    }
}
END_TEST

START_TEST(differences_of_64_bits)
{
    /* INT64_MIN, then INT64_MAX, then INT64_MIN: the differences overflow */
    unsigned char bytes[16 + 8 * 8] = {8, 1, 3};
    size_t n = 3;
    memset(bytes + n, 255, 9);
    n += 9;
    bytes[n++] = 1; /* the first value, in zigzag */
    bytes[n++] = 1; /* least difference -1 */
    bytes[n++] = 64;
    memset(bytes + n + 0, 0, 64);
    bytes[n + 8] = 2;
    struct qdqi_deltas d;
    int64_t found[3];
    ck_assert(qdqi_deltas_start(&d, bytes, n + 64));
    ck_assert(qdqi_deltas_take(&d, found, 3));
    ck_assert(found[0] == INT64_MIN && found[1] == INT64_MAX && found[2] == INT64_MIN);
}
END_TEST

START_TEST(differences_that_are_damaged)
{
    static const unsigned char heads[][5] = {
        {128, 1, 0, 1, 0}, /* no miniblocks */
        {128, 1, 3, 1, 0}, /* a block that they do not divide */
        {4, 1, 1, 0, 0},   /* values that do not fill bytes */
        {0, 1, 1, 0, 0},   /* a block of no values */
        {255, 255, 255, 255, 255},
    };
    struct qdqi_deltas d;
    int64_t found[2];
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        ck_assert_msg(!qdqi_deltas_start(&d, heads[i], 5), "head %zu", i);
    static const unsigned char wide[16] = {8, 1, 2, 0, 0, 65};
    ck_assert(qdqi_deltas_start(&d, wide, sizeof wide));
    ck_assert(!qdqi_deltas_take(&d, found, 2));
}
END_TEST

/* --- files ----------------------------------------------------------------------------- */

static void
put_byte(struct bytes *b, unsigned value)
{
    put_number(b, value, 1);
}

static void
put_varint(struct bytes *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(b, (unsigned)(value & 0x7f) | 0x80);
    put_byte(b, (unsigned)value);
}

/* Puts an integer of type i32 (5) or i64 (6), `step` numbers behind the field before it. */
static void
put_integer(struct bytes *b, unsigned step, unsigned type, int64_t value)
{
    put_byte(b, step << 4 | type);
    put_varint(b, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void
put_text(struct bytes *b, unsigned step, const char *text)
{
    put_byte(b, step << 4 | 8);
    put_varint(b, strlen(text));
    put(b, text, strlen(text));
}

/* A column `x` of INT32 in one row group, of one page that is not packed. */
struct table {
    bool lists; /* a list of integers in each row, else one integer that may be null */
    int64_t rows, values;
    const unsigned char *page;
    size_t size;
    int encoding;
    /* differences from the truth */
    int64_t more_rows, more_values, more_size;
    int codec;
};

static void
put_schema(struct bytes *b, const struct table *t)
{
    put_byte(b, 1 << 4 | 9); /* field 2 */
    put_byte(b, (t->lists ? 4u : 2u) << 4 | 12);
    put_text(b, 4, "schema");
    put_integer(b, 1, 5, 1);
    put_byte(b, 0);
    for (int i = 0; i < (t->lists ? 2 : 0);
         i++) { /* optional x (LIST), repeated list */
        put_integer(b, 3, 5, i == 0 ? 1 : 2);
        put_text(b, 1, i == 0 ? "x" : "list");
        put_integer(b, 1, 5, 1);
        if (i == 0)
            put_integer(b, 1, 5, 3);
        put_byte(b, 0);
    }
    put_integer(b, 1, 5, 1); /* INT32, optional */
    put_integer(b, 2, 5, 1);
    put_text(b, 1, t->lists ? "element" : "x");
    put_byte(b, 0);
}

static struct bytes
file_bytes(const struct table *t)
{
    struct bytes b = {0}, f = {0};
    put(&b, "PAR1", 4);
    put_integer(&b, 1, 5, 0); /* a data page */
    put_integer(&b, 1, 5, (int64_t)t->size + t->more_size);
    put_integer(&b, 1, 5, (int64_t)t->size + t->more_size);
    put_byte(&b, 2 << 4 | 12);
    put_integer(&b, 1, 5, t->values + t->more_values);
    put_integer(&b, 1, 5, t->encoding);
    put_integer(&b, 1, 5, 3);
    put_integer(&b, 1, 5, 3);
    put_byte(&b, 0);
    put_byte(&b, 0);
    put(&b, t->page, t->size);
    put_integer(&f, 1, 5, 1);
    put_schema(&f, t);
    put_integer(&f, 1, 6, t->rows);
    put_byte(&f, 1 << 4 | 9);
    put_byte(&f, 1 << 4 | 12);
    put_byte(&f, 1 << 4 | 9); /* the row group's columns */
    put_byte(&f, 1 << 4 | 12);
    put_integer(&f, 2, 6, 4);
    put_byte(&f, 1 << 4 | 12); /* what the column is */
    put_integer(&f, 1, 5, 1);
    put_integer(&f, 3, 5, t->codec);
    put_integer(&f, 1, 6, t->values + t->more_values);
    put_integer(&f, 1, 6, (int64_t)b.n - 4);
    put_integer(&f, 1, 6, (int64_t)b.n - 4);
    put_integer(&f, 2, 6, 4);
    put_byte(&f, 0);
    put_byte(&f, 0);
    put_integer(&f, 1, 6, 100);
    put_integer(&f, 1, 6, t->rows + t->more_rows);
    put_byte(&f, 0);
    put_byte(&f, 0);
    put(&b, f.p, f.n);
    put_number(&b, f.n, 4);
    put(&b, "PAR1", 4);
    free(f.p);
    return b;
}

/* Definition levels 1 1 1, then 10 20 30. */
static const unsigned char plain[] = {2, 0,  0, 0, 6, 1,  10, 0, 0,
                                      0, 20, 0, 0, 0, 30, 0,  0, 0};
/* Definition levels 1 0 1, then 10 30. */
static const unsigned char with_null[] = {2, 0, 0, 0, 3, 5, 10, 0, 0, 0, 30, 0, 0, 0};
/* The rows [1, 2] and [3]: repetition levels 0 1 0, definition levels 3 3 3. */
static const unsigned char ragged[] = {2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 6, 3,
                                       1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
/* The rows [1], [] and [2]: definition levels 3 1 3. */
static const unsigned char with_empty[] = {2,    0, 0, 0, 6, 0, 3, 0, 0, 0, 3,
                                           0x37, 0, 1, 0, 0, 0, 2, 0, 0, 0};

static const struct file_case {
    const char *what;
    struct table table;
    enum qdq_code code; /* of opening and reading all */
    const char *text;   /* of the error */
    int64_t samples;
    int32_t sum; /* of all elements */
} file_cases[] = {
    {"integers",
     {false, 3, 3, plain, sizeof plain, 0, 0, 0, 0, 0},
     QDQ_OK,
     NULL,
     3,
     60},
    {"a null",
     {false, 3, 3, with_null, sizeof with_null, 0, 0, 0, 0, 0},
     QDQ_INVALID_DATASET,
     "row 1 is null",
     3,
     0},
    {"lists", {true, 2, 3, ragged, sizeof ragged, 0, 0, 0, 0, 0}, QDQ_OK, NULL, 2, 6},
    {"an empty list",
     {true, 3, 3, with_empty, sizeof with_empty, 0, 0, 0, 0, 0},
     QDQ_INVALID_DATASET,
     "row 1 holds a null or an empty list",
     0,
     0},
    {"more rows",
     {false, 3, 3, plain, sizeof plain, 0, 1, 0, 0, 0},
     QDQ_INVALID_DATASET,
     "row group 0 has 4 rows, and the column 3 values",
     0,
     0},
    {"more rows of lists",
     {true, 2, 3, ragged, sizeof ragged, 0, 1, 0, 0, 0},
     QDQ_INVALID_DATASET,
     "is the last one, and the file has more",
     0,
     0},
    {"fewer rows of lists",
     {true, 2, 3, ragged, sizeof ragged, 0, -1, 0, 0, 0},
     QDQ_INVALID_DATASET,
     "is followed by more rows",
     0,
     0},
    {"more values than there are",
     {true, 2, 3, ragged, sizeof ragged, 0, 0, 1, 0, 0},
     QDQ_INVALID_DATASET,
     "damaged levels",
     0,
     0},
    {"a page behind the column",
     {true, 2, 3, ragged, sizeof ragged, 0, 0, 0, 9, 0},
     QDQ_INVALID_DATASET,
     "goes on behind the column's end",
     0,
     0},
    {"a page of 300 MB",
     {true, 2, 3, ragged, sizeof ragged, 0, 0, 0, 300 << 20, 0},
     QDQ_INVALID_DATASET,
     "goes on behind the column's end",
     0,
     0},
    {"a billion values",
     {true, 2, 3, ragged, sizeof ragged, 0, 0, 1000000000, 0, 0},
     QDQ_INVALID_DATASET,
     "more than a file of this size may hold",
     0,
     0},
    {"an encoding of text",
     {true, 2, 3, ragged, sizeof ragged, 7, 0, 0, 0, 0},
     QDQ_INVALID_DATASET,
     "encoding 7, which is not read",
     0,
     0},
    {"a codec that is not read",
     {false, 3, 3, plain, sizeof plain, 0, 0, 0, 0, 4},
     QDQ_INVALID_DATASET,
     "packed with BROTLI",
     0,
     0},
    {"a codec that is not there",
     {false, 3, 3, plain, sizeof plain, 0, 0, 0, 0, 99},
     QDQ_INVALID_DATASET,
     "packed with an unknown codec",
     0,
     0},
    {"indexes without a dictionary",
     {false, 3, 3, plain, sizeof plain, 8, 0, 0, 0, 0},
     QDQ_INVALID_DATASET,
     "",
     3,
     0},
    {"no rows",
     {false, 0, 0, plain, sizeof plain, 0, 0, 0, 0, 0},
     QDQ_INVALID_DATASET,
     "has no rows",
     0,
     0},
};

/* Opens a file and sums its elements up. */
static enum qdq_code
read_all(int fd, int64_t *ret_samples, int32_t *ret_sum, struct qdq_error *err)
{
    struct qdq_dataset *dataset = NULL;
    struct qdqi_reader *reader = NULL;
    int64_t elements = 0;
    *ret_samples = *ret_sum = 0;
    enum qdq_code code = qdq_dataset_open(fd, &dataset, err);
    if (!code) {
        *ret_samples = qdq_dataset_info(dataset)->samples;
        for (int64_t i = 0; i < *ret_samples; i++) {
            size_t n;
            qdqi_dataset_part(dataset, 0, i, &n);
            elements += (int64_t)n;
        }
        code = qdqi_reader_open(dataset, 0, &reader, err);
    }
    for (int64_t i = 0; i < elements && !code; i++) {
        int32_t x = 0;
        code = qdqi_reader_read(reader, &x, sizeof x, err);
        *ret_sum += x;
    }
    qdqi_reader_close(&reader);
    qdq_dataset_free(&dataset);
    return code;
}

START_TEST(file)
{
    const struct file_case *c = &file_cases[_i];
    struct bytes b = file_bytes(&c->table);
    struct qdq_error err = {0};
    int64_t samples;
    int32_t sum;
    int fd = file_of(&b);
    enum qdq_code code = read_all(fd, &samples, &sum, &err);
    ck_assert_msg(code == c->code, "%s: %d, %s", c->what, code, err.text);
    ck_assert_msg(!c->text || strstr(err.text, c->text), "%s: %s", c->what, err.text);
    ck_assert_int_eq(samples, c->samples);
    ck_assert(code || sum == c->sum);
    close(fd);
}
END_TEST

/* Every byte of a file is changed in every bit, and the file is cut at every byte: that ends in an
   error or in numbers, and in nothing else. */
START_TEST(damage)
{
    const struct file_case *c = &file_cases[_i];
    struct bytes whole = file_bytes(&c->table);
    for (size_t i = 0; i < whole.n * 9; i++) {
        struct bytes b = {0};
        struct qdq_error err = {0};
        int64_t samples;
        int32_t sum;
        put(&b, whole.p, whole.n);
        if (i % 9 < 8)
            b.p[i / 9] ^= (unsigned char)(1u << i % 9);
        else
            b.n = i / 9;
        int fd = file_of(&b);
        enum qdq_code code = read_all(fd, &samples, &sum, &err);
        ck_assert_msg(!code || (*err.text && code != QDQ_INTERNAL && code != QDQ_IO),
                      "byte %zu, change %zu: %d, %s", i / 9, i % 9, code, err.text);
        close(fd);
    }
    free(whole.p);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    struct bytes b = file_bytes(&file_cases[_i].table);
    enum qdq_code code = QDQ_NO_MEMORY;
    int fd = file_of(&b);
    long n = 0;
    while (code != QDQ_OK && ++n < 1000) {
        struct qdq_error err = {0};
        int64_t samples;
        int32_t sum;
        fail_at = n;
        code = read_all(fd, &samples, &sum, &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_msg(code == (reached ? QDQ_NO_MEMORY : QDQ_OK),
                      "allocation %ld: code %d, %s", n, code, err.text);
    }
    ck_assert_int_gt(n, 5);
    ck_assert_int_lt(n, 1000);
    close(fd);
}
END_TEST

static Suite *
suite(void)
{
    enum { LISTS = 2 };
    Suite *s = suite_create("data/parquet");
    TCase *t = tcase_create("parquet");
    tcase_add_test(t, fields);
    tcase_add_test(t, skipped_fields);
    tcase_add_loop_test(t, thrift_fault, 0,
                        sizeof thrift_faults / sizeof *thrift_faults);
    tcase_add_test(t, runs);
    tcase_add_test(t, runs_of_any_width);
    tcase_add_test(t, runs_that_are_damaged);
    tcase_add_test(t, differences);
    tcase_add_test(t, differences_of_64_bits);
    tcase_add_test(t, differences_that_are_damaged);
    tcase_add_loop_test(t, file, 0, sizeof file_cases / sizeof *file_cases);
    tcase_add_loop_test(t, damage, 0, LISTS + 1);
    tcase_add_test(t, every_allocation_may_fail);
    tcase_add_loop_test(t, every_allocation_may_fail, LISTS, LISTS + 1);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
