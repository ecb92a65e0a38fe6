/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of a request's line and head that go beyond those of the HTTP library. A head
 * that can be read in two ways lets the bytes of a body run as a request of their own
 * behind a proxy that reads it in the other way (request smuggling), so it is refused
 * and its connection is closed.
 */
#ifndef QDQD_HTTP_FRAMING_H
#define QDQD_HTTP_FRAMING_H

#include "api/problem.h"

struct request;

/* Checks the target of a request line as the client sent it, before its escapes are
   decoded. BAD_REQUEST. */
bool framing_check_target(const char *target, struct api_problem *p);

/* Returns the path of a target, which may also be a whole URL (RFC 9112, 3.2.2). */
const char *framing_path(const char *target);

/* Checks the names and values of a head's fields, and the fields that say whose host
   is meant and where the body ends. `version` is that of the request line.
   BAD_REQUEST. */
bool framing_check_head(const struct request *request, const char *version,
                        struct api_problem *p);

/* Checks that the query has each parameter once, and with a value: of two values a client could
   not tell which one counts. BAD_REQUEST. */
bool framing_check_query(const struct request *request, struct api_problem *p);

/* Returns whether the connection is to end with the answer, because the library
   accepts more forms of this request's body than RFC 9112 allows. */
bool framing_ends_connection(const struct request *request);

/* Returns how strict the library is told to be (MHD_OPTION_STRICT_FOR_CLIENT). */
int framing_strictness(void);

#endif
