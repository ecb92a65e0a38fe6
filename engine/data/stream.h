/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one array, front to back: an .npy file, a member of an .npz file, or a
 * part of a file.
 */
#ifndef QDQI_DATA_STREAM_H
#define QDQI_DATA_STREAM_H

#include "data/npz.h"

struct qdqi_stream {
    const char *name; /* the array's, for errors; borrowed; "" for an .npy file */
    struct qdqi_member *member; /* NULL: the file itself */
    int fd;
    uint64_t start, offset; /* of the first byte in fd; of the next one, from there */
    uint64_t end;           /* what offset must not pass, without a member */
};

/* `npz` NULL: the .npy file `fd`; else its member i. Never moves fd's position. */
enum qdq_code qdqi_stream_open(int fd, struct qdqi_npz *npz, size_t i, const char *name,
                               struct qdqi_stream *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* `size` bytes of `fd` from `start` on, which are there. */
void qdqi_stream_span(int fd, uint64_t start, uint64_t size, const char *name,
                      struct qdqi_stream *ret);
/* Exactly `size` bytes; INVALID_DATASET when there are fewer. */
enum qdq_code qdqi_stream_read(struct qdqi_stream *stream, void *to, size_t size,
                               struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_stream_skip(struct qdqi_stream *stream, uint64_t size,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* INVALID_DATASET unless the stream ends here, with its checksum right. */
enum qdq_code qdqi_stream_end(struct qdqi_stream *stream,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_stream_close(struct qdqi_stream *stream);

/* INVALID_DATASET for an array: "array 'NAME': ..." */
enum qdq_code qdqi_array_invalid(const char *name, struct qdq_error *err,
                                 const char *fmt, ...) QDQ_PRINTF(3, 4);

#endif
