/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams a TensorProto that is a file of its own, as in ONNX's test data: neither the
 * file nor its elements are ever held as a whole. The file is read twice from front to
 * back: first for its type and shape, then for its elements.
 */
#ifndef QDQI_FILES_DATA_PROTO_H
#define QDQI_FILES_DATA_PROTO_H

#include "ground/base/dtype.h"
#include "files/data/stream.h"

enum {
    /* one less than NumPy's, because an axis for the samples comes in front */
    QDQI_PROTO_MAX_RANK = 63,
    QDQI_PROTO_MAX_NAME = 255,
};

struct qdqi_proto_head {
    char name[QDQI_PROTO_MAX_NAME + 1]; /* "" when the tensor has no name */
    enum qdqi_dtype dtype;
    size_t rank;
    int64_t shape[QDQI_PROTO_MAX_RANK]; /* each >= 1 */
    uint64_t n;     /* number of elements, > 0; their bytes fit in int64 */
    unsigned field; /* number of the field that holds them */
};

/*
 * Reads the whole stream, whose size the archive's directory states, including its
 * checksum. INVALID_DATASET when it is not a tensor, its type is not supported, or its
 * elements lie in another file.
 */
enum qdq_code qdqi_proto_read(struct qdqi_stream *stream, uint64_t size,
                              struct qdqi_proto_head *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* The state of the second reading. */
struct qdqi_proto {
    struct qdqi_stream *stream;
    uint64_t left; /* bytes of the stream that are not in the buffer yet */
    size_t at, n;  /* buffer[at] to buffer[n - 1] are next */
    enum qdqi_dtype dtype;
    unsigned field;
    uint64_t chunk; /* bytes left of the current field */
    bool single;    /* the current field is one unpacked varint */
    unsigned char buffer[4096];
};

/* Starts the second reading. The stream is borrowed and must be at its start. */
void qdqi_proto_start(struct qdqi_proto *p, struct qdqi_stream *stream, uint64_t size,
                      const struct qdqi_proto_head *head);
/* Reads the next `size` bytes of little-endian elements, a multiple of an element's
   size. */
enum qdq_code qdqi_proto_elements(struct qdqi_proto *p, void *to, size_t size,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Reads to the end of the file, where its checksum is verified. */
enum qdq_code qdqi_proto_end(struct qdqi_proto *p,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
