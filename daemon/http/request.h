/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request and its answer, as the handlers see them: no word of the HTTP
 * library. A request belongs to its connection's thread.
 */
#ifndef QDQD_HTTP_REQUEST_H
#define QDQD_HTTP_REQUEST_H

#include "http/body.h"
#include "library/bundle.h"
#include "store/store.h"
#include "tenants/service.h"
#include "watch/trace.h"
#include "api/header.h"
#include "api/route.h"

#include <stdarg.h>
#include <sys/types.h>

#define REPLY_HEADERS 8

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

struct MHD_Connection;
struct conn;
struct request;

/* What a route does. It runs on its connection's thread, may block, and leaves exactly one
   reply. */
typedef void (*handler_fn)(struct request *request);

struct request {
    unsigned magic;
    const struct service *service; /* of the tenant that the access token names */
    struct MHD_Connection *connection;
    struct conn *conn;
    const char *method; /* borrowed from the connection */
    struct api_match match;
    char allow[64];
    handler_fn handler; /* of the route; NULL until it is found */
    bool found;         /* there is such a route */
    bool of_all;        /* it is about all tenants, and may be */
    struct trace trace;
    int64_t began;           /* steady us */
    uint64_t received, sent; /* bytes of the bodies */
    char job[JOB_ID_SIZE];   /* that it is about, for the log; "": none */
    struct body body;
    struct api_problem problem; /* what is wrong with the request, found so far */
    bool linger;                /* answered before the body was read */
    int64_t drop_until;         /* steady ms; until then the rest of it is read */
    struct reply reply;
};

/* A header or query value, NULL when absent. Borrowed from the request. */
const char *request_header(const struct request *request, const char *name);
const char *request_query(const struct request *request, const char *name);

/* The values of a header that may stand there several times, joined by commas; the caller
   frees them. *ret is NULL when it is absent. */
bool request_list(const struct request *request, const char *name, char **ret,
                  struct api_problem *p);

/* A query value that is a whole number between min and max; `absent` without one. */
bool request_number(const struct request *request, const char *name, int64_t min,
                    int64_t max, int64_t absent, int64_t *ret, struct api_problem *p);
/* The seconds of `?wait=` or of the header Prefer; `absent` without either. */
bool request_wait(const struct request *request, int absent, int *ret,
                  struct api_problem *p);

/* The header Idempotency-Key; NULL without one. */
bool request_key(const struct request *request, const char **ret,
                 struct api_problem *p);

/* --- answers: exactly one of these for each request ----------------------- */

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
