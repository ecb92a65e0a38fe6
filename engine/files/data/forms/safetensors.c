/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/forms/safetensors.h"
#include "files/data/file.h"
#include "files/data/npy.h"
#include "files/text/unicode.h"
#include "ground/base/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 8 }; /* bytes in front of the header */

struct parser {
    const char *text;
    size_t size, at;
    struct qdq_error *err;
};

struct tensor {
    char name[QDQI_SAFETENSORS_MAX_NAME + 1];
    char dtype[16];
    size_t rank;
    int64_t shape[QDQI_NPY_MAX_RANK];
    uint64_t begin, end; /* bytes behind the header */
};

static const struct {
    const char *name;
    enum qdqi_dtype dtype;
} dtypes[] = {
    {"F64", QDQI_FLOAT64},   {"F32", QDQI_FLOAT32}, {"F16", QDQI_FLOAT16},
    {"BF16", QDQI_BFLOAT16}, {"I64", QDQI_INT64},   {"I32", QDQI_INT32},
    {"I16", QDQI_INT16},     {"I8", QDQI_INT8},     {"U64", QDQI_UINT64},
    {"U32", QDQI_UINT32},    {"U16", QDQI_UINT16},  {"U8", QDQI_UINT8},
    {"BOOL", QDQI_BOOL},
};

/* --- JSON ------------------------------------------------------------------- */

static enum qdq_code
expected(const struct parser *p, const char *what)
{
    char where[24];
    snprintf(where, sizeof where, "%zu", p->at + LENGTH);
    return qdq_error_set(p->err, QDQ_INVALID_DATASET, QDQ_AT_OFFSET, where,
                         "the header of the safetensors file at byte %s: expected %s",
                         where, what);
}

static void
skip_space(struct parser *p)
{
    while (p->at < p->size && p->text[p->at] && strchr(" \t\r\n", p->text[p->at]))
        p->at++;
}

/* Skips space, then takes `c` if it comes next. Returns whether it did. */
static bool
take(struct parser *p, char c)
{
    skip_space(p);
    if (p->at >= p->size || p->text[p->at] != c)
        return false;
    p->at++;
    return true;
}

/* Takes 4 hexadecimal digits. Returns -1 where there are none. */
static int
take_hex(struct parser *p)
{
    int value = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        const char *digits = "0123456789abcdef";
        const char *digit =
            p->at < p->size && p->text[p->at]
                ? strchr(digits, p->text[p->at] >= 'A' && p->text[p->at] <= 'F'
                                     ? p->text[p->at] + 32
                                     : p->text[p->at])
                : NULL;
        if (!digit)
            return -1;
        value = 16 * value + (int)(digit - digits);
    }
    return value;
}

/* Takes the character behind "\u", of one or two such numbers. Returns 0 where it is none. */
static uint32_t
take_code_point(struct parser *p)
{
    const int high = take_hex(p);
    if (high < 0xd800 || high > 0xdfff)
        return high < 0 ? 0 : (uint32_t)high;
    if (high > 0xdbff || p->size - p->at < 2 || memcmp(p->text + p->at, "\\u", 2) != 0)
        return 0;
    p->at += 2;
    const int low = take_hex(p);
    if (low < 0xdc00 || low > 0xdfff)
        return 0;
    return 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
}

/* Takes the character behind a backslash. Returns its bytes; 0 where it is none. */
static size_t
take_escape(struct parser *p, char to[4])
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char c = p->at < p->size ? p->text[p->at] : '\0';
    const char *found = c ? strchr(escapes, c) : NULL;
    if (c != 'u' && !found)
        return 0;
    p->at++;
    const uint32_t code = found ? (uint32_t)meant[found - escapes] : take_code_point(p);
    return code ? qdqi_utf8_encode(code, to) : 0;
}

/* Takes a string of at most size - 1 bytes; with `to` NULL it may have any length and is passed
   over. */
static enum qdq_code
take_string(struct parser *p, char *to, size_t size)
{
    size_t n = 0;
    if (!take(p, '"'))
        return expected(p, "a string");
    while (p->at < p->size && p->text[p->at] != '"') {
        char bytes[4] = {p->text[p->at++]};
        size_t m = 1;
        if ((unsigned char)bytes[0] < 0x20 ||
            (bytes[0] == '\\' && (m = take_escape(p, bytes)) == 0))
            return expected(p, "a character");
        if (to && m > size - 1 - n)
            return expected(p, "a shorter string");
        if (to)
            memcpy(to + n, bytes, m);
        n += m;
    }
    if (to)
        to[n] = '\0';
    return take(p, '"') ? QDQ_OK : expected(p, "the end of a string");
}

static enum qdq_code
take_number(struct parser *p, int64_t *ret)
{
    int64_t value = 0;
    skip_space(p);
    const size_t start = p->at;
    for (; p->at < p->size && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, p->text[p->at] - '0', &value))
            return expected(p, "a number below 2^63");
    *ret = value;
    return p->at > start ? QDQ_OK : expected(p, "a whole number");
}

static enum qdq_code
take_numbers(struct parser *p, int64_t *to, size_t most, size_t *ret_n)
{
    enum qdq_code code = QDQ_OK;
    *ret_n = 0;
    if (!take(p, '['))
        return expected(p, "a list of numbers");
    if (take(p, ']'))
        return QDQ_OK;
    do {
        if (*ret_n == most)
            return expected(p, "fewer numbers");
        code = take_number(p, &to[(*ret_n)++]);
    } while (!code && take(p, ','));
    return code ? code : take(p, ']') ? QDQ_OK : expected(p, "',' or ']'");
}

/* --- tensors ------------------------------------------------------------------ */

enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };

static enum qdq_code
take_member(struct parser *p, struct tensor *tensor, int *seen)
{
    char key[32];
    int64_t offsets[2];
    size_t n = 0;
    enum qdq_code code = take_string(p, key, sizeof key);
    const int which = strcmp(key, "dtype") == 0          ? DTYPE
                      : strcmp(key, "shape") == 0        ? SHAPE
                      : strcmp(key, "data_offsets") == 0 ? OFFSETS
                                                         : 0;
    if (code)
        return code;
    if (which == 0 || *seen & which)
        return expected(p, "each of \"dtype\", \"shape\" and \"data_offsets\" once");
    *seen |= which;
    if (!take(p, ':'))
        return expected(p, "':'");
    if (which == DTYPE)
        return take_string(p, tensor->dtype, sizeof tensor->dtype);
    if (which == SHAPE)
        return take_numbers(p, tensor->shape, QDQI_NPY_MAX_RANK, &tensor->rank);
    code = take_numbers(p, offsets, 2, &n);
    if (!code && (n != 2 || offsets[0] > offsets[1]))
        return expected(p, "the first and the last offset of a tensor");
    if (!code) {
        tensor->begin = (uint64_t)offsets[0];
        tensor->end = (uint64_t)offsets[1];
    }
    return code;
}

static enum qdq_code
take_tensor(struct parser *p, struct tensor *tensor)
{
    int seen = 0;
    enum qdq_code code = QDQ_OK;
    if (!take(p, '{'))
        return expected(p, "an object");
    do
        code = take_member(p, tensor, &seen);
    while (!code && take(p, ','));
    if (code)
        return code;
    return take(p, '}') && seen == ALL
               ? QDQ_OK
               : expected(p, "\"dtype\", \"shape\" and \"data_offsets\"");
}

/* Passes over "__metadata__": an object of strings. */
static enum qdq_code
pass_metadata(struct parser *p)
{
    enum qdq_code code = QDQ_OK;
    if (!take(p, '{'))
        return expected(p, "an object");
    if (take(p, '}'))
        return QDQ_OK;
    do {
        code = take_string(p, NULL, 0);
        if (!code && !take(p, ':'))
            code = expected(p, "':'");
        if (!code)
            code = take_string(p, NULL, 0);
    } while (!code && take(p, ','));
    return code ? code : take(p, '}') ? QDQ_OK : expected(p, "'}'");
}

static enum qdqi_dtype
dtype_of(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return dtypes[i].dtype;
    return QDQI_UNKNOWN;
}

static enum qdq_code
check_tensor(const struct tensor *t, enum qdqi_dtype dtype, uint64_t there,
             struct qdq_error *err)
{
    int64_t size = (int64_t)qdqi_dtype_size(dtype);
    if (dtype == QDQI_UNKNOWN)
        return qdqi_array_invalid(t->name, err, "dtype '%s' cannot be used", t->dtype);
    if (t->rank == 0)
        return qdqi_array_invalid(t->name, err,
                                  "a scalar; samples lie along axis 0 of an array");
    if (t->shape[0] == 0)
        return qdqi_array_invalid(t->name, err,
                                  "it has no samples: axis 0 has the size 0");
    for (size_t i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(size, t->shape[i], &size))
            return qdqi_array_invalid(t->name, err,
                                      "its shape is larger than 2^63 bytes");
    if ((uint64_t)size != t->end - t->begin)
        return qdqi_array_invalid(t->name, err,
                                  "its shape needs %" PRId64
                                  " bytes, and its offsets are %" PRIu64 " apart",
                                  size, t->end - t->begin);
    return t->end <= there
               ? QDQ_OK
               : qdqi_array_invalid(t->name, err,
                                    "truncated: it ends at byte %" PRIu64
                                    " behind the header, and the file at %" PRIu64,
                                    t->end, there);
}

/* Adds a tensor to the arrays. `start` is the byte of the file behind the header. */
static enum qdq_code
add_tensor(struct qdq_dataset *ds, const struct tensor *t, uint64_t start,
           size_t *capacity, struct qdqi_map *names, struct qdq_error *err)
{
    const enum qdqi_dtype dtype = dtype_of(t->dtype);
    const size_t n = ds->info.n_arrays;
    size_t same = *capacity;
    enum qdq_code code = check_tensor(t, dtype, ds->info.size - start, err);
    if (!code)
        code = qdqi_dataset_check_arrays(n + 1, err);
    if (code)
        return code;
    if (qdqi_map_get(names, t->name))
        return qdqi_array_invalid(t->name, err, "the name is there twice");
    ds->arrays =
        qdqi_arena_grow(ds->arena, ds->arrays, n, capacity, sizeof *ds->arrays);
    ds->items = qdqi_arena_grow(ds->arena, ds->items, n, &same, sizeof *ds->items);
    const char *name = qdqi_arena_strdup(ds->arena, t->name);
    const int64_t *shape =
        qdqi_arena_copy(ds->arena, t->shape, t->rank, sizeof *t->shape);
    if (!ds->arrays || !ds->items || !name || !shape ||
        !qdqi_map_put(names, name, (void *)(uintptr_t)name))
        return qdqi_no_memory(err);
    ds->arrays[n] =
        (struct qdq_array){name, qdqi_dtype_name((int)dtype), t->rank, shape};
    ds->items[n] = (struct qdqi_item){.dtype = dtype,
                                      .offset = start + t->begin,
                                      .size = t->end - t->begin,
                                      .input = QDQI_NAMED,
                                      .in_file = true};
    ds->info.arrays = ds->arrays;
    ds->info.n_arrays++;
    return QDQ_OK;
}

/* Takes a member of the header. */
static enum qdq_code
take_row(struct qdq_dataset *ds, struct parser *p, struct tensor *tensor,
         size_t *capacity, struct qdqi_map *names)
{
    enum qdq_code code = take_string(p, tensor->name, sizeof tensor->name);
    if (code)
        return code;
    if (!take(p, ':'))
        return expected(p, "':'");
    if (strcmp(tensor->name, "__metadata__") == 0)
        return pass_metadata(p);
    code = take_tensor(p, tensor);
    return code ? code
                : add_tensor(ds, tensor, LENGTH + p->size, capacity, names, p->err);
}

static enum qdq_code
parse_header(struct qdq_dataset *ds, struct parser *p, struct tensor *tensor)
{
    struct qdqi_map *names = qdqi_map_new(ds->arena);
    size_t capacity = 0;
    enum qdq_code code = QDQ_OK;
    if (!names)
        return qdqi_no_memory(p->err);
    if (!take(p, '{'))
        return expected(p, "'{'");
    if (!take(p, '}')) {
        do
            code = take_row(ds, p, tensor, &capacity, names);
        while (!code && take(p, ','));
        if (!code && !take(p, '}'))
            code = expected(p, "',' or '}'");
    }
    skip_space(p);
    return code ? code : p->at < p->size ? expected(p, "nothing after '}'") : QDQ_OK;
}

/* --- the file ----------------------------------------------------------------- */

static uint64_t
length_of(const unsigned char *start)
{
    uint64_t length = 0;
    for (int i = LENGTH; i-- > 0;)
        length = length << 8 | start[i];
    return length;
}

bool
qdqi_safetensors_starts(const unsigned char *start, size_t got, uint64_t size)
{
    const uint64_t length = got > LENGTH ? length_of(start) : 0;
    /* longer headers than the format allows are something else */
    return length >= 2 && length <= 100000000 && length <= size - LENGTH &&
           start[LENGTH] == '{';
}

enum qdq_code
qdqi_safetensors_read(struct qdq_dataset *ds, struct qdq_error *err)
{
    unsigned char start[LENGTH];
    struct tensor *tensor = NULL;
    size_t got = 0;
    enum qdq_code code = qdqi_data_read(ds->fd, 0, start, LENGTH, &got, err);
    const uint64_t length = code || got < LENGTH ? 0 : length_of(start);
    if (code)
        return code;
    if (length > QDQI_SAFETENSORS_MAX_HEADER)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                             "the safetensors file has a header of %" PRIu64
                             " bytes, and at most %d are read",
                             length, QDQI_SAFETENSORS_MAX_HEADER);
    char *text = malloc((size_t)length + 1);
    tensor = calloc(1, sizeof *tensor);
    code = text && tensor
               ? qdqi_data_read(ds->fd, LENGTH, text, (size_t)length, &got, err)
               : qdqi_no_memory(err);
    if (!code) {
        struct parser p = {.text = text, .size = got, .err = err};
        code = got == length ? parse_header(ds, &p, tensor)
                             : expected(&p, "more bytes of the header");
    }
    free(tensor);
    free(text);
    return code;
}
