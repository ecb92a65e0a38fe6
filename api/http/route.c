/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/route.h"

#include <stdio.h>
#include <string.h>

enum log { QUIET, LOGGED };

const struct api_route_row api_routes[API_N_ROUTES] = {
#define ROUTE(name, method, pattern, body, scope, log) \
    [API_ROUTE_##                                      \
        name] = {method, pattern, API_BODY_##body, API_SCOPE_##scope, log == LOGGED},
#include "api/routes.h"
#undef ROUTE
};

/* Copies one segment of a path. Returns its length, 0: it is empty or too long. */
static size_t
copy_segment(const char *path, char *ret, size_t size)
{
    size_t len = strcspn(path, "/");
    if (len >= size)
        return 0;
    memcpy(ret, path, len);
    ret[len] = '\0';
    return len;
}

/* Returns whether the pattern matches `path`, and copies the segments that its words in
   braces match. */
static bool
matches_path(const char *pattern, const char *path, struct api_match *match)
{
    char *to = match->id;
    match->id[0] = match->second[0] = '\0';
    while (*pattern) {
        if (*pattern == '{') {
            size_t len = copy_segment(path, to, sizeof match->id);
            if (len == 0)
                return false;
            pattern += strcspn(pattern, "}") + 1;
            path += len;
            to = match->second;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*path;
}

static void
add_method(char *allow, size_t size, const char *method)
{
    size_t len = strlen(allow);
    snprintf(allow + len, size - len, "%s%s%s", len ? ", " : "", method,
             strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

bool
api_route_match(const char *method, const char *path, struct api_match *ret,
                char *allow, size_t allow_size, struct api_problem *problem)
{
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    struct api_match match;
    allow[0] = '\0';
    for (int i = 0; i < API_N_ROUTES; i++) {
        if (!matches_path(api_routes[i].pattern, path, &match))
            continue;
        if (strcmp(api_routes[i].method, wanted) == 0) {
            match.route = (enum api_route)i;
            match.body = api_routes[i].body;
            *ret = match;
            return true;
        }
        add_method(allow, allow_size, api_routes[i].method);
    }
    if (!*allow)
        return api_fail(problem, API_NOT_FOUND,
                        "there is nothing at %.200s; GET /openapi.yaml lists the paths",
                        path);
    return api_fail(problem, API_METHOD_NOT_ALLOWED, "%s does not know %s; it knows %s",
                    path, method, allow);
}

const char *
api_openapi(void)
{
    static const char text[] =
#include "openapi.inc"
        ;
    return text;
}
