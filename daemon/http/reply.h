/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a request. Each handler makes exactly one reply, on its connection's
   thread. */
#ifndef QDQD_HTTP_REPLY_H
#define QDQD_HTTP_REPLY_H

#include "api/header.h"
#include "api/problem.h"

#include <sys/types.h>

#define REPLY_HEADERS 8

struct bundle;
struct request;

/*
 * Produces the next bytes of a streamed answer, at most `size`. Returns their number, 0
 * at the end, or a negative number to abort. Runs on the connection's thread and may
 * block, but for less than http.timeout, and not when the client has closed the socket.
 */
typedef ssize_t (*stream_fn)(void *arg, int socket, char *to, size_t size);

struct stream {
    stream_fn read;
    void (*free)(void *arg);
    void *arg;
};

struct reply {
    int status; /* 0: no reply yet */
    const char *type;
    char *text;            /* owned; NULL: no body, or a file */
    int fd;                /* owned; -1: no file */
    struct bundle *bundle; /* owned; replaces the file; NULL: none */
    uint64_t offset, size; /* part of the file or bundle that is sent */
    struct stream stream;  /* owned; read is NULL: none */
    size_t n_headers;
    struct {
        const char *name;
        char value[512];
    } headers[REPLY_HEADERS];
};

/* Takes ownership of `text`. NULL, which encoders return when out of memory, becomes
   the problem NO_MEMORY. */
void reply_json(struct request *request, int status, char *text);
/* Does the same for text of another type. */
void reply_text(struct request *request, int status, const char *type, char *text);
void reply_problem(struct request *request, const struct api_problem *problem);
void reply_empty(struct request *request, int status);
/* Takes ownership of the descriptor. */
void reply_file(struct request *request, const char *type, int fd, uint64_t size);
/* Takes ownership of the bundle. */
void reply_bundle(struct request *request, struct bundle *bundle);
/* After reply_file() or reply_bundle(): sends only these bytes, with status 206. */
void reply_part(struct request *request, const struct api_range *range);
/* Takes ownership of the stream's argument. */
void reply_stream(struct request *request, const char *type,
                  const struct stream *stream);
/* Adds a header; `name` must be a literal. */
void reply_header(struct request *request, const char *name, const char *fmt, ...)
    QDQ_PRINTF(3, 4);
void reply_fini(struct reply *reply);

#endif
