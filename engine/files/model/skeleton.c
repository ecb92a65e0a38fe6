/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk does the cutting and the expanding: it copies a message and its submessages
 * field by field, asks a `replace` function about each field of a tensor, and writes
 * new lengths in front of what changed. It takes two passes: the first measures every
 * submessage (sizes in the order of their starts), the second writes.
 */
#include "config.h"
#include "files/model/skeleton.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* bytes; the threshold that the tools of the onnx package use */
    MIN_EXTERNAL = 1024,
    MIN_PAGE_ALIGNED = 1 << 20,
    MAX_DEPTH = 100,          /* levels of nested messages; the parser recurses */
    MAX_SKELETON = 256 << 20, /* bytes */
    MAX_FIELDS = 16 << 20,    /* each field costs the parser memory */
};

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/*
 * Every kind of message that the parser takes apart. Messages on the way to a tensor's
 * data have a name of their own, the others are PLAIN. A field that is not listed as a
 * message is copied as bytes; so the parser accepts whatever the walk accepts.
 */
enum message {
    LEAF,
    PLAIN, /* holds no messages */
    MODEL,
    TRAINING,
    GRAPH,
    NODE,
    ATTRIBUTE,
    FUNCTION,
    INITIALIZER, /* a TensorProto in GraphProto.initializer of the main graph */
    TENSOR,      /* a TensorProto anywhere else */
    ENTRY,       /* an entry of a tensor's external_data */
    SPARSE,
    VALUE_INFO,
    TYPE,
    TYPE_TENSOR,
    TYPE_SEQUENCE,
    TYPE_MAP,
    TYPE_OPTIONAL,
    SHAPE,
    ANNOTATION,
    N_MESSAGES
};

enum { N_FIELDS = 32 };

/* children[m][f]: the message in field f of m (onnx.proto, ONNX 1.19). */
static const uint8_t children[N_MESSAGES][N_FIELDS] = {
    [MODEL] =
        {[7] = GRAPH, [8] = PLAIN, [14] = PLAIN, [20] = TRAINING, [25] = FUNCTION},
    [TRAINING] = {[1] = GRAPH, [2] = GRAPH, [3] = PLAIN, [4] = PLAIN},
    [GRAPH] = {[1] = NODE,
               [5] = TENSOR,
               [11] = VALUE_INFO,
               [12] = VALUE_INFO,
               [13] = VALUE_INFO,
               [14] = ANNOTATION,
               [15] = SPARSE,
               [16] = PLAIN},
    [NODE] = {[5] = ATTRIBUTE, [9] = PLAIN},
    [ATTRIBUTE] = {[5] = TENSOR,
                   [6] = GRAPH,
                   [10] = TENSOR,
                   [11] = GRAPH,
                   [14] = TYPE,
                   [15] = TYPE,
                   [22] = SPARSE,
                   [23] = SPARSE},
    [FUNCTION] =
        {[7] = NODE, [9] = PLAIN, [11] = ATTRIBUTE, [12] = VALUE_INFO, [14] = PLAIN},
    [INITIALIZER] = {[3] = PLAIN, [13] = ENTRY, [16] = PLAIN},
    [TENSOR] = {[3] = PLAIN, [13] = ENTRY, [16] = PLAIN},
    [SPARSE] = {[1] = TENSOR, [2] = TENSOR},
    [VALUE_INFO] = {[2] = TYPE, [4] = PLAIN},
    [TYPE] = {[1] = TYPE_TENSOR,
              [4] = TYPE_SEQUENCE,
              [5] = TYPE_MAP,
              [8] = TYPE_TENSOR,
              [9] = TYPE_OPTIONAL},
    [TYPE_TENSOR] = {[2] = SHAPE},
    [TYPE_SEQUENCE] = {[1] = TYPE},
    [TYPE_MAP] = {[2] = TYPE},
    [TYPE_OPTIONAL] = {[1] = TYPE},
    [SHAPE] = {[1] = PLAIN},
    [ANNOTATION] = {[2] = PLAIN},
};

struct field {
    uint32_t number, wire;
    const uint8_t *start, *payload, *end; /* start points to the tag */
};

/* The replacement of a field: some bytes, then optionally a bulk. */
struct piece {
    uint8_t head[512]; /* room for a location of 255 bytes and the numbers */
    size_t head_size;
    const struct qdqi_bulk *bulk;
};

struct walk {
    const uint8_t *base;
    size_t size;
    enum qdq_code (*replace)(struct walk *w, enum message message,
                             const struct field *field, bool *ret_replaced,
                             struct piece *ret, struct qdq_error *err);
    struct qdqi_sink *sink; /* NULL in the measuring pass */
    uint64_t *sizes;        /* sizes of the submessages, in the order of their starts */
    size_t n_sizes, cap_sizes, next_size;
    size_t n_fields;
    struct qdqi_bulk *bulks;
    size_t n_bulks, cap_bulks, next_bulk;
    enum qdqi_expand how;
    struct qdqi_layout *layout;
    /*
     * depth within messages whose tensors do not become external (functions, training
     * information, sparse tensors), because few readers look for external data there
     */
    unsigned inside;
};

static enum qdq_code
damaged(const struct walk *w, const uint8_t *at, const char *what,
        struct qdq_error *err)
{
    char offset[24];
    snprintf(offset, sizeof offset, "%zu", (size_t)(at - w->base));
    return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_OFFSET, offset,
                         "not an ONNX model: %s at byte %s", what, offset);
}

/* --- wire format ---------------------------------------------------------- */

static bool
read_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && *p < end; shift += 7) {
        uint8_t byte = *(*p)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret = value;
            return true;
        }
    }
    return false;
}

static size_t
write_varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        to[n++] = (uint8_t)(value | 0x80);
    to[n++] = (uint8_t)value;
    return n;
}

static size_t
varint_size(uint64_t value)
{
    uint8_t scratch[10];
    return write_varint(scratch, value);
}

static size_t
write_tag(uint8_t *to, uint32_t number, uint32_t wire)
{
    return write_varint(to, (uint64_t)number << 3 | wire);
}

static enum qdq_code
read_field(const struct walk *w, const uint8_t *p, const uint8_t *end,
           struct field *ret, struct qdq_error *err)
{
    uint64_t tag, length = 0;
    ret->start = p;
    if (!read_varint(&p, end, &tag) || tag >> 3 == 0 || tag >> 3 > 536870911)
        return damaged(w, ret->start, "a bad field tag", err);
    ret->number = (uint32_t)(tag >> 3);
    ret->wire = tag & 7;
    ret->payload = p;
    switch (ret->wire) {
    case WIRE_VARINT:
        if (!read_varint(&p, end, &length))
            return damaged(w, ret->payload, "a number that does not end", err);
        ret->end = p;
        return QDQ_OK;
    case WIRE_64:
        length = 8;
        break;
    case WIRE_32:
        length = 4;
        break;
    case WIRE_BYTES:
        if (!read_varint(&p, end, &length))
            return damaged(w, ret->payload, "a length that does not end", err);
        ret->payload = p;
        break;
    default:
        return damaged(w, ret->start, "an unknown wire type", err);
    }
    if (length > (uint64_t)(end - p))
        return damaged(w, ret->start, "a field longer than what is left", err);
    ret->end = p + length;
    return QDQ_OK;
}

/* --- the walk ------------------------------------------------------------- */

static enum message
child_of(enum message message, const struct field *field, unsigned depth)
{
    if (field->wire != WIRE_BYTES || field->number >= N_FIELDS)
        return LEAF;
    enum message child = children[message][field->number];
    bool main_graph = message == GRAPH && depth == 1;
    return child == TENSOR && main_graph ? INITIALIZER : child;
}

static bool
keeps_its_tensors(enum message message)
{
    return message == FUNCTION || message == TRAINING || message == SPARSE;
}

static enum qdq_code
put(struct walk *w, const void *data, size_t size, uint64_t *total,
    struct qdq_error *err)
{
    *total += size;
    return w->sink ? w->sink->bytes(w->sink, data, size, err) : QDQ_OK;
}

static enum qdq_code
push_size(struct walk *w, struct qdq_error *err)
{
    uint64_t *sizes = qdqi_grow(w->sizes, &w->cap_sizes, w->n_sizes + 1, sizeof *sizes);
    if (!sizes)
        return qdqi_no_memory(err);
    w->sizes = sizes;
    w->n_sizes++;
    return QDQ_OK;
}

static enum qdq_code walk_message(struct walk *w, enum message message,
                                  const uint8_t *p, const uint8_t *end, unsigned depth,
                                  uint64_t *ret_size, struct qdq_error *err);

/* Copies a submessage: its tag, its new length, its walked contents. */
static enum qdq_code
walk_child(struct walk *w, enum message child, const struct field *f, unsigned depth,
           uint64_t *total, struct qdq_error *err)
{
    uint8_t head[20];
    size_t n = write_tag(head, f->number, f->wire);
    size_t slot = w->sink ? w->next_size++ : w->n_sizes;
    uint64_t size = 0;
    enum qdq_code code = QDQ_OK;
    if (w->sink) {
        n += write_varint(head + n, w->sizes ? w->sizes[slot] : 0);
        code = w->sink->bytes(w->sink, head, n, err);
    } else {
        code = push_size(w, err);
    }
    w->inside += keeps_its_tensors(child);
    if (!code)
        code = walk_message(w, child, f->payload, f->end, depth + 1, &size, err);
    w->inside -= keeps_its_tensors(child);
    if (code)
        return code;
    if (!w->sink) {
        w->sizes[slot] = size;
        n += varint_size(size);
    }
    *total += n + size;
    return QDQ_OK;
}

/* Handles a field of a tensor: asks `replace` for the bytes that take its place. */
static enum qdq_code
walk_tensor_field(struct walk *w, enum message message, const struct field *f,
                  uint64_t *total, struct qdq_error *err)
{
    struct piece piece = {.head_size = 0};
    bool replaced = false;
    enum qdq_code code = w->replace(w, message, f, &replaced, &piece, err);
    if (code)
        return code;
    if (!replaced)
        return put(w, f->start, (size_t)(f->end - f->start), total, err);
    if ((code = put(w, piece.head, piece.head_size, total, err)) || !piece.bulk)
        return code;
    *total += piece.bulk->size;
    return w->sink ? w->sink->bulk(w->sink, piece.bulk, err) : QDQ_OK;
}

static enum qdq_code
walk_message(struct walk *w, enum message message, const uint8_t *p, const uint8_t *end,
             unsigned depth, uint64_t *ret_size, struct qdq_error *err)
{
    uint64_t total = 0;
    bool seen_graph = false;
    if (depth > MAX_DEPTH)
        return damaged(w, p, "messages nested more than 100 deep", err);
    while (p < end) {
        struct field f;
        enum qdq_code code = read_field(w, p, end, &f, err);
        if (code)
            return code;
        if (++w->n_fields > MAX_FIELDS)
            return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                                 "the model has more than %d fields", MAX_FIELDS);
        if (message == ENTRY && f.wire == WIRE_BYTES &&
            /* the parser would end the string there */
            memchr(f.payload, 0, (size_t)(f.end - f.payload)))
            return damaged(w, f.start, "a NUL in what says where external data is",
                           err);
        enum message child = child_of(message, &f, depth);
        if (child == GRAPH && message == MODEL) {
            /* protobuf would merge the two graphs, which no writer means */
            if (seen_graph)
                return damaged(w, f.start, "a second graph", err);
            seen_graph = true;
        }
        if (child != LEAF)
            code = walk_child(w, child, &f, depth, &total, err);
        else if (message == TENSOR || message == INITIALIZER)
            code = walk_tensor_field(w, message, &f, &total, err);
        else
            code = put(w, f.start, (size_t)(f.end - f.start), &total, err);
        if (code)
            return code;
        p = f.end;
    }
    *ret_size = total;
    return QDQ_OK;
}

/* Makes one pass over the whole model: measures without a sink, writes with one. */
static enum qdq_code
walk_model(struct walk *w, struct qdqi_sink *sink, uint64_t *ret_size,
           struct qdq_error *err)
{
    w->sink = sink;
    w->next_size = w->next_bulk = w->n_fields = 0;
    return walk_message(w, MODEL, w->base, w->base + w->size, 0, ret_size, err);
}

/* --- cutting -------------------------------------------------------------- */

static bool
is_data_field(uint32_t number)
{
    /* float_data, int32_data, int64_data, raw_data, double_data, uint64_data */
    return number == 4 || number == 5 || number == 7 || number == 9 || number == 10 ||
           number == 11;
}

static enum qdq_code
push_bulk(struct walk *w, const struct field *f, struct qdq_error *err)
{
    struct qdqi_bulk *bulks =
        qdqi_grow(w->bulks, &w->cap_bulks, w->n_bulks + 1, sizeof *bulks);
    if (!bulks)
        return qdqi_no_memory(err);
    w->bulks = bulks;
    w->bulks[w->n_bulks++] =
        (struct qdqi_bulk){.offset = (uint64_t)(f->payload - w->base),
                           .size = (uint64_t)(f->end - f->payload),
                           .field = f->number};
    return QDQ_OK;
}

static enum qdq_code
replace_by_reference(struct walk *w, enum message message, const struct field *f,
                     bool *ret_replaced, struct piece *ret, struct qdq_error *err)
{
    (void)message;
    if (f->number == QDQI_BULK_FIELD)
        return damaged(w, f->start, "a field number that qdqd keeps for itself", err);
    if (f->wire != WIRE_BYTES || !is_data_field(f->number) ||
        f->end - f->payload < QDQI_MIN_BULK)
        return QDQ_OK;
    size_t index = w->next_bulk++;
    *ret_replaced = true;
    ret->head_size = write_tag(ret->head, QDQI_BULK_FIELD, WIRE_VARINT);
    ret->head_size += write_varint(ret->head + ret->head_size, index);
    return w->sink ? QDQ_OK : push_bulk(w, f, err);
}

struct memory_sink {
    struct qdqi_sink sink;
    uint8_t *to;
};

static enum qdq_code
put_in_memory(struct qdqi_sink *sink, const void *data, size_t size,
              struct qdq_error *err)
{
    struct memory_sink *memory = (struct memory_sink *)sink;
    (void)err;
    memcpy(memory->to, data, size);
    memory->to += size;
    return QDQ_OK;
}

enum qdq_code
qdqi_made_copy(const struct qdqi_made *made, void *to, struct qdq_error *err)
{
    struct memory_sink memory = {.sink = {.bytes = put_in_memory}, .to = to};
    return made->write(made, &memory.sink, err);
}

enum qdq_code
qdqi_skeleton_cut(const uint8_t *file, size_t size, struct qdqi_arena *arena,
                  struct qdqi_bytes *ret, struct qdqi_bulks *ret_bulks,
                  struct qdq_error *err)
{
    struct walk w = {.base = file, .size = size, .replace = replace_by_reference};
    struct memory_sink memory = {.sink = {.bytes = put_in_memory}};
    uint64_t needed = 0;
    enum qdq_code code = walk_model(&w, NULL, &needed, err);
    if (code)
        goto out;
    if (needed > MAX_SKELETON) {
        code = qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                             "the graph without its weights has %llu bytes, over %d",
                             (unsigned long long)needed, MAX_SKELETON);
        goto out;
    }
    uint8_t *skeleton = qdqi_arena_alloc(arena, needed);
    struct qdqi_bulk *bulks = qdqi_arena_array(arena, w.n_bulks, sizeof *bulks);
    if (!skeleton || !bulks) {
        code = qdqi_no_memory(err);
        goto out;
    }
    memory.to = skeleton;
    if ((code = walk_model(&w, &memory.sink, &needed, err)))
        goto out;
    if (w.n_bulks)
        memcpy(bulks, w.bulks, w.n_bulks * sizeof *bulks);
    *ret = (struct qdqi_bytes){skeleton, needed};
    *ret_bulks = (struct qdqi_bulks){bulks, w.n_bulks};
out:
    free(w.sizes);
    free(w.bulks);
    return code;
}

/* --- metadata ------------------------------------------------------------- */

/* Finds the next field of this number that has bytes, from *p on, and moves *p behind it. */
static bool
find_field(const struct walk *w, const uint8_t **p, const uint8_t *end, uint32_t number,
           struct field *ret)
{
    while (*p < end) {
        if (read_field(w, *p, end, ret, NULL))
            return false;
        *p = ret->end;
        if (ret->number == number && ret->wire == WIRE_BYTES)
            return true;
    }
    return false;
}

enum { METADATA = 14 }; /* the field metadata_props of ModelProto */

const uint8_t *
qdqi_skeleton_metadata(const struct qdqi_bytes *skeleton, const char *key,
                       size_t *ret_size)
{
    enum { KEY = 1, VALUE = 2 };
    const struct walk w = {.base = skeleton->data, .size = skeleton->size};
    const uint8_t *p = w.base;
    struct field entry, name, value;
    while (find_field(&w, &p, w.base + w.size, METADATA, &entry)) {
        const uint8_t *at = entry.payload, *of_value = entry.payload;
        if (find_field(&w, &at, entry.end, KEY, &name) &&
            (size_t)(name.end - name.payload) == strlen(key) &&
            memcmp(name.payload, key, strlen(key)) == 0 &&
            find_field(&w, &of_value, entry.end, VALUE, &value)) {
            *ret_size = (size_t)(value.end - value.payload);
            return value.payload;
        }
    }
    return NULL;
}

/* Finds the next field of a model that is not metadata, and moves *p behind it. Returns false at
   the end, and before a field that is not whole. */
static bool
next_but_metadata(const struct walk *w, const uint8_t **p, struct field *ret)
{
    const uint8_t *end = w->base + w->size;
    while (*p < end && read_field(w, *p, end, ret, NULL) == QDQ_OK) {
        *p = ret->end;
        if (ret->number != METADATA)
            return true;
    }
    return false;
}

bool
qdqi_same_but_metadata(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    const struct walk x = {.base = a, .size = a_size}, y = {.base = b, .size = b_size};
    struct field f, g;
    while (next_but_metadata(&x, &a, &f)) {
        size_t n = (size_t)(f.end - f.start);
        if (!next_but_metadata(&y, &b, &g) || (size_t)(g.end - g.start) != n ||
            memcmp(f.start, g.start, n) != 0)
            return false;
    }
    return !next_but_metadata(&y, &b, &g) && a == x.base + x.size &&
           b == y.base + y.size;
}

/* --- expanding ------------------------------------------------------------ */

size_t
qdqi_bulk_reference(uint8_t *to, size_t index)
{
    return write_varint(to, index);
}

int64_t
qdqi_bulk_index(const uint8_t *payload, size_t size, size_t n_bulks)
{
    uint64_t index;
    const uint8_t *p = payload;
    if (!read_varint(&p, payload + size, &index) || index >= n_bulks)
        return -1;
    return (int64_t)index;
}

/* Writes one StringStringEntryProto {key, value} as field 13 (external_data) of a
   tensor. */
static size_t
write_entry(uint8_t *to, const char *key, const char *value)
{
    size_t k = strlen(key), v = strlen(value), n = 0; /* k is under 128 */
    n += write_tag(to + n, 13, WIRE_BYTES);
    n += write_varint(to + n, 2 + k + 1 + varint_size(v) + v);
    n += write_tag(to + n, 1, WIRE_BYTES);
    n += write_varint(to + n, k);
    memcpy(to + n, key, k);
    n += k;
    n += write_tag(to + n, 2, WIRE_BYTES);
    n += write_varint(to + n, v);
    memcpy(to + n, value, v);
    return n + v;
}

void
qdqi_mapped_name(char to[QDQI_MAPPED_NAME], unsigned file)
{
    snprintf(to, QDQI_MAPPED_NAME, "mapped%u.onnx", file);
}

static void
write_external(struct piece *ret, const char *location, uint64_t at, uint64_t size)
{
    char offset[24], length[24];
    snprintf(offset, sizeof offset, "%llu", (unsigned long long)at);
    snprintf(length, sizeof length, "%llu", (unsigned long long)size);
    uint8_t *p = ret->head;
    p += write_entry(p, "location", location);
    p += write_entry(p, "offset", offset);
    p += write_entry(p, "length", length);
    p += write_tag(p, 14, WIRE_VARINT); /* data_location */
    p += write_varint(p, 1);            /* EXTERNAL */
    ret->head_size = (size_t)(p - ret->head);
}

/* float_data, raw_data and double_data hold the elements as little-endian bytes. */
static bool
is_raw_form(uint32_t field)
{
    return field == 4 || field == 9 || field == 10;
}

/* Writes the reference to the external file, if this bulk is to be external. */
static bool
place_in_data_file(struct walk *w, enum message message, const struct qdqi_bulk *bulk,
                   struct piece *ret)
{
    char mapped[QDQI_MAPPED_NAME];
    size_t i = (size_t)(bulk - w->bulks);
    if (!is_raw_form(bulk->field) || w->inside || (bulk->made && bulk->made->inside))
        return false;
    if (w->how == QDQI_MAPPED && message == INITIALIZER && !bulk->made) {
        const char *const *locations = w->layout ? w->layout->locations : NULL;
        qdqi_mapped_name(mapped, bulk->file);
        write_external(ret, locations ? locations[bulk->file] : mapped, bulk->offset,
                       bulk->size);
        return true;
    }
    if (w->how != QDQI_EXTERNAL || bulk->size < MIN_EXTERNAL)
        return false;
    struct qdqi_layout *l = w->layout;
    if (l->offsets[i] == QDQI_NOT_PLACED) {
        uint64_t align = bulk->size < MIN_PAGE_ALIGNED ? 64 : 4096;
        l->offsets[i] = (l->size + align - 1) / align * align;
        l->size = l->offsets[i] + bulk->size;
        l->order[l->n++] = i;
    }
    write_external(ret, l->location, l->offsets[i], bulk->size);
    return true;
}

static enum qdq_code
replace_by_bulk(struct walk *w, enum message message, const struct field *f,
                bool *ret_replaced, struct piece *ret, struct qdq_error *err)
{
    if (f->number != QDQI_BULK_FIELD)
        return QDQ_OK;
    int64_t i = qdqi_bulk_index(f->payload, (size_t)(f->end - f->payload), w->n_bulks);
    if (i < 0)
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                             "a tensor names data that is not there");
    const struct qdqi_bulk *bulk = &w->bulks[i];
    *ret_replaced = true;
    if (place_in_data_file(w, message, bulk, ret))
        return QDQ_OK;
    ret->head_size = write_tag(ret->head, bulk->field, WIRE_BYTES);
    ret->head_size += write_varint(ret->head + ret->head_size, bulk->size);
    ret->bulk = bulk;
    return QDQ_OK;
}

enum qdq_code
qdqi_skeleton_measure(const struct qdqi_bytes *skeleton, const struct qdqi_bulks *bulks,
                      uint64_t *ret, struct qdq_error *err)
{
    struct walk w = {.base = skeleton->data,
                     .size = skeleton->size,
                     .replace = replace_by_bulk,
                     .bulks = bulks->rows,
                     .n_bulks = bulks->n,
                     .how = QDQI_INLINE};
    enum qdq_code code = walk_model(&w, NULL, ret, err);
    free(w.sizes);
    return code;
}

enum qdq_code
qdqi_skeleton_expand(const struct qdqi_bytes *skeleton, const struct qdqi_bulks *bulks,
                     enum qdqi_expand how, struct qdqi_layout *layout,
                     struct qdqi_sink *sink, struct qdq_error *err)
{
    struct walk w = {.base = skeleton->data,
                     .size = skeleton->size,
                     .replace = replace_by_bulk,
                     .bulks = bulks->rows,
                     .n_bulks = bulks->n,
                     .how = how,
                     .layout = layout};
    uint64_t size = 0;
    enum qdq_code code = walk_model(&w, NULL, &size, err);
    if (!code)
        code = walk_model(&w, sink, &size, err);
    free(w.sizes);
    return code;
}
