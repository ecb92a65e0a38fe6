/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP request and its answer as the handlers see them, without types of the
   HTTP library. A request belongs to its connection's thread. */
#ifndef QDQD_HTTP_REQUEST_H
#define QDQD_HTTP_REQUEST_H

#include "http/body.h"
#include "http/reply.h"
#include "store/store.h"
#include "tenants/service.h"
#include "tenants/tokens.h"
#include "watch/trace.h"
#include "api/header.h"
#include "api/route.h"

#include <stdarg.h>
#include <sys/types.h>

struct MHD_Connection;
struct conn;
struct request;

/* The function behind a route. It runs on its connection's thread, may block, and makes exactly
   one reply, or sets the request's problem, which is then the reply. */
typedef void (*handler_fn)(struct request *request);

struct request {
    unsigned magic;
    /* service of the tenant that the access token names */
    const struct service *service;
    struct MHD_Connection *connection;
    struct conn *conn;
    const char *method; /* borrowed from the connection */
    struct api_match match;
    char allow[64];
    handler_fn handler; /* NULL until the route is found */
    bool found;         /* the route exists */
    bool of_all;     /* the request concerns all tenants, and its token allows that */
    unsigned scopes; /* of the access token, as bits of tenants/tokens.h */
    /* For an answer that outlasts the check of its token: tokens_hold(). NULL: it needs none. */
    struct tokens *tokens;
    struct token who;
    struct trace trace;
    int64_t began;           /* steady clock, in us */
    uint64_t received, sent; /* bytes of the two bodies */
    char job[JOB_ID_SIZE];   /* job that the request concerns, for the log; "": none */
    struct body body;
    struct api_problem problem; /* first error found in the request */
    bool linger;                /* it was answered before its body was read */
    bool ends_connection;       /* the connection is closed after the answer */
    /* steady clock, in ms: until then the rest of the body is read and dropped */
    int64_t drop_until;
    struct reply reply;
};

/* Return a header or query value, borrowed from the request; NULL when it is absent. */
const char *request_header(const struct request *request, const char *name);
const char *request_query(const struct request *request, const char *name);

/* Joins the values of a repeatable header by commas; the caller frees them. *ret is
   NULL when it is absent. */
bool request_list(const struct request *request, const char *name, char **ret,
                  struct api_problem *p);

/* Reads a query value that is a whole number between min and max; `absent` is the
   default. */
bool request_number(const struct request *request, const char *name, int64_t min,
                    int64_t max, int64_t absent, int64_t *ret, struct api_problem *p);
/* Reads the seconds of `?wait=` or of the header Prefer; `absent` is the default. */
bool request_wait(const struct request *request, int absent, int *ret,
                  struct api_problem *p);

/* Reads the header Idempotency-Key; *ret is NULL when it is absent. */
bool request_key(const struct request *request, const char **ret,
                 struct api_problem *p);

/* Parses a number of 1 to 18 digits that are `len` bytes. */
bool request_parse_number(const char *text, size_t len, int64_t *ret);

#endif
