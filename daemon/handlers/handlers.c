/* SPDX-License-Identifier: Apache-2.0 */
/* The table of handlers, and those that need no state. */
#include "config.h"
#include "handlers/handlers.h"
#include "workers/backends.h"
#include "api/openapi.h"
#include "api/report.h"

#include <stdlib.h>
#include <string.h>

/* Answers with what a worker says, which is JSON. */
static void
reply_asked(struct request *request, enum message_type type)
{
    const struct message question = {.type = type};
    struct api_problem problem = {0};
    char *text = NULL;
    if (pool_ask(request->service, &question, &text, &problem))
        reply_json(request, 200, text);
    else
        reply_problem(request, &problem);
}

static void
handle_cases_get(struct request *request)
{
    reply_asked(request, MESSAGE_CASES);
}

static void
handle_layers_get(struct request *request)
{
    reply_asked(request, MESSAGE_LAYERS);
}

static void
handle_errors_get(struct request *request)
{
    reply_json(request, 200, api_problems_encode());
}

static void
handle_healthz(struct request *request)
{
    reply_json(request, 200, api_status_encode("ok"));
}

static void
handle_readyz(struct request *request)
{
    struct api_problem problem = {0};
    if (jobs_is_draining(request->service->jobs)) {
        api_problem_set(&problem, API_DRAINING, QDQ_AT_NOTHING, NULL,
                        "the daemon is stopping");
        reply_problem(request, &problem);
        return;
    }
    if (pool_is_failing(request->service->pool)) {
        api_problem_set(&problem, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                        "one worker process after the other ends unexpectedly");
        reply_problem(request, &problem);
        return;
    }
    reply_json(request, 200, api_status_encode("ready"));
}

static void
handle_version(struct request *request)
{
    reply_json(request, 200, backends_version(request->service->backends));
}

static void
handle_openapi(struct request *request)
{
    reply_text(request, 200, "application/yaml", strdup(api_openapi()));
}

static const handler_fn handlers[API_N_ROUTES] = {
    [API_ROUTE_BLOB_PUT] = handle_blob_put,
    [API_ROUTE_BLOB_GET] = handle_blob_get,
    [API_ROUTE_BLOB_DELETE] = handle_blob_delete,
    [API_ROUTE_MODELS_POST] = handle_models_post,
    [API_ROUTE_MODEL_GET] = handle_model_get,
    [API_ROUTE_MODEL_INFO] = handle_model_info,
    [API_ROUTE_MODEL_DELETE] = handle_model_delete,
    [API_ROUTE_DATASETS_POST] = handle_datasets_post,
    [API_ROUTE_DATASET_GET] = handle_dataset_get,
    [API_ROUTE_DATASET_DELETE] = handle_dataset_delete,
    [API_ROUTE_PLAN_POST] = handle_plan_post,
    [API_ROUTE_QUANTIZE_POST] = handle_quantize_post,
    [API_ROUTE_JOBS_POST] = handle_jobs_post,
    [API_ROUTE_JOBS_GET] = handle_jobs_get,
    [API_ROUTE_JOB_GET] = handle_job_get,
    [API_ROUTE_JOB_EVENTS] = handle_job_events,
    [API_ROUTE_JOB_CANCEL] = handle_job_cancel,
    [API_ROUTE_JOB_DELETE] = handle_job_delete,
    [API_ROUTE_JOB_MODEL] = handle_job_model,
    [API_ROUTE_JOB_REPORT] = handle_job_report,
    [API_ROUTE_JOB_SPEC] = handle_job_spec,
    [API_ROUTE_TENANTS_GET] = handle_tenants_get,
    [API_ROUTE_LAYERS_GET] = handle_layers_get,
    [API_ROUTE_CASES_GET] = handle_cases_get,
    [API_ROUTE_ERRORS_GET] = handle_errors_get,
    [API_ROUTE_HEALTHZ] = handle_healthz,
    [API_ROUTE_READYZ] = handle_readyz,
    [API_ROUTE_METRICS] = handle_metrics,
    [API_ROUTE_VERSION] = handle_version,
    [API_ROUTE_OPENAPI] = handle_openapi,
};

handler_fn
handler_of(enum api_route route)
{
    return handlers[route];
}
