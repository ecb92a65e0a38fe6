/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/parquet/thrift.h"

enum { DEEPEST = 16 }; /* structs and lists in each other that are skipped */

static void
fail(struct qdqi_thrift *t, const char *why)
{
    if (!t->failed)
        t->why = why;
    t->failed = true;
}

static unsigned
take_byte(struct qdqi_thrift *t)
{
    if (t->failed || t->at >= t->size) {
        fail(t, "it ends too early");
        return 0;
    }
    return t->bytes[t->at++];
}

/* Reads an unsigned number of 7 bits a byte, the lowest first. */
static uint64_t
take_varint(struct qdqi_thrift *t)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const unsigned byte = take_byte(t);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return t->failed ? 0 : value;
    }
    fail(t, "a number of more than 64 bits");
    return 0;
}

static int64_t
take_zigzag(struct qdqi_thrift *t)
{
    const uint64_t value = take_varint(t);
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static void
pass(struct qdqi_thrift *t, uint64_t n)
{
    if (t->failed || n > t->size - t->at)
        fail(t, "it ends too early");
    else
        t->at += (size_t)n;
}

bool
qdqi_thrift_next(struct qdqi_thrift *t, struct qdqi_thrift_field *field)
{
    const unsigned head = take_byte(t);
    if (t->failed || head == 0)
        return false;
    field->type = head & 15;
    if (head >> 4) {
        field->id += head >> 4;
    } else {
        field->id = take_zigzag(t);
        if (field->id < INT16_MIN || field->id > INT16_MAX)
            fail(t, "a field's number is too large");
    }
    return !t->failed;
}

/* Reads the head of a list: the type and the number of its elements. */
static size_t
take_list(struct qdqi_thrift *t, unsigned *ret_type)
{
    const unsigned head = take_byte(t);
    const uint64_t n = head >> 4 == 15 ? take_varint(t) : head >> 4;
    *ret_type = head & 15;
    /* an element fills a byte at least */
    if (!t->failed && n > t->size - t->at)
        fail(t, "a list of more elements than there are bytes");
    return t->failed ? 0 : (size_t)n;
}

static void skip_value(struct qdqi_thrift *t, unsigned type, bool in_list,
                       unsigned depth);

static void
skip_struct(struct qdqi_thrift *t, unsigned depth)
{
    struct qdqi_thrift_field field = {0};
    while (qdqi_thrift_next(t, &field))
        skip_value(t, field.type, false, depth);
}

static void
skip_list(struct qdqi_thrift *t, unsigned depth)
{
    unsigned type;
    const size_t n = take_list(t, &type);
    for (size_t i = 0; i < n && !t->failed; i++)
        skip_value(t, type, true, depth);
}

static void
skip_map(struct qdqi_thrift *t, unsigned depth)
{
    const uint64_t n = take_varint(t);
    const unsigned types = n > 0 ? take_byte(t) : 0;
    for (uint64_t i = 0; i < n && !t->failed; i++) {
        skip_value(t, types >> 4, true, depth);
        skip_value(t, types & 15, true, depth);
    }
}

/* A bool is in its field's type; in a list it fills a byte. */
static void
skip_value(struct qdqi_thrift *t, unsigned type, bool in_list, unsigned depth)
{
    if (t->failed || depth >= DEEPEST) {
        fail(t, "structs lie too deep in each other");
        return;
    }
    switch (type) {
    case QDQI_THRIFT_TRUE:
    case QDQI_THRIFT_FALSE:
        pass(t, in_list ? 1 : 0);
        break;
    case QDQI_THRIFT_I8:
        pass(t, 1);
        break;
    case QDQI_THRIFT_I16:
    case QDQI_THRIFT_I32:
    case QDQI_THRIFT_I64:
        take_varint(t);
        break;
    case QDQI_THRIFT_DOUBLE:
        pass(t, 8);
        break;
    case QDQI_THRIFT_BINARY:
        pass(t, take_varint(t));
        break;
    case QDQI_THRIFT_LIST:
    case QDQI_THRIFT_SET:
        skip_list(t, depth + 1);
        break;
    case QDQI_THRIFT_MAP:
        skip_map(t, depth + 1);
        break;
    case QDQI_THRIFT_STRUCT:
        skip_struct(t, depth + 1);
        break;
    case QDQI_THRIFT_UUID:
        pass(t, 16);
        break;
    default:
        fail(t, "a field of an unknown type");
    }
}

void
qdqi_thrift_skip(struct qdqi_thrift *t, const struct qdqi_thrift_field *field)
{
    skip_value(t, field->type, false, 0);
}

int64_t
qdqi_thrift_integer(struct qdqi_thrift *t, const struct qdqi_thrift_field *field)
{
    if (field->type == QDQI_THRIFT_I8)
        return (int8_t)take_byte(t);
    if (field->type == QDQI_THRIFT_I16 || field->type == QDQI_THRIFT_I32 ||
        field->type == QDQI_THRIFT_I64)
        return take_zigzag(t);
    fail(t, "a field is no integer");
    return 0;
}

bool
qdqi_thrift_bool(struct qdqi_thrift *t, const struct qdqi_thrift_field *field)
{
    if (field->type != QDQI_THRIFT_TRUE && field->type != QDQI_THRIFT_FALSE)
        fail(t, "a field is no boolean");
    return field->type == QDQI_THRIFT_TRUE;
}

const char *
qdqi_thrift_text(struct qdqi_thrift *t, const struct qdqi_thrift_field *field,
                 size_t *ret_size)
{
    *ret_size = 0;
    if (field->type != QDQI_THRIFT_BINARY) {
        fail(t, "a field is no text");
        return "";
    }
    const uint64_t n = take_varint(t);
    const size_t from = t->at;
    pass(t, n);
    if (t->failed)
        return "";
    *ret_size = (size_t)n;
    return (const char *)t->bytes + from;
}

size_t
qdqi_thrift_structs(struct qdqi_thrift *t, const struct qdqi_thrift_field *field)
{
    unsigned type = QDQI_THRIFT_STRUCT;
    const size_t n = field->type == QDQI_THRIFT_LIST ? take_list(t, &type) : 0;
    if (field->type != QDQI_THRIFT_LIST || (n > 0 && type != QDQI_THRIFT_STRUCT)) {
        fail(t, "a field is no list of structs");
        return 0;
    }
    return n;
}

bool
qdqi_thrift_enter(struct qdqi_thrift *t, const struct qdqi_thrift_field *field)
{
    if (field->type != QDQI_THRIFT_STRUCT)
        fail(t, "a field is no struct");
    return !t->failed;
}
