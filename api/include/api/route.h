/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of api/routes.h, and the search for a request's route. The functions
   are pure. */
#ifndef API_ROUTE_H
#define API_ROUTE_H

#include "api/problem.h"

enum api_body {
    API_BODY_NONE,
    API_BODY_FILE,
    API_BODY_MODEL,
    API_BODY_BLOB,
    API_BODY_JOB,
    API_BODY_MESSAGE
};

/* The scope that an access token needs for a route. */
enum api_scope {
    API_SCOPE_ANYBODY, /* no token is needed */
    API_SCOPE_SIGNED,  /* no token is needed: the handler checks a signature */
    API_SCOPE_READ,
    API_SCOPE_SUBMIT,
    API_SCOPE_METRICS,
    API_SCOPE_ADMIN
};

enum api_route {
#define ROUTE(name, ...) API_ROUTE_##name,
#include "api/routes.h"
#undef ROUTE
    API_N_ROUTES
};

struct api_route_row {
    const char *method, *pattern;
    enum api_body body;
    enum api_scope scope;
    bool is_logged;
};
extern const struct api_route_row api_routes[API_N_ROUTES];

struct api_match {
    enum api_route route;
    enum api_body body;
    /* the segments that {id} and a second one in braces matched, "" where there is none */
    char id[128], second[128];
};

/*
 * Finds the route. HEAD is matched as GET. Sets NOT_FOUND when no pattern matches the
 * path, and METHOD_NOT_ALLOWED when one does but with other methods; then `allow` (of
 * at least 64 bytes) holds these for the Allow header. `path` is percent-decoded
 * already, without its query.
 */
bool api_route_match(const char *method, const char *path, struct api_match *ret,
                     char *allow, size_t allow_size, struct api_problem *problem);

/* Returns the contract, api/openapi.yaml, as a text. */
const char *api_openapi(void);

#endif
