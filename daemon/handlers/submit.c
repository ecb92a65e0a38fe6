/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for jobs and plans: the spec, or one for each of several targets, and the inputs are checked,
 * stored and queued here. The handler of plans is here, too.
 */
#include "config.h"
#include "handlers/handlers.h"
#include "handlers/model_input.h"
#include "settings/settings.h"
#include "store/derive.h"
#include "tenants/tenants.h"
#include "api/spec.h"
#include "api/targets.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (api_spec_get(ret->decoded)->context)
        return api_fail_at(p, API_UNSUPPORTED, "/output/context",
                           "compiled models are made by the command qdq alone, with a "
                           "runtime of the user's own");
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

/* Checks that the request has a model. */
static bool
check_model_named(const struct body *body, struct api_problem *p)
{
    return body->files[BODY_MODEL] || body->job.model || body->job.model_place.ref ||
           api_fail_at(p, API_MISSING_PART, "/model", "the request has no model");
}

/* Decodes a spec, and checks all of it that can be checked without the model. */
static bool
read_text(struct body *body, const char *text, struct asked_spec *ret,
          struct api_problem *p)
{
    size_t len = text ? strlen(text) : 0;
    if (!check_spec_size(len, p) || !asked_spec_decode(text, len, ret, p))
        return false;
    len += strlen(ret->effective);
    /* The decoder's memory is free again; the texts wait for the job to be stored. */
    return check_spec_size(strlen(ret->effective), p) &&
           (!body->reserved || body_reserve(body, 4 * len, p));
}

/* Reads the spec of a request, and checks that it has a model. */
static bool
read_spec(struct body *body, struct asked_spec *ret, struct api_problem *p)
{
    return check_model_named(body, p) && read_text(body, body->job.spec, ret, p);
}

/* The specs of a request: one, or one for each of several targets. */
struct asked_specs {
    struct api_target_specs split; /* n is 0 where the spec has one target */
    struct asked_spec *each;
    size_t n;
};

/* Does the same with a spec that may have several targets; unless `several`, that is refused. */
static bool
read_specs(struct body *body, bool several, struct asked_specs *ret,
           struct api_problem *p)
{
    const char *text = body->job.spec;
    size_t len = text ? strlen(text) : 0;
    if (!check_model_named(body, p) || !check_spec_size(len, p) ||
        (several && !api_spec_split(text, len, &ret->split, p)))
        return false;
    size_t n = ret->split.n ? ret->split.n : 1;
    ret->each = calloc(n, sizeof *ret->each);
    bool ok = ret->each || api_problem_no_memory(p);
    for (ret->n = 0; ok && ret->n < n; ret->n++)
        ok = read_text(body, ret->split.n ? ret->split.items[ret->n].text : text,
                       &ret->each[ret->n], p);
    return ok;
}

static void
asked_specs_fini(struct asked_specs *specs)
{
    for (size_t i = 0; i < specs->n; i++)
        asked_spec_fini(&specs->each[i]);
    free(specs->each);
    api_target_specs_fini(&specs->split);
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

/* Returns the effective specs as one text, with commas between, which the caller frees. NULL when out
   of memory. */
static char *
join_effective(const struct asked_specs *specs)
{
    size_t size = 1, at = 0;
    for (size_t i = 0; i < specs->n; i++)
        size += strlen(specs->each[i].effective) + 1;
    char *all = calloc(size, 1);
    for (size_t i = 0; all && i < specs->n; i++)
        at += (size_t)snprintf(all + at, size - at, "%s%s", i ? "," : "",
                               specs->each[i].effective);
    return all;
}

/*
 * Computes the digest of a request for a job. Files that are not stored yet count with
 * the ids that they will have. A model of several files has its id only after the
 * check.
 */
static bool
digest_asked(const struct body *body, const struct asked_specs *specs,
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
    char *all = join_effective(specs);
    bool ok = digest_text(all ? api_job_asked(&asked, all) : NULL, ret, p);
    free(all);
    return ok;
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

/* The row of a job that a request asks for, without what its spec says. Texts are borrowed. */
static struct store_job
make_row(const struct api_job_request *asked, char *source)
{
    static char none[] = "";
    return (struct store_job){.model = asked->model ? asked->model : none,
                              .calibration = asked->calibration,
                              .evaluation = asked->evaluation,
                              .spec = asked->spec,
                              .labels = asked->labels,
                              .priority = asked->priority,
                              .fresh = asked->fresh,
                              .source = source,
                              .publish = asked->publish,
                              .fetching = source};
}

/* Adds to the row what follows from its spec. */
static bool
complete_row(const struct asked_spec *spec, struct store_job *row,
             struct api_problem *p)
{
    row->effective_spec = spec->effective;
    row->metric = metric_of(api_spec_get(spec->decoded));
    /* Facts about inputs that are fetched are derived after the fetch. */
    return row->fetching || store_derive(api_spec_get(spec->decoded), row, p);
}

/* Computes the identity of the job with this spec. *ret stays NULL where no other job may answer
   it. */
static bool
find_identity(const struct service *service, const struct api_job_request *asked,
              const struct asked_spec *spec, char to[DIGEST_SIZE], const char **ret,
              struct api_problem *p)
{
    if (is_timed(asked, api_spec_get(spec->decoded)))
        return true;
    char *runtime = tenants_runtime(service);
    bool ok = digest_text(
        runtime ? api_job_identity(asked, spec->effective, service->scripts, runtime)
                : NULL,
        to, p);
    free(runtime);
    *ret = ok ? to : NULL;
    return ok;
}

/* Queues a job with one target. */
static bool
submit_one(const struct service *service, const struct api_job_request *asked,
           const struct asked_spec *spec, struct store_asking *asking,
           char id[JOB_ID_SIZE], struct api_problem *p)
{
    char identity[DIGEST_SIZE], *source = NULL;
    bool ok = true;
    if (asked->model_place.ref || asked->calibration_place.ref) {
        source = api_source_encode(&asked->model_place, &asked->calibration_place);
        ok = source || api_problem_no_memory(p);
    } else {
        ok = find_identity(service, asked, spec, identity, &asking->identity, p);
    }
    struct store_job job = make_row(asked, source);
    ok = ok && complete_row(spec, &job, p) && has_room_for_texts(service, &job, p) &&
         jobs_submit(service->jobs, &job, asking, id, p);
    asking->identity = NULL;
    free(source);
    return ok;
}

/* Makes the rows of several targets. Texts are borrowed from `specs`. */
static bool
make_targets(const struct service *service, const struct api_job_request *asked,
             const struct asked_specs *specs, char (*identities)[DIGEST_SIZE],
             struct store_target *ret, struct api_problem *p)
{
    bool ok = true;
    for (size_t i = 0; ok && i < specs->n; i++) {
        struct api_job_request one = *asked;
        one.spec = specs->split.items[i].text;
        one.labels = NULL; /* the labels are those of the whole job */
        ret[i].job = make_row(&one, NULL);
        ret[i].job.target = (char *)(uintptr_t)specs->split.items[i].target;
        ok = complete_row(&specs->each[i], &ret[i].job, p) &&
             has_room_for_texts(service, &ret[i].job, p) &&
             find_identity(service, asked, &specs->each[i], identities[i],
                           &ret[i].identity, p);
    }
    return ok;
}

/* Queues a job with several targets. */
static bool
submit_several(const struct service *service, const struct api_job_request *asked,
               const struct asked_specs *specs, const struct store_asking *asking,
               char id[JOB_ID_SIZE], struct api_problem *p)
{
    struct store_target *targets = calloc(specs->n, sizeof *targets);
    char(*identities)[DIGEST_SIZE] = calloc(specs->n, sizeof *identities);
    const struct store_job job = make_row(asked, NULL);
    bool ok = (targets && identities) || api_problem_no_memory(p);
    ok = ok && make_targets(service, asked, specs, identities, targets, p) &&
         has_room_for_texts(service, &job, p) &&
         jobs_submit_targets(service->jobs, &job, asking, targets, specs->n, id, p);
    free(targets);
    free(identities);
    return ok;
}

/* Refuses what a job with several targets does not do. */
static bool
check_several(const struct api_job_request *asked, const struct asked_specs *specs,
              struct api_problem *p)
{
    const char *fetched = asked->model_place.ref         ? "/model"
                          : asked->calibration_place.ref ? "/calibration"
                                                         : NULL;
    if (specs->split.n && fetched)
        return api_fail_at(p, API_UNSUPPORTED, fetched,
                           "a job with several targets fetches nothing: store the file "
                           "and name its id, or make a job for each target");
    return !specs->split.n || !asked->publish ||
           api_fail_at(p, API_UNSUPPORTED, "/publish",
                       "a job with several targets publishes nothing: make a job for "
                       "each target, with a ref of its own");
}

/* Stores the files that came with the job, and queues the job. */
static bool
submit_new(struct request *request, const struct asked_specs *specs,
           struct brought *brought, struct store_asking *asking, char id[JOB_ID_SIZE],
           struct api_problem *p)
{
    const struct service *service = request->service;
    const struct api_job_request *asked = &request->body.job;
    bool ok = check_several(asked, specs, p) &&
              places_check(service, request->scopes, asked, p);
    for (size_t i = 0; ok && i < specs->n; i++)
        ok = check_metric(request, api_spec_get(specs->each[i].decoded), p);
    ok = ok && check_inputs(request, brought, p) && store_inputs(request, brought, p) &&
         (specs->split.n ? submit_several(service, asked, specs, asking, id, p)
                         : submit_one(service, asked, specs->each, asking, id, p));
    if (ok)
        memcpy(request->job, id, sizeof request->job);
    return ok;
}

bool
submit_job(struct request *request, const char *key, bool several, char id[JOB_ID_SIZE],
           struct api_problem *p)
{
    struct body *body = &request->body;
    struct store_asking asking = {.key = key};
    struct brought brought = {0};
    struct asked_specs specs = {.n = 0};
    char asked[DIGEST_SIZE];
    bool known = false;
    bool ok = read_specs(body, several, &specs, p);
    if (ok && key) {
        asking.asked = asked;
        ok = (!body->n_externals || check_model(request, &brought.model, p)) &&
             digest_asked(body, &specs, &brought.model, asked, p) &&
             jobs_find_key(request->service->jobs, key, asked, id, &known, p);
    }
    ok = ok && (known || submit_new(request, &specs, &brought, &asking, id, p));
    brought_fini(&brought);
    asked_specs_fini(&specs);
    return ok;
}

/* --- plans -------------------------------------------------------------- */

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
