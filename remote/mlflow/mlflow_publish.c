/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "mlflow/mlflow_publish.h"
#include "mlflow/mlflow_api.h"
#include "mlflow/mlflow_place.h"
#include "mlflow/mlflow_ref.h"
#include "mlflow/mlmodel.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ID 256 /* most bytes of an id of MLflow's */

/* A publication under way. */
struct work {
    struct http *http;
    const struct qdqr_publication *publication;
    struct mlflow_ref ref;
    char experiment[ID], run[ID], model[ID];
    char run_uri[QDQR_REF], model_uri[QDQR_REF];
    char run_place[QDQR_REF], model_place[QDQR_REF];
    char version[ID];
    /* The ids of the source; "" where there is none. */
    char source_model[ID], source_place[QDQR_REF];
    struct api_problem *problem;
};

static int64_t
milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Copies a text of an answer, which must be there. */
static bool
keep(struct work *work, char *to, size_t size, const char *text, const char *what)
{
    if (*text && strlen(text) < size) {
        snprintf(to, size, "%s", text);
        return true;
    }
    return api_problem_set(work->problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "remote %s answered without %s", work->http->remote->name,
                           what);
}

/* Calls MLflow where only the success matters. */
static bool
post(struct work *work, const char *method, const char *path, json_t *body,
     const char *what)
{
    json_t *json = mlflow_call(work->http, method, path, body, what, work->problem);
    json_decref(json);
    return json != NULL;
}

/* --- what is there already ------------------------------------------------ */

/* Returns whether a text can stand in the quotes of MLflow's filters, which have no escapes. */
static bool
is_quotable(const char *text)
{
    return !strpbrk(text, "'\"`\\%");
}

/* Looks for a version with this delivery. work->version stays "" when there is none. */
static bool
search_version(struct work *work)
{
    char filter[4 * QDQR_REF];
    struct http_request request = {.method = NULL};
    const char *delivery = work->publication->delivery;
    if (!is_quotable(delivery) || !is_quotable(work->ref.name) ||
        strlen(delivery) > QDQR_REF)
        return api_problem_set(work->problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "a model's name and a delivery have no quotes");
    snprintf(filter, sizeof filter, "name='%s' and tags.`" MLFLOW_DELIVERY "`='%s'",
             work->ref.name, delivery);
    if (!url_add(request.url, MLFLOW_API "model-versions/search", "/", work->problem) ||
        !mlflow_query(&request, "filter", filter, work->problem))
        return false;
    json_t *json = mlflow_send(work->http, &request, "the search", work->problem);
    const json_t *first = json_array_get(json_object_get(json, "model_versions"), 0);
    if (first)
        snprintf(work->version, sizeof work->version, "%.200s",
                 mlflow_text(first, NULL, "version"));
    json_decref(json);
    return json != NULL;
}

/* Creates the registered model unless it is there. */
static bool
have_registered_model(struct work *work)
{
    struct http_request request = {.method = NULL};
    struct http_answer answer;
    if (!url_add(request.url, MLFLOW_API "registered-models/get", "/", work->problem) ||
        !mlflow_query(&request, "name", work->ref.name, work->problem) ||
        !http_send(work->http, &request, &answer, work->problem))
        return false;
    long status = answer.status;
    if (status != 200 && status != 404)
        http_fail(work->http, &answer, "the registered model", work->problem);
    http_answer_fini(&answer);
    if (status != 404)
        return status == 200;
    return post(work, "POST", "registered-models/create",
                json_pack("{s:s}", "name", work->ref.name), "the registered model");
}

/* Finds the experiment of the source's run. A run that is gone leaves the default one. */
static bool
find_experiment(struct work *work, const char *run)
{
    struct http_request request = {.method = NULL};
    struct api_problem fault = {0};
    if (!*run)
        return true;
    if (!url_add(request.url, MLFLOW_API "runs/get", "/", work->problem) ||
        !mlflow_query(&request, "run_id", run, work->problem))
        return false;
    json_t *json = mlflow_send(work->http, &request, "the source's run", &fault);
    if (!json && fault.code == API_REMOTE_NOT_FOUND)
        return true;
    if (!json)
        return api_problem_set(work->problem, fault.code, fault.kind, fault.where, "%s",
                               fault.detail);
    const char *id = mlflow_text(json_object_get(json, "run"), "info", "experiment_id");
    bool ok = keep(work, work->experiment, ID, id, "an experiment");
    json_decref(json);
    return ok;
}

/* Finds the logged model, the folder and the experiment of the source. */
static bool
find_source(struct work *work)
{
    struct mlflow_ref ref;
    snprintf(work->experiment, sizeof work->experiment, "0"); /* MLflow's default */
    if (!work->publication->source)
        return true;
    if (!parse_mlflow_ref(work->publication->source, false, &ref, work->problem))
        return false;
    json_t *json = mlflow_find(work->http, &ref, work->problem);
    const char *from = mlflow_text(json, "model_version", "source");
    if (strncmp(from, "models:/m-", 10) == 0)
        snprintf(work->source_model, sizeof work->source_model, "%.200s", from + 8);
    snprintf(ref.version, sizeof ref.version, "%.32s",
             mlflow_text(json, "model_version", "version"));
    bool ok =
        json && find_experiment(work, mlflow_text(json, "model_version", "run_id"));
    json_decref(json);
    struct http_request request = {.method = NULL};
    ok = ok &&
         url_add(request.url, MLFLOW_API "model-versions/get-download-uri", "/",
                 work->problem) &&
         mlflow_query(&request, "name", ref.name, work->problem) &&
         mlflow_query(&request, "version", ref.version, work->problem);
    json = ok ? mlflow_send(work->http, &request, "the source", work->problem) : NULL;
    ok = json && mlflow_find_place(work->http, mlflow_text(json, NULL, "artifact_uri"),
                                   work->source_place, work->problem);
    json_decref(json);
    return ok;
}

/* --- the run and the logged model ----------------------------------------- */

static json_t *
tags_json(const struct qdqr_publication *publication)
{
    json_t *tags = json_array();
    json_array_append_new(tags, json_pack("{s:s, s:s}", "key", MLFLOW_DELIVERY, "value",
                                          publication->delivery));
    for (size_t i = 0; i < publication->n_tags; i++)
        json_array_append_new(tags,
                              json_pack("{s:s, s:s}", "key", publication->tags[i].name,
                                        "value", publication->tags[i].value));
    return tags;
}

static bool
create_run(struct work *work)
{
    json_t *json = mlflow_call(work->http, "POST", "runs/create",
                               json_pack("{s:s, s:s, s:I, s:o}", "experiment_id",
                                         work->experiment, "run_name", "qdqd",
                                         "start_time", (json_int_t)milliseconds(),
                                         "tags", tags_json(work->publication)),
                               "a run", work->problem);
    const json_t *run = json_object_get(json, "run");
    bool ok = json && keep(work, work->run, ID, mlflow_text(run, "info", "run_id"),
                           "a run's id");
    ok = ok && keep(work, work->run_uri, QDQR_REF,
                    mlflow_text(run, "info", "artifact_uri"), "a run's place");
    json_decref(json);
    return ok &&
           mlflow_find_place(work->http, work->run_uri, work->run_place, work->problem);
}

static bool
create_model(struct work *work)
{
    json_t *json =
        mlflow_call(work->http, "POST", "logged-models",
                    json_pack("{s:s, s:s, s:s, s:o}", "experiment_id", work->experiment,
                              "name", "model", "source_run_id", work->run, "tags",
                              tags_json(work->publication)),
                    "a logged model", work->problem);
    const json_t *model = json_object_get(json, "model");
    bool ok = json && keep(work, work->model, ID,
                           mlflow_text(model, "info", "model_id"), "a model's id");
    ok = ok && keep(work, work->model_uri, QDQR_REF,
                    mlflow_text(model, "info", "artifact_uri"), "a model's place");
    json_decref(json);
    return ok && mlflow_find_place(work->http, work->model_uri, work->model_place,
                                   work->problem);
}

static bool
put_files(struct work *work)
{
    work->http->done = work->http->total = 0;
    for (size_t i = 0; i < work->publication->n_files; i++)
        work->http->total += work->publication->files[i].size;
    for (size_t i = 0; i < work->publication->n_files; i++) {
        const struct qdqr_upload *file = &work->publication->files[i];
        bool is_of_run = file->role == QDQR_REPORT || file->role == QDQR_SPEC;
        if (!mlflow_put_file(work->http,
                             is_of_run ? work->run_place : work->model_place, file,
                             work->publication->delivery, work->problem))
            return false;
    }
    return true;
}

/* Gets a small file of the source's folder. *ret is NULL when it is not there. */
static bool
get_beside_source(struct work *work, const char *name, char **ret)
{
    struct http_request request = {.method = NULL};
    struct http *from;
    struct http_answer answer;
    *ret = NULL;
    if (!*work->source_place)
        return true;
    if (!mlflow_locate(work->http, work->source_place, name, &request, &from,
                       work->problem) ||
        !http_send(from, &request, &answer, work->problem))
        return false;
    bool ok = answer.status == 200 || answer.status == 404 ||
              http_fail(from, &answer, name, work->problem);
    if (answer.status == 200) {
        *ret = answer.body ? answer.body : strdup("");
        answer.body = NULL;
    }
    http_answer_fini(&answer);
    return ok;
}

/* Copies the descriptions of the source: the environment as it is, MLmodel with new ids. */
static bool
put_descriptions(struct work *work)
{
    static const char *const names[] = {
        "MLmodel",          "conda.yaml",         "python_env.yaml",
        "requirements.txt", "input_example.json", "serving_input_example.json"};
    struct mlmodel model = {work->model_uri, work->model, work->run, "model.onnx"};
    for (size_t i = 0; i < work->publication->n_files; i++)
        if (work->publication->files[i].role == QDQR_MODEL)
            model.file = work->publication->files[i].name;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *text;
        if (!get_beside_source(work, names[i], &text))
            return false;
        if (i == 0) {
            char *description = make_mlmodel(text, &model);
            free(text);
            text = description;
            if (!text)
                return api_problem_no_memory(work->problem);
        }
        bool ok = !text || mlflow_put_text(work->http, work->model_place, names[i],
                                           text, work->problem);
        free(text);
        if (!ok)
            return false;
    }
    return true;
}

static bool
finish_model(struct work *work)
{
    char path[ID + 16];
    snprintf(path, sizeof path, "logged-models/%s", work->model);
    json_t *inputs = json_array();
    if (*work->source_model)
        json_array_append_new(inputs,
                              json_pack("{s:s}", "model_id", work->source_model));
    return post(work, "PATCH", path,
                json_pack("{s:s, s:s}", "model_id", work->model, "status",
                          "LOGGED_MODEL_READY"),
                "the logged model") &&
           post(work, "POST", "runs/outputs",
                json_pack("{s:s, s:[{s:s, s:i}]}", "run_id", work->run, "models",
                          "model_id", work->model, "step", 0),
                "the run's output") &&
           post(work, "POST", "runs/log-inputs",
                json_pack("{s:s, s:[], s:o}", "run_id", work->run, "datasets", "models",
                          inputs),
                "the run's input");
}

static bool
log_metrics(struct work *work)
{
    json_t *metrics = json_array();
    for (size_t i = 0; i < work->publication->n_metrics; i++)
        json_array_append_new(metrics,
                              json_pack("{s:s, s:f, s:I, s:i, s:s}", "key",
                                        work->publication->metrics[i].name, "value",
                                        work->publication->metrics[i].value,
                                        "timestamp", (json_int_t)milliseconds(), "step",
                                        0, "model_id", work->model));
    return post(work, "POST", "runs/log-batch",
                json_pack("{s:s, s:o}", "run_id", work->run, "metrics", metrics),
                "the metrics");
}

static bool
end_run(struct work *work, const char *status)
{
    return post(work, "POST", "runs/update",
                json_pack("{s:s, s:s, s:I}", "run_id", work->run, "status", status,
                          "end_time", (json_int_t)milliseconds()),
                "the run");
}

/* --- the version ---------------------------------------------------------- */

/* Creates the version, which is what others see: everything else is complete by then. */
static bool
create_version(struct work *work)
{
    char source[ID + 16];
    snprintf(source, sizeof source, "models:/%s", work->model);
    json_t *json =
        mlflow_call(work->http, "POST", "model-versions/create",
                    json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", work->ref.name,
                              "source", source, "run_id", work->run, "model_id",
                              work->model, "tags", tags_json(work->publication)),
                    "the version", work->problem);
    bool ok = json && keep(work, work->version, ID,
                           mlflow_text(json, "model_version", "version"), "a version");
    json_decref(json);
    return ok;
}

static bool
set_alias(struct work *work)
{
    const char *alias = work->publication->alias ? work->publication->alias : "";
    if (!*alias)
        alias = work->ref.alias;
    return !*alias || post(work, "POST", "registered-models/alias",
                           json_pack("{s:s, s:s, s:s}", "name", work->ref.name, "alias",
                                     alias, "version", work->version),
                           "the alias");
}

/* Fills a run. When that fails the run ends as failed, and nothing refers to it. */
static bool
publish_new(struct work *work)
{
    bool ok = have_registered_model(work) && find_source(work) && create_run(work);
    if (!ok)
        return false;
    ok = create_model(work) && put_files(work) && put_descriptions(work) &&
         finish_model(work) && log_metrics(work) && end_run(work, "FINISHED");
    if (!ok) {
        struct api_problem ignored = {0}, *first = work->problem;
        int64_t retry_after = work->http->call->retry_after;
        work->problem = &ignored;
        end_run(work, "FAILED");
        work->problem = first;
        work->http->call->retry_after = retry_after;
        return false;
    }
    return create_version(work);
}

bool
mlflow_publish(struct http *http, const struct qdqr_publication *publication,
               char **ret_location, struct api_problem *problem)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        return api_problem_no_memory(problem);
    work->http = http;
    work->publication = publication;
    work->problem = problem;
    bool ok = parse_mlflow_ref(publication->ref, true, &work->ref, problem) &&
              search_version(work) && (*work->version || publish_new(work)) &&
              set_alias(work);
    if (ok &&
        asprintf(ret_location, "models:/%s/%s", work->ref.name, work->version) < 0)
        ok = api_problem_no_memory(problem);
    free(work);
    return ok;
}
