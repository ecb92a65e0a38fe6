/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model's bytes without its bulk, and back.
 *
 * Cutting walks the protobuf wire format of the mapped file once, checks its structure
 * (lengths, depth, number of fields), and leaves out the data of every tensor that is
 * not small: a bulk, remembered as offset and length, with a private field of the
 * TensorProto standing for it. What remains, the skeleton, is small whatever the
 * model's size, and is all that the parser (protobuf-c, which recurses without limit)
 * sees. Expanding is the same walk with the private fields replaced by what they stand
 * for.
 *
 * Wire format: protobuf.dev/programming-guides/encoding; fields: onnx.proto.
 */
#ifndef QDQI_MODEL_SKELETON_H
#define QDQI_MODEL_SKELETON_H

#include "base/arena.h"

/* The private field of TensorProto: a varint, the index of a bulk. */
enum { QDQI_BULK_FIELD = 536870017 };

/* Bytes; data of fewer stay in the skeleton. */
enum { QDQI_MIN_BULK = 128 };

struct qdqi_sink;

/* Bytes that no file holds: they are made, `size` of their bulk, while a sink takes
   them. */
struct qdqi_made {
    enum qdq_code (*write)(const struct qdqi_made *made, struct qdqi_sink *sink,
                           struct qdq_error *err);
};

/*
 * The payload of one data field of a tensor: bytes of the file that were cut out, or
 * such as an edit puts there.
 */
struct qdqi_bulk {
    uint64_t offset, size;
    uint32_t field; /* TensorProto's field: 9 raw_data, 4 float_data, … */
    unsigned file;  /* which of its model's files; 0: the model's own */
    const struct qdqi_made *made; /* NULL: from the file; else the offset is nothing */
};

struct qdqi_bytes {
    uint8_t *data;
    size_t size;
};

struct qdqi_bulks {
    struct qdqi_bulk *rows;
    size_t n;
};

/* Both results lie in the arena. INVALID_MODEL with the byte offset, LIMIT_EXCEEDED. */
enum qdq_code qdqi_skeleton_cut(const uint8_t *file, size_t size,
                                struct qdqi_arena *arena, struct qdqi_bytes *ret,
                                struct qdqi_bulks *ret_bulks,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Where an expanded model goes: plain bytes, and bulks to be copied from the file. */
struct qdqi_sink {
    enum qdq_code (*bytes)(struct qdqi_sink *sink, const void *data, size_t size,
                           struct qdq_error *err);
    enum qdq_code (*bulk)(struct qdqi_sink *sink, const struct qdqi_bulk *bulk,
                          struct qdq_error *err);
};

/* What an expanded model does with its bulks. */
enum qdqi_expand {
    QDQI_INLINE, /* the bytes come back, as in the file */
    QDQI_MAPPED, /* those of initializers of the main graph, where they lie in a file in a
                    raw form, become external data of qdqi_mapped_name() */
    QDQI_EXTERNAL /* those that are not small become external data of one new file */
};

/* The location that QDQI_MAPPED names: file `file` of the bulks, as a whole. */
enum { QDQI_MAPPED_NAME = 24 };
void qdqi_mapped_name(char to[QDQI_MAPPED_NAME], unsigned file);

/*
 * Where QDQI_EXTERNAL wants the bulks in the new file, filled in by the expansion: in
 * the order of the model, aligned as ONNX advises (mmap of the large ones).
 */
struct qdqi_layout {
    const char *location; /* at most QDQI_MAX_LOCATION bytes */
    uint64_t *offsets;    /* by bulk; QDQI_NOT_PLACED: in the model itself */
    size_t *order;        /* bulks that were placed, by offset; room for all */
    size_t n;
    uint64_t size; /* up to the end of the last */
};

enum { QDQI_MAX_LOCATION = 255 };
#define QDQI_NOT_PLACED UINT64_MAX

/* Bytes of the model with everything inline. */
enum qdq_code qdqi_skeleton_measure(const struct qdqi_bytes *skeleton,
                                    const struct qdqi_bulks *bulks, uint64_t *ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* `layout` is for QDQI_EXTERNAL, its offsets QDQI_NOT_PLACED; else NULL. */
enum qdq_code qdqi_skeleton_expand(const struct qdqi_bytes *skeleton,
                                   const struct qdqi_bulks *bulks, enum qdqi_expand how,
                                   struct qdqi_layout *layout, struct qdqi_sink *sink,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Room for the payload of a private field: a varint of 64 bits. */
enum { QDQI_BULK_REFERENCE = 10 };

/* Writes the payload of a private field that names a bulk; returns its size. */
size_t qdqi_bulk_reference(uint8_t *to, size_t index);

/* The index of the bulk that the payload of a private field names, or -1. */
int64_t qdqi_bulk_index(const uint8_t *payload, size_t size, size_t n_bulks);

#endif
