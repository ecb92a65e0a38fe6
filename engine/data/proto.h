/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TensorProto as a file of its own, as ONNX's test data has them, streamed: neither
 * the file nor its elements are ever held as a whole. Read twice, front to back: first
 * for what it says of itself, then for its elements.
 */
#ifndef QDQI_DATA_PROTO_H
#define QDQI_DATA_PROTO_H

#include "base/dtype.h"
#include "data/stream.h"

enum {
    QDQI_PROTO_MAX_RANK = 63, /* an axis for samples comes before */
    QDQI_PROTO_MAX_NAME = 255,
};

struct qdqi_proto_head {
    char name[QDQI_PROTO_MAX_NAME + 1]; /* "" when it has none */
    enum qdqi_dtype dtype;
    size_t rank;
    int64_t shape[QDQI_PROTO_MAX_RANK]; /* each >= 1 */
    uint64_t n;                         /* elements, > 0; their bytes fit in int64 */
    unsigned field;                     /* that holds them */
};

/*
 * Reads the whole stream, of `size` bytes by the archive's directory, to its end and
 * its checksum. INVALID_DATASET for what is no tensor, or one whose type has no place
 * in an array or whose elements lie elsewhere.
 */
enum qdq_code qdqi_proto_read(struct qdqi_stream *stream, uint64_t size,
                              struct qdqi_proto_head *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* The second reading. */
struct qdqi_proto {
    struct qdqi_stream *stream;
    uint64_t left; /* bytes of the stream that are not in the buffer yet */
    size_t at, n;  /* the buffer's bytes at … n are next */
    enum qdqi_dtype dtype;
    unsigned field;
    uint64_t chunk; /* bytes left of the field that is being read */
    bool single;    /* one varint that stands alone */
    unsigned char buffer[4096];
};

/* The stream is borrowed, at its start. */
void qdqi_proto_start(struct qdqi_proto *p, struct qdqi_stream *stream, uint64_t size,
                      const struct qdqi_proto_head *head);
/* The next `size` bytes of little-endian elements, a multiple of an element's size. */
enum qdq_code qdqi_proto_elements(struct qdqi_proto *p, void *to, size_t size,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Goes to the end of the file, where its checksum is known. */
enum qdq_code qdqi_proto_end(struct qdqi_proto *p,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
