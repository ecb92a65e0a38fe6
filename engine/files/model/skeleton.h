/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts the bulk data out of a model's bytes, and puts it back.
 *
 * Cutting walks the protobuf wire format of the mapped file once, checks its structure
 * (lengths, depth, number of fields), and leaves out the data of every tensor that is
 * not small. Such data is a bulk: it is recorded as offset and length, and a private
 * field of the TensorProto refers to it. The remaining bytes, the skeleton, are few
 * whatever the model's size, and only they are parsed (protobuf-c recurses without
 * limit). Expanding is the same walk; it replaces each private field by the bulk that
 * it refers to.
 *
 * Wire format: protobuf.dev/programming-guides/encoding; fields: onnx.proto.
 */
#ifndef QDQI_FILES_MODEL_SKELETON_H
#define QDQI_FILES_MODEL_SKELETON_H

#include "ground/base/arena.h"

#include <stdbool.h>

/* The private field of TensorProto: a varint that holds the index of a bulk. */
enum { QDQI_BULK_FIELD = 536870017 };

/* Data of fewer bytes stays in the skeleton. */
enum { QDQI_MIN_BULK = 128 };

struct qdqi_sink;
struct qdqi_file_sink;

/* A place in a file. */
struct qdqi_place {
    int fd;
    uint64_t offset;
};

/*
 * The generator of several bulks, its members, in pieces. The pieces can be written on
 * several threads at once: each writes its own bytes of all members to their places, by
 * a sink that the caller initializes and frees.
 */
struct qdqi_pieces {
    size_t n;                  /* pieces */
    struct qdqi_place *places; /* by member; the writer sets them before the pieces */
    enum qdq_code (*write)(struct qdqi_pieces *pieces, size_t i,
                           struct qdqi_file_sink *sink, struct qdq_error *err);
    /* Called by one thread when all pieces are written. */
    enum qdq_code (*finish)(struct qdqi_pieces *pieces, struct qdq_error *err);
};

/* Bytes that no file holds. write() generates them, exactly the `size` of their
   bulk, while the model is written to a sink. Several are generated at the same time. */
struct qdqi_made {
    enum qdq_code (*write)(const struct qdqi_made *made, struct qdqi_sink *sink,
                           struct qdq_error *err);
    struct qdqi_pieces *pieces; /* generates them in the place of write(), or NULL */
    size_t member;              /* which of its members they are */
    bool inside; /* they stand in the model itself, whatever their size */
};

/* Generates the bytes of write(), without pieces, to memory with enough room. The errors of the
   generator. */
enum qdq_code qdqi_made_copy(const struct qdqi_made *made, void *to,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* The payload of one data field of a tensor: bytes that were cut out of a file, or
   bytes that an edit puts there. */
struct qdqi_bulk {
    uint64_t offset, size;
    /* number of the field in TensorProto: 9 raw_data, 4 float_data, … */
    uint32_t field;
    unsigned file; /* index of the model's file that holds it; 0: the model's own */
    /* NULL: it lies in the file; else `offset` has no meaning */
    const struct qdqi_made *made;
};

struct qdqi_bytes {
    uint8_t *data;
    size_t size;
};

struct qdqi_bulks {
    struct qdqi_bulk *rows;
    size_t n;
};

/* Cuts a model. Both results lie in the arena. INVALID_MODEL with the byte offset,
   LIMIT_EXCEEDED. */
enum qdq_code qdqi_skeleton_cut(const uint8_t *file, size_t size,
                                struct qdqi_arena *arena, struct qdqi_bytes *ret,
                                struct qdqi_bulks *ret_bulks,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* The receiver of an expanded model: it gets plain bytes, and bulks to copy from the
   file. */
struct qdqi_sink {
    enum qdq_code (*bytes)(struct qdqi_sink *sink, const void *data, size_t size,
                           struct qdq_error *err);
    enum qdq_code (*bulk)(struct qdqi_sink *sink, const struct qdqi_bulk *bulk,
                          struct qdq_error *err);
};

/* How an expansion treats bulks. */
enum qdqi_expand {
    QDQI_INLINE, /* their bytes stand in the model again, as in the file */
    /* initializers of the main graph that lie in a file in raw form become external
       data of qdqi_mapped_name(), or of the layout's locations */
    QDQI_MAPPED,
    QDQI_EXTERNAL /* bulks that are not small become external data of one new file */
};

/* The location that QDQI_MAPPED writes for file `file` of the bulks; it means the
   whole file. */
enum { QDQI_MAPPED_NAME = 24 };
void qdqi_mapped_name(char to[QDQI_MAPPED_NAME], unsigned file);

/*
 * The places of the bulks in the new file of QDQI_EXTERNAL. The expansion fills it in:
 * in the order of the model, aligned as ONNX advises (large ones so that they can be
 * mapped).
 */
struct qdqi_layout {
    const char *location; /* at most QDQI_MAX_LOCATION bytes */
    /* of QDQI_MAPPED: likewise, by file; NULL: those of qdqi_mapped_name() */
    const char *const *locations;
    /* one for each bulk; QDQI_NOT_PLACED: it stays in the model itself */
    uint64_t *offsets;
    /* indices of the placed bulks by ascending offset; room for all bulks */
    size_t *order;
    size_t n;
    uint64_t size; /* bytes up to the end of the last bulk */
};

enum { QDQI_MAX_LOCATION = 255 };
#define QDQI_NOT_PLACED UINT64_MAX

/* Computes the size in bytes of the model with everything inline. */
enum qdq_code qdqi_skeleton_measure(const struct qdqi_bytes *skeleton,
                                    const struct qdqi_bulks *bulks, uint64_t *ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Expands a skeleton into the sink. `layout` is needed for QDQI_EXTERNAL, with all
   offsets QDQI_NOT_PLACED; for QDQI_MAPPED only its `locations` count; otherwise it is NULL. */
enum qdq_code qdqi_skeleton_expand(const struct qdqi_bytes *skeleton,
                                   const struct qdqi_bulks *bulks, enum qdqi_expand how,
                                   struct qdqi_layout *layout, struct qdqi_sink *sink,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the value of an entry of the model's metadata in the skeleton; NULL when there is
   none. *ret_size gets its size in bytes. */
const uint8_t *qdqi_skeleton_metadata(const struct qdqi_bytes *skeleton,
                                      const char *key, size_t *ret_size);

/* Returns whether two serialized models are whole and have the same fields in the same order,
   but for their metadata. */
bool qdqi_same_but_metadata(const uint8_t *a, size_t a_size, const uint8_t *b,
                            size_t b_size);

/* Room for the payload of a private field: a 64-bit varint. */
enum { QDQI_BULK_REFERENCE = 10 };

/* Writes the payload of a private field that refers to a bulk, and returns its size. */
size_t qdqi_bulk_reference(uint8_t *to, size_t index);

/*
 * Returns the index of the bulk that the payload of a private field refers to, or -1.
 */
int64_t qdqi_bulk_index(const uint8_t *payload, size_t size, size_t n_bulks);

#endif
