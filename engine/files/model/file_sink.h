/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that writes to a file, and the generated bulks that it leaves for later. */
#ifndef QDQI_FILES_MODEL_FILE_SINK_H
#define QDQI_FILES_MODEL_FILE_SINK_H

#include "ground/base/tasks.h"
#include "files/model/mapped.h"
#include "files/model/skeleton.h"

enum { QDQI_FILE_BUFFER = 64 * 1024 };

/* A generated bulk, and the place of its bytes. */
struct qdqi_later {
    const struct qdqi_made *made;
    struct qdqi_place place;
    uint64_t size;
};

struct qdqi_file_sink {
    struct qdqi_sink sink;           /* must be first */
    const struct qdqi_mapped *files; /* indexed by qdqi_bulk.file; NULL: no bulks */
    int fd;
    uint64_t offset; /* file offset that the buffer will be written to */
    size_t used;
    /* Whether the disk begins with the bytes before all are written; `begun` is the offset
       to which it was told to. */
    bool early;
    uint64_t begun;
    /* generated bulks that were skipped, in order; owned, see qdqi_file_sink_fini() */
    struct qdqi_later *later;
    size_t n_later, cap_later;
    /* Address of a byte that the sink gets, and the place that it came to. NULL: none */
    const uint8_t *marked;
    struct qdqi_place mark;
    uint8_t buffer[QDQI_FILE_BUFFER];
};

/* Starts to write at an offset of a file. */
void qdqi_file_sink_init(struct qdqi_file_sink *f, const struct qdqi_mapped *files,
                         int fd, uint64_t offset);
void qdqi_file_sink_fini(struct qdqi_file_sink *f);

/* Writes what is in the buffer. IO. */
enum qdq_code qdqi_file_sink_flush(struct qdqi_file_sink *f,
                                   struct qdq_error *err) QDQ_MUST_CHECK;
/* Goes on at another place. IO. */
enum qdq_code qdqi_file_sink_seek(struct qdqi_file_sink *f, struct qdqi_place place,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Writes a bulk: a copy of another file's bytes, from file to file within the kernel where
   they could share blocks. The bytes of a generated bulk are left out. IO. */
enum qdq_code qdqi_file_sink_bulk(struct qdqi_file_sink *f,
                                  const struct qdqi_bulk *bulk,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Generates and writes the bulks that were left out. IO, and the errors of the
   generators. */
enum qdq_code qdqi_file_sink_finish(struct qdqi_file_sink *f,
                                    const struct qdqi_tasks *tasks,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Sets IO with errno's text. */
enum qdq_code qdqi_file_failed(const char *what, struct qdq_error *err);

#endif
