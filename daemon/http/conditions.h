/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional requests (RFC 9110, 13): If-Match and If-None-Match. A resource has the entity tag
 * that its answer to GET has in ETag, or none. There are no dates of modification, so the
 * conditions about dates are ignored.
 */
#ifndef QDQD_HTTP_CONDITIONS_H
#define QDQD_HTTP_CONDITIONS_H

#include "api/problem.h"

#include <stdbool.h>

struct request;

/* Checks If-Match for a resource with this tag; NULL: it has none. PRECONDITION_FAILED. */
bool conditions_match(const struct request *request, const char *tag,
                      struct api_problem *p);
/* Finds whether If-None-Match has the tag, or any where the resource has none. */
bool conditions_know(const struct request *request, const char *tag, bool *ret,
                     struct api_problem *p);
/* Checks the conditions of a request that changes something, before its body is read.
   `has_get`: its path can be read. PRECONDITION_FAILED. */
bool conditions_check(const struct request *request, bool has_get,
                      struct api_problem *p);
/* Checks the conditions of GET and HEAD by the reply: it becomes 412, or 304. */
void conditions_apply(struct request *request);

#endif
