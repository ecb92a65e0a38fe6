/* SPDX-License-Identifier: Apache-2.0 */
/* The table of handlers, and the handlers that need no state. */
#include "config.h"
#include "handlers/handlers.h"
#include "library/library.h"
#include "settings/settings.h"
#include "tenants/tenants.h"
#include "workers/backends.h"
#include "api/report.h"
#include "api/ui.h"

#include <string.h>

/* Replies with the JSON that a worker answers to a question. */
static void
reply_from_worker(struct request *request, enum message_type type)
{
    const struct message question = {.type = type};
    char *text;
    if (pool_ask(request->service, &question, &text, &request->problem))
        reply_json(request, 200, text);
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
    const struct service *service = request->service;
    struct api_problem *p = &request->problem;
    int64_t queued;
    if (jobs_is_draining(service->jobs))
        api_fail(p, API_DRAINING, "the daemon is stopping");
    else if (*service->settings->store_url &&
             !store_count_queued(library_store(service->library), &queued, p))
        return;
    else if (pool_is_failing(service->pool))
        api_fail(p, API_UNAVAILABLE,
                 "one worker process after the other ends unexpectedly");
    else if (!tenants_have_blobs(service->tenants))
        api_fail(p, API_UNAVAILABLE,
                 "the bucket of stored files (blobs.url) does not answer");
    else
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

enum { POLICY_SIZE = 512 };

static bool
has_page(struct request *request)
{
    return strcmp(request->service->settings->http_ui, "off") != 0 ||
           api_fail(&request->problem, API_NOT_FOUND,
                    "the page is switched off (http.ui)");
}

void
handle_root(struct request *request)
{
    if (!has_page(request))
        return;
    reply_empty(request, 302);
    reply_header(request, "Location", "/ui");
}

void
handle_ui(struct request *request)
{
    char policy[POLICY_SIZE];
    if (!has_page(request))
        return;
    if (!api_ui_policy(policy, sizeof policy)) {
        api_problem_no_memory(&request->problem);
    } else {
        reply_text(request, 200, "text/html; charset=utf-8", api_ui_page());
        reply_header(request, "Cache-Control", "no-cache");
        reply_policy(request, policy);
    }
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
