/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/report.h"
#include "base/json.h"
#include "qdq/quantize.h"

static const char *const state_names[API_N_JOB_STATES] = {
    [API_JOB_QUEUED] = "queued",       [API_JOB_RUNNING] = "running",
    [API_JOB_SUCCEEDED] = "succeeded", [API_JOB_FAILED] = "failed",
    [API_JOB_CANCELLED] = "cancelled",
};

const char *
api_job_state_name(enum api_job_state state)
{
    return (unsigned)state < API_N_JOB_STATES ? state_names[state] : "";
}

enum api_job_state
api_job_state_parse(const char *name)
{
    int state = 0;
    while (state < API_N_JOB_STATES && strcmp(state_names[state], name) != 0)
        state++;
    return (enum api_job_state)state;
}

bool
api_job_state_ended(enum api_job_state state)
{
    return state == API_JOB_SUCCEEDED || state == API_JOB_FAILED ||
           state == API_JOB_CANCELLED;
}

/* --- encoding ------------------------------------------------------------- */

/* Returns a tenant's name; NULL for "". */
static const char *
shown_name(const char *name)
{
    return *name ? name : NULL;
}

static json_t *
encode_progress(const struct api_job *job)
{
    if (!job->stage)
        return json_null();
    return api_pack("stage:t done:i total:i eta_s:j", job->stage, job->done, job->total,
                    job->eta_s < 0 ? json_null() : json_integer(job->eta_s));
}

static json_t *
encode_queue(const struct api_job *job)
{
    if (job->position <= 0 && !job->waiting_for)
        return json_null();
    return api_pack("position:n waiting_for:t", job->position, job->waiting_for);
}

/* Returns the summary as jobs have it: without the gates, which the targets of a job have. */
static json_t *
encode_summary(const char *text)
{
    json_t *summary = api_json_embed(text);
    if (json_is_object(summary))
        json_object_del(summary, "gates");
    return summary;
}

static json_t *
encode_result(const struct api_job *job)
{
    if (!job->result_model || job->state != API_JOB_SUCCEEDED)
        return json_null();
    return api_pack("model:t size:i files:e summary:j", job->result_model,
                    job->result_size, job->result_files, encode_summary(job->summary));
}

const char *
api_summary_verdict(const char *summary)
{
    static const char *const verdicts[] = {"good", "fair", "poor", NULL};
    json_t *json = summary ? json_loads(summary, 0, NULL) : NULL;
    const char *verdict = json_string_value(json_object_get(json, "verdict"));
    size_t i = 0;
    while (verdict && verdicts[i] && strcmp(verdicts[i], verdict) != 0)
        i++;
    const char *found = verdict ? verdicts[i] : NULL;
    json_decref(json);
    return found;
}

/* --- the targets of a job that has several ---------------------------------- */

static json_t *
copy_member(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return value ? json_incref(value) : json_null();
}

/* Returns the problem of a target, or null. */
static json_t *
encode_target_error(const json_t *row)
{
    const char *slug = api_text_at(row, "error_code");
    struct api_problem problem = {.set = true, .code = api_problem_code(slug)};
    json_int_t kind = json_integer_value(json_object_get(row, "error_kind"));
    if (!*slug)
        return json_null();
    if (problem.code == API_N_CODES)
        problem.code = API_INTERNAL;
    if (kind >= 0 && kind < QDQ_N_WHERES)
        problem.kind = (enum qdq_where)kind;
    qdq_text_copy(problem.where, sizeof problem.where, api_text_at(row, "error_where"));
    qdq_text_copy(problem.detail, sizeof problem.detail,
                  api_text_at(row, "error_detail"));
    qdq_text_copy(problem.model, sizeof problem.model, api_text_at(row, "model"));
    return api_problem_json(&problem);
}

static json_t *
encode_target_result(const json_t *row)
{
    json_t *summary = json_object_get(row, "summary");
    if (strcmp(api_text_at(row, "state"), api_job_state_name(API_JOB_SUCCEEDED)) != 0)
        return json_null();
    json_t *own = json_deep_copy(summary);
    if (json_is_object(own))
        json_object_del(own, "gates");
    return api_pack("model:j size:j files:j summary:j", copy_member(row, "model"),
                    copy_member(row, "size"), copy_member(row, "files"),
                    summary ? own : json_null());
}

static json_t *
encode_target(const void *items, size_t i)
{
    const json_t *row = json_array_get(items, i);
    const json_t *summary = json_object_get(row, "summary");
    return api_pack("target:j job:j state:j verdict:j gates:j result:j error:j",
                    copy_member(row, "target"), copy_member(row, "job"),
                    copy_member(row, "state"), copy_member(summary, "verdict"),
                    copy_member(summary, "gates"), encode_target_result(row),
                    encode_target_error(row));
}

static json_t *
encode_targets(const char *text)
{
    json_t *rows = api_json_embed(text);
    json_t *list =
        rows ? api_json_list(rows, json_array_size(rows), encode_target) : NULL;
    json_decref(rows);
    return list;
}

/* Adds a member to an object, and takes ownership of its value. */
static bool
add_member(json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value) == 0;
}

/* Encodes the names of the members that are null because they are long. */
static json_t *
encode_omitted(const struct api_job *job)
{
    const char *names[2];
    size_t n = 0;
    if (job->omits_spec)
        names[n++] = "spec";
    if (job->omits_labels)
        names[n++] = "labels";
    return api_json_list(names, n, api_json_text_item);
}

char *
api_job_encode(const struct api_job *job)
{
    json_t *json = api_pack(
        "id:t state:t progress:j queue:j attempts:i created_at:m started_at:m "
        "ended_at:m "
        "expires_at:m model:t calibration:t evaluation:t source:e spec:e labels:e "
        "cached_from:t "
        "result:j deliveries:e error:j",
        job->id, api_job_state_name(job->state), encode_progress(job),
        encode_queue(job), job->attempts, job->created_at, job->started_at,
        job->ended_at, job->expires_at, job->model, job->calibration, job->evaluation,
        job->source ? job->source : "{\"model\":null,\"calibration\":null}", job->spec,
        job->labels, job->cached_from, encode_result(job),
        job->deliveries ? job->deliveries : "[]",
        job->error ? api_problem_json(job->error) : json_null());
    bool ok = !job->omits || add_member(json, "omitted", encode_omitted(job));
    ok = ok && (!job->parent || add_member(json, "parent", api_json_text(job->parent)));
    ok = ok &&
         (!job->targets || add_member(json, "targets", encode_targets(job->targets)));
    ok = ok && (!job->tenant ||
                add_member(json, "tenant", api_json_text(shown_name(job->tenant))));
    return api_json_dump(api_json_if(ok, json), 0);
}

char *
api_progress_encode(const struct api_job *job)
{
    return api_json_dump(encode_progress(job), JSON_ENCODE_ANY);
}

static json_t *
encode_tenant(const void *items, size_t i)
{
    const struct api_tenant *tenant = (const struct api_tenant *)items + i;
    json_t *jobs = json_object();
    bool ok = jobs;
    for (int state = 0; ok && state < API_N_JOB_STATES; state++)
        ok = add_member(jobs, state_names[state], json_integer(tenant->jobs[state]));
    return api_pack("tenant:t jobs:j bytes:i limits:j", shown_name(tenant->name),
                    api_json_if(ok, jobs), tenant->bytes,
                    api_pack("queue:n max_bytes:n job_timeout:n", tenant->queue,
                             tenant->max_bytes, tenant->job_timeout));
}

char *
api_tenants_encode(const struct api_tenant *tenants, size_t n)
{
    return api_dump_list("tenants", tenants, n, encode_tenant);
}

static json_t *
encode_node(const void *items, size_t i)
{
    const struct api_node *node = (const struct api_node *)items + i;
    return api_pack("id:t version:t started_at:m seen_at:m running:i lanes:i", node->id,
                    node->version, node->started_at, node->seen_at, node->running,
                    node->lanes);
}

char *
api_nodes_encode(const struct api_node *nodes, size_t n)
{
    return api_dump_list("nodes", nodes, n, encode_node);
}

static json_t *
encode_remote(const void *items, size_t i)
{
    const struct api_remote *remote = (const struct api_remote *)items + i;
    return api_pack("name:t kind:t", remote->name, remote->kind);
}

char *
api_remotes_encode(const struct api_remote *remotes, size_t n)
{
    return api_dump_list("remotes", remotes, n, encode_remote);
}

static json_t *
encode_stored(const char *id, uint64_t size, int64_t created_at, int64_t expires_at)
{
    return api_pack("id:t size:i created_at:m expires_at:m", id, size, created_at,
                    expires_at);
}

char *
api_model_encode(const char *id, uint64_t size, int64_t created_at, int64_t expires_at,
                 const char *several)
{
    json_t *json = encode_stored(id, size, created_at, expires_at);
    json_t *files = several ? api_json_embed(several)
                            : json_pack("[o]", api_pack("digest:t size:i", id, size));
    return api_json_dump(api_json_if(add_member(json, "files", files), json), 0);
}

char *
api_blob_encode(const char *id, uint64_t size, int64_t created_at, int64_t expires_at)
{
    return api_json_dump(encode_stored(id, size, created_at, expires_at), 0);
}

char *
api_dataset_encode(const char *id, uint64_t size, int64_t created_at,
                   int64_t expires_at, const char *info)
{
    json_t *json = encode_stored(id, size, created_at, expires_at);
    json_t *more = api_json_embed(info);
    bool ok = json && json_object_update(json, more) == 0;
    json_decref(more);
    return api_json_dump(api_json_if(ok, json), 0);
}

char *
api_status_encode(const char *status)
{
    return api_json_dump(api_pack("status:t", status), 0);
}

/* --- a job's body --------------------------------------------------------- */

static bool
bad_member(struct api_problem *problem, const char *name, const char *wanted,
           const json_t *value)
{
    char where[256] = "";
    api_json_pointer_add(where, sizeof where, name);
    return api_fail_at(problem, API_BAD_REQUEST, where, "%s is to be %s, not %s", name,
                       wanted, api_json_type_name(value));
}

/* Checks that `labels`, whose pointer is `base`, is an object of strings. */
static bool
check_labels(json_t *labels, const char *base, struct api_problem *problem)
{
    const char *key;
    json_t *value;
    if (!json_is_object(labels))
        return api_fail_at(problem, API_BAD_REQUEST, base,
                           "labels are to be an object of strings, not %s",
                           api_json_type_name(labels));
    if (json_object_size(labels) > API_MAX_LABELS)
        return api_fail_at(problem, API_LIMIT_EXCEEDED, base,
                           "a job has at most %d labels, not %zu", API_MAX_LABELS,
                           json_object_size(labels));
    json_object_foreach (labels, key, value) {
        char where[256];
        snprintf(where, sizeof where, "%s", base);
        api_json_pointer_add(where, sizeof where, key);
        if (!json_is_string(value))
            return api_fail_at(problem, API_BAD_REQUEST, where,
                               "the label \"%s\" is to be a string, not %s", key,
                               api_json_type_name(value));
    }
    return true;
}

/* Checks the size of labels as they are stored. */
static bool
check_labels_size(size_t len, const char *base, struct api_problem *problem)
{
    return len <= API_MAX_LABELS_TEXT ||
           api_fail_at(problem, API_LIMIT_EXCEEDED, base,
                       "the labels of a job have at most %d bytes as JSON, not %zu",
                       API_MAX_LABELS_TEXT, len);
}

bool
api_labels_check(const char *text, struct api_problem *problem)
{
    json_t *labels = api_json_load(text, strlen(text), API_BAD_REQUEST, problem);
    bool ok = labels && check_labels(labels, "", problem) &&
              check_labels_size(strlen(text), "", problem);
    json_decref(labels);
    return ok;
}

/* --- what was asked ------------------------------------------------------- */

/* Adds the data to judge by, where there is some: others have the digests of earlier
   versions. Takes the object and returns it, or NULL when out of memory. */
static json_t *
with_evaluation(json_t *object, const struct api_job_request *request)
{
    const bool ok = object && (!request->evaluation ||
                               add_member(object, "evaluation",
                                          api_json_text(request->evaluation)));
    return api_json_if(ok, object);
}

char *
api_job_identity(const struct api_job_request *request, const char *effective_spec,
                 const char *scripts, const char *runtime)
{
    json_t *all = api_pack("engine:t model:t calibration:t scripts:t runtime:t spec:t",
                           qdq_version(), request->model, request->calibration, scripts,
                           runtime, effective_spec);
    return api_json_dump(with_evaluation(all, request), JSON_SORT_KEYS);
}

char *
api_job_asked(const struct api_job_request *request, const char *effective_spec)
{
    json_t *asked = api_pack("model:t calibration:t spec:t labels:e priority:i fresh:b",
                             request->model, request->calibration, effective_spec,
                             request->labels, request->priority, request->fresh);
    asked = with_evaluation(asked, request);
    bool ok = asked;
    /* Requests without these have the digests of earlier versions. */
    if (request->model_place.ref || request->calibration_place.ref) {
        char *source =
            api_source_encode(&request->model_place, &request->calibration_place);
        ok = source && add_member(asked, "source", api_json_embed(source));
        free(source);
    }
    if (request->publish)
        ok = ok && add_member(asked, "publish", api_json_embed(request->publish));
    return api_json_dump(api_json_if(ok, asked), JSON_SORT_KEYS);
}

/* --- members of a body ---------------------------------------------------- */

typedef bool (*member_fn)(struct api_job_request *request, const char *name,
                          json_t *value, struct api_problem *problem);

/* Reads the id of a stored file, or a place: {"remote", "ref"} or the text NAME:REF. */
static bool
parse_input(struct api_job_request *request, const char *name, json_t *value,
            struct api_problem *problem)
{
    const bool is_model = strcmp(name, "model") == 0;
    char **to = is_model ? &request->model : &request->calibration;
    struct api_place *place =
        is_model ? &request->model_place : &request->calibration_place;
    char pointer[32];
    snprintf(pointer, sizeof pointer, "/%s", name);
    if (json_is_object(value)) {
        char *text = api_json_dump(json_incref(value), 0);
        bool ok = text ? api_place_decode(text, pointer, place, problem)
                       : api_problem_no_memory(problem);
        free(text);
        return ok;
    }
    if (!json_is_string(value))
        return bad_member(problem, name,
                          "the id of what is stored already, or a place in a remote",
                          value);
    if (api_place_is_text(json_string_value(value)))
        return api_place_parse(json_string_value(value), pointer, place, problem);
    *to = strdup(json_string_value(value));
    return *to || api_problem_no_memory(problem);
}

bool
api_job_request_publish(struct api_job_request *request, const char *text,
                        struct api_problem *problem)
{
    struct api_publication *list;
    size_t n;
    if (!api_publications_decode(text, &list, &n, problem))
        return false;
    api_publications_free(&list, n);
    request->publish = n ? strdup(text) : NULL;
    return !n || request->publish || api_problem_no_memory(problem);
}

static bool
parse_publish(struct api_job_request *request, const char *name, json_t *value,
              struct api_problem *problem)
{
    (void)name;
    char *text = api_json_dump(json_incref(value), JSON_ENCODE_ANY);
    bool ok = text ? api_job_request_publish(request, text, problem)
                   : api_problem_no_memory(problem);
    free(text);
    return ok;
}

/* Stores the member of any type, because the decoder of the spec reports mistakes in
   it. */
static bool
parse_spec(struct api_job_request *request, const char *name, json_t *value,
           struct api_problem *problem)
{
    (void)name;
    request->spec = api_json_dump(json_incref(value), 0);
    return request->spec || api_problem_no_memory(problem);
}

static bool
parse_labels(struct api_job_request *request, const char *name, json_t *value,
             struct api_problem *problem)
{
    (void)name;
    if (!check_labels(value, "/labels", problem))
        return false;
    request->labels = api_json_dump(json_incref(value), 0);
    return request->labels
               ? check_labels_size(strlen(request->labels), "/labels", problem)
               : api_problem_no_memory(problem);
}

static bool
parse_priority(struct api_job_request *request, const char *name, json_t *value,
               struct api_problem *problem)
{
    if (!api_json_integer(value, &request->priority))
        return bad_member(problem, name, "an integer", value);
    return true;
}

static bool
parse_fresh(struct api_job_request *request, const char *name, json_t *value,
            struct api_problem *problem)
{
    request->fresh = json_is_true(value);
    return json_is_boolean(value) || bad_member(problem, name, "a boolean", value);
}

static bool
parse_evaluation(struct api_job_request *request, const char *name, json_t *value,
                 struct api_problem *problem)
{
    if (!json_is_string(value))
        return bad_member(problem, name, "the id of data that is stored already",
                          value);
    request->evaluation = strdup(json_string_value(value));
    return request->evaluation || api_problem_no_memory(problem);
}

static const struct {
    const char *name;
    member_fn take;
} members[] = {
    {"model", parse_input},       {"calibration", parse_input},
    {"spec", parse_spec},         {"labels", parse_labels},
    {"priority", parse_priority}, {"fresh", parse_fresh},
    {"publish", parse_publish},   {"evaluation", parse_evaluation},
};

static bool
parse_member(struct api_job_request *request, const char *name, json_t *value,
             struct api_problem *problem)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strcmp(members[i].name, name) == 0)
            return json_is_null(value) ||
                   members[i].take(request, name, value, problem);
    char where[256] = "";
    api_json_pointer_add(where, sizeof where, name);
    return api_fail_at(problem, API_BAD_REQUEST, where, "a job has no member \"%s\"",
                       name);
}

/* Turns the pointer of a duplicate member inside the spec into one from the spec's
   root. */
static void
move_pointer_to_spec(struct api_problem *problem)
{
    static const char spec[] = "/spec/";
    size_t len = sizeof spec - 2; /* without the slash, which the pointer keeps */
    if (problem->code != API_BAD_REQUEST ||
        strncmp(problem->where, spec, sizeof spec - 1) != 0)
        return;
    struct api_problem inner = {0};
    api_fail_at(&inner, API_INVALID_SPEC, problem->where + len,
                "the member %s stands there twice", problem->where + len);
    *problem = inner;
}

bool
api_job_request_decode(const char *text, size_t len, struct api_job_request *ret,
                       struct api_problem *problem)
{
    struct api_job_request request = {0};
    struct api_problem first = {0};
    bool ok = false;
    const char *name;
    json_t *value;
    json_t *json = api_json_load(text, len, API_BAD_REQUEST, &first);
    if (!json) {
        move_pointer_to_spec(&first);
        goto out;
    }
    if (!json_is_object(json)) {
        api_fail_at(&first, API_BAD_REQUEST, "", "a job is to be an object, not %s",
                    api_json_type_name(json));
        goto out;
    }
    json_object_foreach (json, name, value)
        if (!parse_member(&request, name, value, &first))
            goto out;
    *ret = request;
    request = (struct api_job_request){0};
    ok = true;
out:
    if (!ok && problem && !problem->set)
        *problem = first;
    api_job_request_fini(&request);
    json_decref(json);
    return ok;
}

void
api_job_request_fini(struct api_job_request *request)
{
    free(request->model);
    free(request->calibration);
    free(request->evaluation);
    free(request->spec);
    free(request->labels);
    free(request->publish);
    api_place_fini(&request->model_place);
    api_place_fini(&request->calibration_place);
    *request = (struct api_job_request){0};
}
