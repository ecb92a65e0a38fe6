/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of jobs and plans, and of POST /v1/quantize. */
#include "config.h"
#include "base/budget.h"
#include "handlers/handlers.h"
#include "handlers/model_input.h"
#include "settings/settings.h"
#include "store/derive.h"
#include "store/outbox.h"
#include "tenants/tenants.h"
#include "api/report.h"
#include "api/spec.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUANTIZE_WAIT 55 /* seconds; proxies give up after a minute */

/* --- submitting a job ----------------------------------------------------- */

/* The kind of the file in each of a body's places, and the pointer to the member
   that can name a stored file instead. */
static const struct {
    enum store_kind kind;
    const char *member;
} inputs[BODY_N_FILES] = {
    [BODY_MODEL] = {STORE_MODEL, "/model"},
    [BODY_DATASET] = {STORE_DATASET, "/calibration"},
    [BODY_EVALUATION] = {STORE_DATASET, "/evaluation"},
};

/* Returns the member of the body that holds an input's id. */
static char **
id_of(struct body *body, int i)
{
    return i == BODY_MODEL     ? &body->job.model
           : i == BODY_DATASET ? &body->job.calibration
                               : &body->job.evaluation;
}

bool
asked_spec_decode(const char *text, size_t len, struct asked_spec *ret,
                  struct api_problem *p)
{
    if (!api_spec_decode(text, len, &ret->decoded, p))
        return false;
    ret->effective = api_spec_encode(api_spec_get(ret->decoded));
    return ret->effective || api_problem_no_memory(p);
}

void
asked_spec_fini(struct asked_spec *spec)
{
    api_spec_free(&spec->decoded);
    free(spec->effective);
}

static bool
check_spec_size(size_t len, struct api_problem *p)
{
    return len <= MESSAGE_MAX_SPEC ||
           api_fail_at(p, API_TOO_LARGE, "/spec",
                       "the spec is over the limit of %u bytes", MESSAGE_MAX_SPEC);
}

/* Reads the spec. Checks all of it that can be checked without the model, and that
   the request has a model. */
static bool
read_spec(struct body *body, struct asked_spec *ret, struct api_problem *p)
{
    const char *text = body->job.spec;
    size_t len = text ? strlen(text) : 0;
    if (!body->files[BODY_MODEL] && !body->job.model && !body->job.model_place.ref)
        return api_fail_at(p, API_MISSING_PART, "/model", "the request has no model");
    if (!check_spec_size(len, p) || !asked_spec_decode(text, len, ret, p))
        return false;
    len += strlen(ret->effective);
    /* The decoder's memory is free again; the texts wait for the job to be stored. */
    return check_spec_size(strlen(ret->effective), p) &&
           (!body->reserved || body_reserve(body, 4 * len, p));
}

static bool
check_stored(struct request *request, int i, const char *id, struct api_problem *p)
{
    struct store_file file;
    struct api_problem problem = {0};
    if (store_file_get(library_store(request->service->library), inputs[i].kind, id,
                       &file, &problem)) {
        store_file_fini(&file);
        return true;
    }
    if (problem.code == API_NOT_FOUND)
        return api_fail_at(p, API_NOT_FOUND, inputs[i].member,
                           "nothing is stored under %.80s", id);
    *p = problem;
    return false;
}

/* The checked inputs that came with a request. */
struct brought {
    struct model_input model; /* empty when the request names a stored model */
    /* by place: the worker's description of a dataset; NULL when none came with the request */
    char *datasets[BODY_N_FILES];
};

static void
brought_fini(struct brought *brought)
{
    model_input_fini(&brought->model);
    for (int i = 0; i < BODY_N_FILES; i++)
        free(brought->datasets[i]);
}

static bool
check_model(struct request *request, struct model_input *ret, struct api_problem *p)
{
    const struct service *service = request->service;
    return ret->n || !model_input_is_brought(&request->body) ||
           model_input_check(service, &request->body, ret, p);
}

/* Checks everything that can be checked before the job runs, and stores nothing. */
static bool
check_inputs(struct request *request, struct brought *ret, struct api_problem *p)
{
    struct body *body = &request->body;
    if (body->job.model && !model_input_is_brought(body) &&
        !check_stored(request, BODY_MODEL, body->job.model, p))
        return false;
    if (!check_model(request, &ret->model, p))
        return false;
    for (int i = BODY_DATASET; i < BODY_N_FILES; i++)
        if ((*id_of(body, i) && !check_stored(request, i, *id_of(body, i), p)) ||
            (body->files[i] &&
             !check_dataset(request->service, body->files[i], &ret->datasets[i], p)))
            return false;
    return true;
}

/* Checks that the graph that the spec's task names is a stored model. */
static bool
check_metric(struct request *request, const struct qdq_spec *spec,
             struct api_problem *p)
{
    const char *id = spec->task.asked ? spec->task.model : NULL;
    struct store_file file;
    struct api_problem problem = {0};
    if (!id)
        return true;
    if (digest_is_id(id) && store_file_get(library_store(request->service->library),
                                           STORE_MODEL, id, &file, &problem)) {
        store_file_fini(&file);
        return true;
    }
    if (problem.set && problem.code != API_NOT_FOUND) {
        *p = problem;
        return false;
    }
    return api_fail_at(
        p, API_NOT_FOUND, "/task/model",
        "no model is stored under %.80s: a metric is sent to /v1/models, "
        "and named by its id",
        id);
}

/* Sets the id of an input of the job. */
static bool
set_input_id(struct body *body, int i, const char *id, struct api_problem *p)
{
    free(*id_of(body, i));
    *id_of(body, i) = strdup(id);
    return *id_of(body, i) || api_problem_no_memory(p);
}

/* Stores the files that came with the job, and puts their ids into the job. */
static bool
store_inputs(struct request *request, struct brought *brought, struct api_problem *p)
{
    struct library *library = request->service->library;
    struct body *body = &request->body;
    struct store_file file = {0};
    bool is_new, ok = true;
    if (brought->model.n) {
        ok = model_input_store(library, &brought->model, &file, &is_new, p) &&
             set_input_id(body, BODY_MODEL, file.id, p);
        store_file_fini(&file);
    }
    for (int i = BODY_DATASET; ok && i < BODY_N_FILES; i++) {
        if (!body->files[i])
            continue;
        ok = library_add(library, STORE_DATASET, &body->files[i], brought->datasets[i],
                         &file, &is_new, p) &&
             set_input_id(body, i, file.id, p);
        store_file_fini(&file);
    }
    return ok;
}

static bool
digest_text(char *text, char ret[DIGEST_SIZE], struct api_problem *p)
{
    bool ok = text && digest_of(text, strlen(text), ret);
    free(text);
    return ok || api_problem_no_memory(p);
}

/*
 * Computes the digest of a request for a job. Files that are not stored yet count with
 * the ids that they will have. A model of several files has its id only after the
 * check.
 */
static bool
digest_asked(const struct body *body, const struct asked_spec *spec,
             const struct model_input *model, char ret[DIGEST_SIZE],
             struct api_problem *p)
{
    char ids[BODY_N_FILES][DIGEST_SIZE];
    struct api_job_request asked = body->job;
    char **const places[] = {&asked.model, &asked.calibration, &asked.evaluation};
    for (int i = 0; i < BODY_N_FILES; i++) {
        bool checked = i == BODY_MODEL && model->n;
        if (!body->files[i] && !checked)
            continue;
        snprintf(ids[i], sizeof ids[i], "%s",
                 checked ? model->id : spool_id(body->files[i]));
        *places[i] = ids[i];
    }
    return digest_text(api_job_asked(&asked, spec->effective), ret, p);
}

bool
has_room_for_texts(const struct service *service, const struct store_job *job,
                   struct api_problem *p)
{
    const char *const texts[] = {job->spec, job->effective_spec, job->labels,
                                 job->publish};
    uint64_t size = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        size += texts[i] ? strlen(texts[i]) : 0;
    return blobs_check_room(library_blobs(service->library), size, p);
}

/* Returns the id of the spec's metric, borrowed from the spec, or NULL. */
static char *
metric_of(const struct qdq_spec *spec)
{
    return spec->task.asked ? (char *)(uintptr_t)spec->task.model : NULL;
}

/* Returns whether the result depends on time, so that no other job answers this one. */
static bool
is_timed(const struct api_job_request *asked, const struct qdq_spec *spec)
{
    return qdq_spec_is_timed(spec) || (asked->calibration && qdq_spec_measures(spec));
}

/* Stores the files that came with the job, and queues the job. */
static bool
submit_new(struct request *request, const struct asked_spec *spec,
           struct brought *brought, struct store_asking *asking, char id[JOB_ID_SIZE],
           struct api_problem *p)
{
    const struct service *service = request->service;
    const struct api_job_request *asked = &request->body.job;
    bool fetches = asked->model_place.ref || asked->calibration_place.ref;
    char identity[DIGEST_SIZE], none[] = "", *source = NULL;
    bool ok = places_check(request->service, request->scopes, asked, p) &&
              check_metric(request, api_spec_get(spec->decoded), p) &&
              check_inputs(request, brought, p) && store_inputs(request, brought, p);
    if (ok && fetches) {
        source = api_source_encode(&asked->model_place, &asked->calibration_place);
        ok = source || api_problem_no_memory(p);
    } else if (ok && !is_timed(asked, api_spec_get(spec->decoded))) {
        asking->identity = identity;
        char *runtime = tenants_runtime(service);
        ok = digest_text(runtime ? api_job_identity(asked, spec->effective,
                                                    service->scripts, runtime)
                                 : NULL,
                         identity, p);
        free(runtime);
    }
    struct store_job job = {.model = asked->model ? asked->model : none,
                            .calibration = asked->calibration,
                            .evaluation = asked->evaluation,
                            .metric = metric_of(api_spec_get(spec->decoded)),
                            .spec = asked->spec,
                            .effective_spec = spec->effective,
                            .labels = asked->labels,
                            .priority = asked->priority,
                            .fresh = asked->fresh,
                            .source = source,
                            .publish = asked->publish,
                            .fetching = fetches};
    /* Facts about inputs that are fetched are derived after the fetch. */
    ok = ok && (fetches || store_derive(api_spec_get(spec->decoded), &job, p)) &&
         has_room_for_texts(service, &job, p) &&
         jobs_submit(service->jobs, &job, asking, id, p);
    asking->identity = NULL;
    if (ok)
        memcpy(request->job, id, sizeof request->job);
    free(source);
    return ok;
}

/* Submits the request's job, or finds the earlier one with the same key. `key` is
   the request's Idempotency-Key, or NULL. */
static bool
submit(struct request *request, const char *key, char id[JOB_ID_SIZE],
       struct api_problem *p)
{
    struct body *body = &request->body;
    struct store_asking asking = {.key = key};
    struct brought brought = {0};
    struct asked_spec spec = {0};
    char asked[DIGEST_SIZE];
    bool known = false;
    bool ok = read_spec(body, &spec, p);
    if (ok && key) {
        asking.asked = asked;
        ok = (!body->n_externals || check_model(request, &brought.model, p)) &&
             digest_asked(body, &spec, &brought.model, asked, p) &&
             jobs_find_key(request->service->jobs, key, asked, id, &known, p);
    }
    ok = ok && (known || submit_new(request, &spec, &brought, &asking, id, p));
    brought_fini(&brought);
    asked_spec_fini(&spec);
    return ok;
}

/* --- showing jobs --------------------------------------------------------- */

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
                            .waiting_for = view->waits_for_gpu ? "gpu" : row->waits_for,
                            .cached_from = row->cached_from,
                            /* those that ended because the worker or its GPU failed,
                               and the current or last one */
                            .attempts = row->attempts +
                                        (row->started_at != 0 && !row->cached_from),
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

/* Refuses what only a job does. */
static bool
refuse_places(const struct api_job_request *job, struct api_problem *p)
{
    const char *member = job->model_place.ref         ? "/model"
                         : job->calibration_place.ref ? "/calibration"
                         : job->publish               ? "/publish"
                                                      : NULL;
    return !member || api_fail_at(p, API_UNSUPPORTED, member,
                                  "a plan fetches and publishes nothing; a job does");
}

void
handle_plan_post(struct request *request)
{
    struct body *body = &request->body;
    struct api_problem *p = &request->problem;
    struct message question = {.type = MESSAGE_PLAN};
    struct asked_spec spec = {0};
    struct brought brought = {0};
    struct model_fds stored = {0};
    char *plan;
    bool ok = refuse_places(&body->job, p) && read_spec(body, &spec, p) &&
              check_inputs(request, &brought, p) &&
              (brought.model.n ||
               model_fds_open(request->service->library, body->job.model, &stored, p));
    if (ok) {
        model_fds_attach(brought.model.n ? &brought.model.open : &stored, &question);
        question.text = spec.effective;
        question.text_len = strlen(spec.effective);
    }
    if (ok && pool_ask(request->service, &question, &plan, p))
        reply_json(request, 200, plan);
    asked_spec_fini(&spec);
    model_fds_fini(&stored);
    brought_fini(&brought);
}

void
handle_jobs_post(struct request *request)
{
    struct api_problem *p = &request->problem;
    struct job_view view;
    char id[JOB_ID_SIZE];
    const char *key;
    int seconds;
    if (!request_wait(request, 0, &seconds, p) || !request_key(request, &key, p) ||
        !submit(request, key, id, p) ||
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
        !submit(request, NULL, id, p) ||
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
