/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/proto.h"

#include <inttypes.h>
#include <string.h>

/* --- bytes ---------------------------------------------------------------- */

static enum qdq_code
ends_early(const struct qdqi_proto *p, struct qdq_error *err)
{
    return qdqi_array_invalid(p->stream->name, err,
                              "no TensorProto: a field goes beyond its end");
}

/* Consumes exactly `size` bytes; with `to` NULL they are skipped. */
static enum qdq_code
consume(struct qdqi_proto *p, void *to, uint64_t size, struct qdq_error *err)
{
    if (size > p->left + (p->n - p->at))
        return ends_early(p, err);
    size_t n = size < p->n - p->at ? (size_t)size : p->n - p->at;
    if (to && n > 0)
        memcpy(to, p->buffer + p->at, n);
    p->at += n;
    size -= n;
    p->left -= size;
    return to ? qdqi_stream_read(p->stream, (char *)to + n, (size_t)size, err)
              : qdqi_stream_skip(p->stream, size, err);
}

static enum qdq_code
next_byte(struct qdqi_proto *p, unsigned char *ret, struct qdq_error *err)
{
    if (p->at == p->n) {
        p->at = 0;
        p->n = p->left < sizeof p->buffer ? (size_t)p->left : sizeof p->buffer;
        p->left -= p->n;
        if (p->n == 0)
            return ends_early(p, err);
        enum qdq_code code = qdqi_stream_read(p->stream, p->buffer, p->n, err);
        if (code)
            return code;
    }
    *ret = p->buffer[p->at++];
    return QDQ_OK;
}

static enum qdq_code
varint(struct qdqi_proto *p, uint64_t *ret, unsigned *ret_size, struct qdq_error *err)
{
    uint64_t value = 0;
    unsigned char byte = 0x80;
    unsigned n = 0;
    for (; byte & 0x80; n++) {
        if (n == 10)
            return qdqi_array_invalid(p->stream->name, err,
                                      "no TensorProto: a number has more than 10 "
                                      "bytes");
        enum qdq_code code = next_byte(p, &byte, err);
        if (code)
            return code;
        value |= (uint64_t)(byte & 0x7f) << 7 * n;
    }
    *ret = value;
    *ret_size = n;
    return QDQ_OK;
}

/* --- fields --------------------------------------------------------------- */

/* The wire types of protobuf, and the fields of TensorProto (onnx.proto). */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum {
    DIMS = 1,
    DATA_TYPE = 2,
    SEGMENT = 3,
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    NAME = 8,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11,
    EXTERNAL_DATA = 13,
    DATA_LOCATION = 14,
};

struct field {
    uint64_t number;
    unsigned wire;
    uint64_t size;  /* bytes of the field's content, for a wire type with a length */
    uint64_t value; /* value of a varint */
};

/* Reads a field's tag and length, or a varint with its value. */
static enum qdq_code
next_field(struct qdqi_proto *p, struct field *f, struct qdq_error *err)
{
    uint64_t tag;
    unsigned n;
    enum qdq_code code = varint(p, &tag, &n, err);
    if (code)
        return code;
    *f = (struct field){.number = tag >> 3, .wire = tag & 7};
    switch (f->wire) {
    case VARINT:
        return varint(p, &f->value, &n, err);
    case BYTES:
        return varint(p, &f->size, &n, err);
    case FIXED32:
        f->size = 4;
        return QDQ_OK;
    case FIXED64:
        f->size = 8;
        return QDQ_OK;
    default:
        return qdqi_array_invalid(p->stream->name, err,
                                  "no TensorProto: a field of wire type %u", f->wire);
    }
}

/* Returns the typed field that holds the elements of a type when they are not in
   raw_data; 0 when that type is not supported. */
static unsigned
list_of(enum qdqi_dtype dtype)
{
    switch (dtype) {
    case QDQI_FLOAT32:
        return FLOAT_DATA;
    case QDQI_FLOAT64:
        return DOUBLE_DATA;
    case QDQI_INT64:
        return INT64_DATA;
    case QDQI_UINT32:
    case QDQI_UINT64:
        return UINT64_DATA;
    case QDQI_BOOL:
    case QDQI_UINT8:
    case QDQI_INT8:
    case QDQI_UINT16:
    case QDQI_INT16:
    case QDQI_INT32:
    case QDQI_FLOAT16:
        return INT32_DATA;
    default:
        return 0;
    }
}

static unsigned
wire_of(unsigned list)
{
    return list == FLOAT_DATA ? FIXED32 : list == DOUBLE_DATA ? FIXED64 : VARINT;
}

/* --- the first reading: the head ----------------------------------------- */

/* The findings of the first reading so far. */
struct found {
    struct qdqi_proto_head *head;
    int64_t type;
    uint64_t raw; /* bytes of raw_data */
    bool has_raw;
    uint64_t list;    /* elements of the typed field */
    unsigned list_at; /* number of that field */
};

static enum qdq_code
bad_wire(struct qdqi_proto *p, const struct field *f, struct qdq_error *err)
{
    return qdqi_array_invalid(p->stream->name, err,
                              "no TensorProto: field %" PRIu64 " has wire type %u",
                              f->number, f->wire);
}

static enum qdq_code
add_dim(struct qdqi_proto *p, struct qdqi_proto_head *head, uint64_t value,
        struct qdq_error *err)
{
    if (head->rank == QDQI_PROTO_MAX_RANK)
        return qdqi_array_invalid(p->stream->name, err, "it has more than %d axes",
                                  QDQI_PROTO_MAX_RANK);
    if (value > INT64_MAX)
        return qdqi_array_invalid(p->stream->name, err, "axis %zu has a negative size",
                                  head->rank);
    head->shape[head->rank++] = (int64_t)value;
    return QDQ_OK;
}

/* Reads packed varints: counts them, and adds each as a dimension if `dims` is
   given. */
static enum qdq_code
read_packed(struct qdqi_proto *p, uint64_t size, struct qdqi_proto_head *dims,
            uint64_t *count, struct qdq_error *err)
{
    while (size > 0) {
        uint64_t value;
        unsigned n;
        enum qdq_code code = varint(p, &value, &n, err);
        if (!code && n > size)
            code = ends_early(p, err);
        if (!code && dims)
            code = add_dim(p, dims, value, err);
        if (code)
            return code;
        size -= n;
        ++*count;
    }
    return QDQ_OK;
}

static enum qdq_code
read_dims(struct qdqi_proto *p, const struct field *f, struct found *found,
          struct qdq_error *err)
{
    uint64_t count = 0;
    if (f->wire == VARINT)
        return add_dim(p, found->head, f->value, err);
    return f->wire == BYTES ? read_packed(p, f->size, found->head, &count, err)
                            : bad_wire(p, f, err);
}

static enum qdq_code
read_list(struct qdqi_proto *p, const struct field *f, struct found *found,
          struct qdq_error *err)
{
    unsigned wire = wire_of((unsigned)f->number);
    uint64_t element = wire == FIXED32 ? 4 : 8;
    if (found->list_at && found->list_at != f->number)
        return qdqi_array_invalid(p->stream->name, err,
                                  "it has elements in more than one form");
    found->list_at = (unsigned)f->number;
    if (f->wire != wire && f->wire != BYTES)
        return bad_wire(p, f, err);
    if (f->wire == VARINT) {
        found->list++;
        return QDQ_OK;
    }
    if (wire == VARINT)
        return read_packed(p, f->size, NULL, &found->list, err);
    if (f->size % element != 0)
        return qdqi_array_invalid(p->stream->name, err, "it ends within an element");
    found->list += f->size / element;
    return consume(p, NULL, f->size, err);
}

static enum qdq_code
read_name(struct qdqi_proto *p, const struct field *f, struct found *found,
          struct qdq_error *err)
{
    if (f->wire != BYTES)
        return bad_wire(p, f, err);
    if (f->size > QDQI_PROTO_MAX_NAME)
        return qdqi_array_invalid(p->stream->name, err,
                                  "its name is longer than %d bytes",
                                  QDQI_PROTO_MAX_NAME);
    enum qdq_code code = consume(p, found->head->name, f->size, err);
    found->head->name[f->size] = '\0';
    return code;
}

static enum qdq_code
read_raw(struct qdqi_proto *p, const struct field *f, struct found *found,
         struct qdq_error *err)
{
    if (f->wire != BYTES)
        return bad_wire(p, f, err);
    if (found->has_raw)
        return qdqi_array_invalid(p->stream->name, err, "raw_data is there twice");
    found->has_raw = true;
    found->raw = f->size;
    return consume(p, NULL, f->size, err);
}

static enum qdq_code
read_field(struct qdqi_proto *p, const struct field *f, struct found *found,
           struct qdq_error *err)
{
    switch (f->number) {
    case DIMS:
        return read_dims(p, f, found, err);
    case DATA_TYPE:
        found->type = (int64_t)f->value;
        return f->wire == VARINT ? QDQ_OK : bad_wire(p, f, err);
    case FLOAT_DATA:
    case INT32_DATA:
    case INT64_DATA:
    case DOUBLE_DATA:
    case UINT64_DATA:
        return read_list(p, f, found, err);
    case NAME:
        return read_name(p, f, found, err);
    case RAW_DATA:
        return read_raw(p, f, found, err);
    case STRING_DATA:
        return qdqi_array_invalid(p->stream->name, err, "its elements are strings");
    case SEGMENT:
        return qdqi_array_invalid(p->stream->name, err, "it is a segment of a tensor");
    case DATA_LOCATION:
        if (f->wire == VARINT && f->value == 0)
            return QDQ_OK;
        /* fall through */
    case EXTERNAL_DATA:
        return qdqi_array_invalid(p->stream->name, err,
                                  "its elements lie in another file");
    default:
        return f->number == 0      ? bad_wire(p, f, err)
               : f->wire == VARINT ? QDQ_OK
                                   : consume(p, NULL, f->size, err);
    }
}

/* Checks that type, shape and elements agree. */
static enum qdq_code
check_found(const struct qdqi_proto *p, const struct found *found,
            struct qdq_error *err)
{
    struct qdqi_proto_head *head = found->head;
    const char *name = p->stream->name;
    int64_t type = found->type;
    bool known = type > 0 && type < QDQI_N_DTYPES;
    enum qdqi_dtype dtype = known ? (enum qdqi_dtype)type : QDQI_UNKNOWN;
    uint64_t element = qdqi_dtype_size((int)dtype), bytes = element;
    if (!list_of(dtype))
        return qdqi_array_invalid(
            name, err, "elements of type %s (%" PRId64 ") cannot be used",
            known ? qdqi_dtype_name((int)dtype) : "unknown", type);
    for (size_t i = 0; i < head->rank; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)head->shape[i], &bytes) ||
            bytes > INT64_MAX)
            return qdqi_array_invalid(name, err, "its shape is too large");
    head->dtype = dtype;
    head->n = bytes / element;
    head->field = found->has_raw ? RAW_DATA : list_of(dtype);
    bool empty = head->n == 0 && !found->list_at;
    if (found->has_raw ? found->list_at != 0 : found->list_at != head->field && !empty)
        return qdqi_array_invalid(name, err,
                                  found->list_at ? "its elements have another form "
                                                   "than its type"
                                                 : "it has no elements");
    uint64_t there = found->has_raw ? found->raw / element : found->list;
    if (there != head->n || (found->has_raw && found->raw % element != 0))
        return qdqi_array_invalid(name, err,
                                  "%" PRIu64 " elements are there, and its shape has "
                                  "%" PRIu64,
                                  there, head->n);
    return QDQ_OK;
}

enum qdq_code
qdqi_proto_read(struct qdqi_stream *stream, uint64_t size, struct qdqi_proto_head *ret,
                struct qdq_error *err)
{
    struct qdqi_proto p = {.stream = stream, .left = size};
    struct found found = {.head = ret};
    enum qdq_code code = QDQ_OK;
    ret->rank = 0;
    ret->name[0] = '\0';
    while (!code && (p.left > 0 || p.at < p.n)) {
        struct field f;
        code = next_field(&p, &f, err);
        if (!code)
            code = read_field(&p, &f, &found, err);
    }
    if (!code)
        code = qdqi_stream_end(stream, err);
    return code ? code : check_found(&p, &found, err);
}

/* --- the second reading: the elements ------------------------------------ */

void
qdqi_proto_start(struct qdqi_proto *p, struct qdqi_stream *stream, uint64_t size,
                 const struct qdqi_proto_head *head)
{
    p->stream = stream;
    p->left = size;
    p->at = p->n = 0;
    p->dtype = head->dtype;
    p->field = head->field;
    p->chunk = 0;
    p->single = false;
}

/* Stores the low bytes of a number, little-endian. INVALID_DATASET when it does not
   fit the type. */
static enum qdq_code
put_number(struct qdqi_proto *p, uint64_t value, unsigned char *to,
           struct qdq_error *err)
{
    size_t size = qdqi_dtype_size((int)p->dtype);
    /* int32 values: a varint may have been written with more bytes */
    if (p->field == INT32_DATA)
        value = (uint64_t)(int64_t)(int32_t)value;
    int64_t number = (int64_t)value;
    bool fits = true;
    switch (p->dtype) {
    case QDQI_BOOL:
        fits = value <= 1;
        break;
    case QDQI_INT8:
    case QDQI_INT16:
    case QDQI_INT32: {
        int64_t bound = (int64_t)1 << (8 * size - 1);
        fits = number >= -bound && number < bound;
        break;
    }
    case QDQI_UINT8:
    case QDQI_UINT16:
    case QDQI_FLOAT16:
    case QDQI_UINT32:
        fits = value >> 8 * size == 0;
        break;
    default:
        break;
    }
    if (!fits)
        return qdqi_array_invalid(p->stream->name, err,
                                  "element %" PRId64 " does not fit in %s", number,
                                  qdqi_dtype_name((int)p->dtype));
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)(value >> 8 * i);
    return QDQ_OK;
}

/* Moves to the next field with elements. An unpacked varint is returned in *alone. */
static enum qdq_code
find_chunk(struct qdqi_proto *p, uint64_t *alone, struct qdq_error *err)
{
    for (;;) {
        struct field f;
        enum qdq_code code = next_field(p, &f, err);
        if (code)
            return code;
        if (f.number == p->field) {
            p->single = f.wire == VARINT;
            p->chunk = f.size;
            *alone = f.value;
            return QDQ_OK;
        }
        if (f.wire != VARINT && (code = consume(p, NULL, f.size, err)))
            return code;
    }
}

/* Reads elements of the current field: at least one, if any are left. */
static enum qdq_code
read_elements(struct qdqi_proto *p, unsigned char *to, size_t size, size_t *ret_size,
              struct qdq_error *err)
{
    if (p->field == RAW_DATA || wire_of(p->field) != VARINT) {
        *ret_size = size < p->chunk ? size : (size_t)p->chunk;
        p->chunk -= *ret_size;
        return consume(p, to, *ret_size, err);
    }
    uint64_t value;
    unsigned n;
    enum qdq_code code = varint(p, &value, &n, err);
    if (!code && n > p->chunk)
        code = ends_early(p, err);
    if (code)
        return code;
    p->chunk -= n;
    *ret_size = qdqi_dtype_size((int)p->dtype);
    return put_number(p, value, to, err);
}

enum qdq_code
qdqi_proto_elements(struct qdqi_proto *p, void *to, size_t size, struct qdq_error *err)
{
    unsigned char *at = to;
    while (size > 0) {
        uint64_t alone = 0;
        size_t n = 0;
        enum qdq_code code = QDQ_OK;
        if (p->chunk == 0)
            code = find_chunk(p, &alone, err);
        if (!code && p->single) {
            n = qdqi_dtype_size((int)p->dtype);
            code = put_number(p, alone, at, err);
            p->single = false;
        } else if (!code && p->chunk > 0) {
            code = read_elements(p, at, size, &n, err);
        }
        if (code)
            return code;
        at += n;
        size -= n;
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_proto_end(struct qdqi_proto *p, struct qdq_error *err)
{
    enum qdq_code code = consume(p, NULL, p->left + (p->n - p->at), err);
    return code ? code : qdqi_stream_end(p->stream, err);
}
