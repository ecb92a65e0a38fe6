/* SPDX-License-Identifier: Apache-2.0 */
/* The table of handlers, and the handlers that need no state. */
#include "config.h"
#include "handlers/handlers.h"
#include "library/library.h"
#include "settings/settings.h"
#include "tenants/tenants.h"
#include "workers/backends.h"
#include "api/openapi.h"
#include "api/report.h"

#include <stdlib.h>
#include <string.h>

/* Replies with the JSON that a worker answers to a question. */
static void
reply_from_worker(struct request *request, enum message_type type)
{
    const struct message question = {.type = type};
    struct api_problem problem = {0};
    char *text = NULL;
    if (pool_ask(request->service, &question, &text, &problem))
        reply_json(request, 200, text);
    else
        reply_problem(request, &problem);
}

void
handle_cases_get(struct request *request)
{
    reply_from_worker(request, MESSAGE_CASES);
}

void
handle_layers_get(struct request *request)
{
    reply_from_worker(request, MESSAGE_LAYERS);
}

void
handle_targets_get(struct request *request)
{
    reply_json(request, 200, api_targets_encode());
}

void
handle_errors_get(struct request *request)
{
    reply_json(request, 200, api_problems_encode());
}

void
handle_healthz(struct request *request)
{
    reply_json(request, 200, api_status_encode("ok"));
}

void
handle_readyz(struct request *request)
{
    struct api_problem problem = {0};
    if (jobs_is_draining(request->service->jobs)) {
        api_fail(&problem, API_DRAINING, "the daemon is stopping");
        reply_problem(request, &problem);
        return;
    }
    int64_t queued;
    if (*request->service->settings->store_url &&
        !store_count_queued(library_store(request->service->library), &queued,
                            &problem)) {
        reply_problem(request, &problem);
        return;
    }
    if (pool_is_failing(request->service->pool)) {
        api_fail(&problem, API_UNAVAILABLE,
                 "one worker process after the other ends unexpectedly");
        reply_problem(request, &problem);
        return;
    }
    if (!tenants_have_blobs(request->service->tenants)) {
        api_fail(&problem, API_UNAVAILABLE,
                 "the bucket of stored files (blobs.url) does not answer");
        reply_problem(request, &problem);
        return;
    }
    reply_json(request, 200, api_status_encode("ready"));
}

void
handle_version(struct request *request)
{
    reply_json(request, 200, backends_version(request->service->backends));
}

void
handle_openapi(struct request *request)
{
    reply_text(request, 200, "application/yaml", strdup(api_openapi()));
}

static const handler_fn handlers[API_N_ROUTES] = {
#define ROUTE(name, ...) [API_ROUTE_##name] = handle_##name,
#include "api/routes.h"
#undef ROUTE
};

handler_fn
handler_of(enum api_route route)
{
    return handlers[route];
}
