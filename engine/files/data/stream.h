/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes of one array from front to back: an .npy file, a member of an .npz
   file, or a part of a file. */
#ifndef QDQI_FILES_DATA_STREAM_H
#define QDQI_FILES_DATA_STREAM_H

#include "files/data/npz.h"

struct qdqi_stream {
    const char *name; /* name of the array, for errors; borrowed; "" for an .npy file */
    struct qdqi_member *member; /* NULL: the stream reads the file itself */
    int fd;
    /* offset in fd of the first byte; offset of the next byte from there */
    uint64_t start, offset;
    uint64_t end; /* limit of `offset`, when there is no member */
};

/* Opens member i of the npz, or the .npy file `fd` when `npz` is NULL. Never moves
   the position of fd. */
enum qdq_code qdqi_stream_open(int fd, struct qdqi_npz *npz, size_t i, const char *name,
                               struct qdqi_stream *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Opens `size` bytes of `fd` from `start` on, which must exist. */
void qdqi_stream_span(int fd, uint64_t start, uint64_t size, const char *name,
                      struct qdqi_stream *ret);
/* Reads exactly `size` bytes. INVALID_DATASET when there are fewer. */
enum qdq_code qdqi_stream_read(struct qdqi_stream *stream, void *to, size_t size,
                               struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_stream_skip(struct qdqi_stream *stream, uint64_t size,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* INVALID_DATASET unless the stream ends here and its checksum is right. */
enum qdq_code qdqi_stream_end(struct qdqi_stream *stream,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_stream_close(struct qdqi_stream *stream);

enum { QDQI_MAX_ARRAYS = 4096 }; /* of one dataset, or of one test data set */

/* LIMIT_EXCEEDED when a dataset of n arrays has too many. */
enum qdq_code qdqi_dataset_check_arrays(size_t n, struct qdq_error *err) QDQ_MUST_CHECK;
/* Sets INVALID_DATASET for an array: "array 'NAME': …". */
enum qdq_code qdqi_array_invalid(const char *name, struct qdq_error *err,
                                 const char *fmt, ...) QDQ_PRINTF(3, 4);

#endif
