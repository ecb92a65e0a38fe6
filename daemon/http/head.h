/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request: finds its route and its tenant, and refuses as much as
   possible before the body is read. */
#ifndef QDQD_HTTP_HEAD_H
#define QDQD_HTTP_HEAD_H

#include "api/problem.h"

struct http_needs;
struct request;

/* The request line as the library has read it. */
struct request_line {
    const char *method, *url, *version;
};

/* Reads the head. `host` is that of http.listen, "" for a unix socket. `p` may have a
   problem with the request line already. On success the request's body has begun. */
bool head_read(const struct http_needs *needs, const char *host,
               struct request *request, const struct request_line *line,
               struct api_problem *p);

#endif
