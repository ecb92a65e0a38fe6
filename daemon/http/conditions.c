/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/conditions.h"
#include "http/request.h"
#include "library/library.h"
#include "store/store.h"
#include "tenants/service.h"
#include "api/header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
conditions_match(const struct request *request, const char *tag, struct api_problem *p)
{
    char *list = NULL;
    if (!request_list(request, "If-Match", &list, p))
        return false;
    bool ok =
        !list || api_header_has_tag(list, tag, API_TAG_STRONG) ||
        api_fail(p, API_PRECONDITION_FAILED,
                 "If-Match does not have the entity tag of the resource, which is %s",
                 tag ? tag : "none");
    free(list);
    return ok;
}

bool
conditions_know(const struct request *request, const char *tag, bool *ret,
                struct api_problem *p)
{
    char *list = NULL;
    if (!request_list(request, "If-None-Match", &list, p))
        return false;
    *ret = api_header_has_tag(list, tag, API_TAG_WEAK);
    free(list);
    return true;
}

/* --- requests that change something ----------------------------------------- */

/* Finds whether there is the resource at the request's path, and its tag; "": it has none. */
static bool
find_resource(const struct request *request, bool *ret_exists,
              char tag[DIGEST_SIZE + 2], struct api_problem *p)
{
    static const struct {
        enum api_route route;
        enum store_kind kind;
        bool has_tag;
    } rows[] = {{API_ROUTE_blob_put, STORE_BLOB, true},
                {API_ROUTE_blob_delete, STORE_BLOB, true},
                {API_ROUTE_model_delete, STORE_MODEL, true},
                {API_ROUTE_dataset_delete, STORE_DATASET, false}};
    struct store *store = library_store(request->service->library);
    struct api_problem problem = {0};
    struct store_file file = {0};
    struct store_job job = {0};
    const char *id = request->match.id;
    bool ok = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].route != request->match.route)
            continue;
        ok = store_file_get(store, rows[i].kind, id, &file, &problem);
        if (ok && rows[i].has_tag)
            snprintf(tag, DIGEST_SIZE + 2, "\"%s\"", file.id);
    }
    if (request->match.route == API_ROUTE_job_delete)
        ok = store_job_get(store, id, &job, &problem);
    store_file_fini(&file);
    store_job_fini(&job);
    *ret_exists = ok;
    if (!ok && problem.code != API_NOT_FOUND)
        *p = problem;
    return ok || problem.code == API_NOT_FOUND;
}

bool
conditions_check(const struct request *request, bool has_get, struct api_problem *p)
{
    char tag[DIGEST_SIZE + 2] = "";
    bool exists = false, known;
    const char *match = request_header(request, "If-Match");
    if (!strcmp(request->method, "GET") || !strcmp(request->method, "HEAD") ||
        (!match && !request_header(request, "If-None-Match")))
        return true;
    if (has_get && !find_resource(request, &exists, tag, p))
        return false;
    if (!exists) {
        /* DELETE is 404 then, whatever its conditions are. */
        return !match || !strcmp(request->method, "DELETE") ||
               api_fail(p, API_PRECONDITION_FAILED,
                        "there is no such resource yet, which If-Match asks for");
    }
    const char *its = *tag ? tag : NULL;
    return conditions_match(request, its, p) &&
           conditions_know(request, its, &known, p) &&
           (!known || api_fail(p, API_PRECONDITION_FAILED,
                               "the resource is there, which If-None-Match excludes"));
}

/* --- requests that read ------------------------------------------------------ */

static const char *
tag_of(const struct reply *reply)
{
    for (size_t i = 0; i < reply->n_headers; i++)
        if (strcmp(reply->headers[i].name, "ETag") == 0)
            return reply->headers[i].value;
    return NULL;
}

void
conditions_apply(struct request *request)
{
    struct api_problem problem = {0};
    struct reply *reply = &request->reply;
    bool known = false;
    if ((strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) ||
        reply->status != 200)
        return;
    const char *tag = tag_of(reply);
    if (!conditions_match(request, tag, &problem) ||
        !conditions_know(request, tag, &known, &problem)) {
        reply->n_headers = 0;
        reply_problem(request, &problem);
    } else if (known) {
        reply_empty(request, 304);
    }
}
