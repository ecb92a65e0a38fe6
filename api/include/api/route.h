/* SPDX-License-Identifier: Apache-2.0 */
/* From method and path to a route of api/routes.h. Pure. */
#ifndef API_ROUTE_H
#define API_ROUTE_H

#include "api/problem.h"

enum api_body {
    API_BODY_NONE,
    API_BODY_FILE,
    API_BODY_MODEL,
    API_BODY_BLOB,
    API_BODY_JOB
};

enum api_route {
#define ROUTE(name, method, pattern, body) API_ROUTE_##name,
#include "api/routes.h"
#undef ROUTE
    API_N_ROUTES
};

struct api_match {
    enum api_route route;
    enum api_body body;
    char id[128]; /* the segment that {id} matched, "" where there is none */
};

/*
 * Finds the route; HEAD is matched as GET. NOT_FOUND when no pattern fits the path,
 * METHOD_NOT_ALLOWED when one does but with other methods: then `allow` (of at least
 * 64 bytes) holds them for the Allow header. `path` is percent-decoded already, without
 * its query.
 */
bool api_route_match(const char *method, const char *path, struct api_match *ret,
                     char *allow, size_t allow_size, struct api_problem *problem);

#endif
