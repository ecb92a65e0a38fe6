/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request and its answer, as the handlers see them: no word of the HTTP
 * library. A request belongs to its connection's thread.
 */
#ifndef QDQD_HTTP_REQUEST_H
#define QDQD_HTTP_REQUEST_H

#include "http/body.h"
#include "http/reply.h"
#include "store/store.h"
#include "tenants/service.h"
#include "watch/trace.h"
#include "api/header.h"
#include "api/route.h"

#include <stdarg.h>
#include <sys/types.h>

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

/* How many times a header stands in the request. */
int request_count(const struct request *request, const char *name);

/* A query value that is a whole number between min and max; `absent` without one. */
bool request_number(const struct request *request, const char *name, int64_t min,
                    int64_t max, int64_t absent, int64_t *ret, struct api_problem *p);
/* The seconds of `?wait=` or of the header Prefer; `absent` without either. */
bool request_wait(const struct request *request, int absent, int *ret,
                  struct api_problem *p);

/* The header Idempotency-Key; NULL without one. */
bool request_key(const struct request *request, const char **ret,
                 struct api_problem *p);

#endif
