/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of jobs, and of POST /v1/quantize. */
#include "config.h"
#include "base/budget.h"
#include "handlers/handlers.h"
#include "handlers/model_input.h"
#include "settings/settings.h"
#include "store/outbox.h"
#include "tenants/tenants.h"
#include "api/report.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define QUANTIZE_WAIT 55 /* seconds; proxies give up after a minute */

/* --- showing jobs --------------------------------------------------------- */

/* Returns how often a worker began the job. Its states were queued and running by turns, and its
   end. */
static int64_t
starts_of(const struct store_job *row)
{
    return (row->state == API_JOB_RUNNING ? row->changes : row->changes - 1) / 2;
}

struct api_job
show_job(const struct job_view *view)
{
    const struct store_job *row = &view->row;
    return (struct api_job){.id = row->id,
                            .state = row->state,
                            .stage = view->stage,
                            .done = view->done,
                            .total = view->total,
                            .eta_s = view->eta_s,
                            .position = view->position,
                            .waiting_for = view->waits_for_gpu ? "gpu"
                                           : row->targets      ? NULL
                                                               : row->waits_for,
                            .cached_from = row->cached_from,
                            .attempts = starts_of(row),
                            .created_at = row->created_at,
                            .started_at = row->started_at,
                            .ended_at = row->ended_at,
                            .expires_at = row->expires_at,
                            .model = row->model && *row->model ? row->model : NULL,
                            .calibration = row->calibration,
                            .evaluation = row->evaluation,
                            .source = row->source,
                            .deliveries = row->deliveries,
                            .spec = row->spec,
                            .labels = row->labels,
                            .omits_spec = row->omits_spec && !row->spec,
                            .omits_labels = row->omits_labels && !row->labels,
                            .result_model = row->result_model,
                            .result_files = row->result_files,
                            .result_size = row->result_size,
                            .summary = row->summary,
                            .parent = *row->parent ? row->parent : NULL,
                            .targets = row->targets,
                            .error = row->error.set ? &row->error : NULL};
}

/* Reads the long texts of a job, after memory for them was reserved. */
static bool
read_texts(struct request *request, struct job_view *view, struct api_problem *p)
{
    struct store *store = library_store(request->service->library);
    int64_t size;
    uint64_t most =
        BUDGET_MOST / BUDGET_JSON; /* an earlier version stored longer ones */
    return (!view->row.omits_spec && !view->row.omits_labels) ||
           (store_job_texts_size(store, view->row.id, &size, p) &&
            body_reserve(&request->body,
                         BUDGET_JSON * ((uint64_t)size < most ? (uint64_t)size : most),
                         p) &&
            store_job_texts(store, &view->row, p));
}

/* Answers with a job and its long texts. The answer to a job that was just added or
   changed goes without them where there is no memory for them now. */
static void
reply_job(struct request *request, int status, struct job_view *view)
{
    struct api_problem problem = {0};
    bool whole = read_texts(request, view, &problem);
    if (!whole && !strcmp(request->method, "GET")) {
        request->problem = problem;
        return;
    }
    struct api_job job = show_job(view);
    job.omits = !whole;
    char *text = api_job_encode(&job);
    size_t len = text ? strlen(text) : 0;
    reply_json(request, status, text);
    (void)body_reserve(&request->body, len > API_MAX_LISTED ? len : 0, &problem);
}

static void
add_location(struct request *request, const char *id)
{
    reply_header(request, "Location", "/v1/jobs/%s", id);
}

bool
wait_for_job(struct request *request, const char *id, struct job_view *ret)
{
    int seconds;
    return request_wait(request, 0, &seconds, &request->problem) &&
           jobs_wait(request->service->jobs, id, seconds, ret, &request->problem);
}

/* --- POST ----------------------------------------------------------------- */

void
handle_jobs_post(struct request *request)
{
    struct api_problem *p = &request->problem;
    struct job_view view;
    char id[JOB_ID_SIZE];
    const char *key;
    int seconds;
    if (!request_wait(request, 0, &seconds, p) || !request_key(request, &key, p) ||
        !submit_job(request, key, true, id, p) ||
        !jobs_wait(request->service->jobs, id, seconds, &view, p))
        return;
    reply_job(request, seconds && api_job_state_ended(view.row.state) ? 200 : 202,
              &view);
    add_location(request, id);
    job_view_fini(&view);
}

/* Replies with the model of a job that has ended, or with the reason why there is
   none. */
static void
reply_outcome(struct request *request, const struct job_view *view)
{
    switch (view->row.state) {
    case API_JOB_SUCCEEDED:
        reply_model(request, view->row.result_model);
        return;
    case API_JOB_FAILED:
        request->problem = view->row.error;
        return;
    case API_JOB_CANCELLED:
        api_fail(&request->problem, API_CANCELLED, "the job was cancelled");
        return;
    default:
        api_fail(&request->problem, API_STILL_RUNNING,
                 "the job %s has not ended; ask for it at its Location", view->row.id);
    }
}

void
handle_quantize_post(struct request *request)
{
    struct api_problem *p = &request->problem;
    struct job_view view;
    char id[JOB_ID_SIZE];
    int seconds;
    if (!request_wait(request, QUANTIZE_WAIT, &seconds, p) ||
        !submit_job(request, NULL, false, id, p) ||
        !jobs_wait(request->service->jobs, id, seconds, &view, p))
        return;
    const char *verdict = api_summary_verdict(view.row.summary);
    reply_outcome(request, &view);
    add_location(request, id);
    if (verdict)
        reply_header(request, "Qdqd-Verdict", "%s", verdict);
    job_view_fini(&view);
}

/* --- deliveries ------------------------------------------------------------ */

void
handle_deliveries_get(struct request *request)
{
    struct job_view view;
    char *text;
    if (!jobs_get(request->service->jobs, request->match.id, &view, &request->problem))
        return;
    if (asprintf(&text, "{\"deliveries\":%s}",
                 view.row.deliveries ? view.row.deliveries : "[]") < 0)
        text = NULL;
    reply_json(request, 200, text);
    job_view_fini(&view);
}

void
handle_delivery_retry(struct request *request)
{
    const struct service *service = request->service;
    struct job_view view;
    if (!store_delivery_retry(library_store(service->library), request->match.id,
                              request->match.second, &request->problem) ||
        !jobs_get(service->jobs, request->match.id, &view, &request->problem))
        return;
    jobs_wake_carriers(service->jobs);
    reply_job(request, 202, &view);
    job_view_fini(&view);
}

/* --- one job -------------------------------------------------------------- */

void
handle_job_get(struct request *request)
{
    struct job_view view;
    if (!wait_for_job(request, request->match.id, &view))
        return;
    reply_job(request, 200, &view);
    job_view_fini(&view);
}

void
handle_job_cancel(struct request *request)
{
    struct jobs *jobs = request->service->jobs;
    struct job_view view;
    if (!jobs_cancel(jobs, request->match.id, &request->problem) ||
        !jobs_get(jobs, request->match.id, &view, &request->problem))
        return;
    reply_job(request, 202, &view);
    job_view_fini(&view);
}

void
handle_job_delete(struct request *request)
{
    if (library_job_remove(request->service->library, request->match.id, STORE_REQUEST,
                           &request->problem))
        reply_empty(request, 204);
}
