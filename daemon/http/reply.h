/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a request, as the handlers give it: each leaves exactly one of these. They
 * run on the connection's thread.
 */
#ifndef QDQD_HTTP_REPLY_H
#define QDQD_HTTP_REPLY_H

#include "api/header.h"
#include "api/problem.h"

#include <sys/types.h>

#define REPLY_HEADERS 8

struct bundle;
struct request;

/*
 * Makes the next bytes of an answer that comes bit by bit, at most `size`; 0: it ends
 * here, below: it breaks off. Runs on the connection's thread and may block, but not for
 * longer than http.timeout, and not when the client's socket says that it is gone.
 */
typedef ssize_t (*stream_fn)(void *arg, int socket, char *to, size_t size);

struct stream {
    stream_fn read;
    void (*free)(void *arg);
    void *arg;
};

struct reply {
    int status; /* 0: none yet */
    const char *type;
    char *text;            /* owned; NULL: no body, or a file */
    int fd;                /* owned; -1: no file */
    struct bundle *bundle; /* owned; in the place of a file, or NULL */
    uint64_t offset, size; /* what of the file or bundle is sent */
    struct stream stream;  /* owned; read is NULL: none */
    size_t n_headers;
    struct {
        const char *name;
        char value[256];
    } headers[REPLY_HEADERS];
};

/* Takes `text`; NULL, as encoders return it, becomes the problem NO_MEMORY. */
void reply_json(struct request *request, int status, char *text);
/* The same for text of another type. */
void reply_text(struct request *request, int status, const char *type, char *text);
void reply_problem(struct request *request, const struct api_problem *problem);
void reply_empty(struct request *request, int status);
/* Takes the descriptor. */
void reply_file(struct request *request, const char *type, int fd, uint64_t size);
/* Takes the bundle. */
void reply_bundle(struct request *request, struct bundle *bundle);
/* After reply_file() or reply_bundle(): only these bytes of it are sent, with 206. */
void reply_part(struct request *request, const struct api_range *range);
/* Takes the stream's argument. */
void reply_stream(struct request *request, const char *type,
                  const struct stream *stream);
/* Adds a header; `name` must be a literal. */
void reply_header(struct request *request, const char *name, const char *fmt, ...)
    QDQ_PRINTF(3, 4);
void reply_fini(struct reply *reply);

#endif
