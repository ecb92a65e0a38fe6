/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "mlflow/mlflow_api.h"
#include "mlflow/mlflow_ref.h"

#include <stdlib.h>
#include <string.h>

bool
mlflow_query(struct http_request *request, const char *key, const char *value,
             struct api_problem *problem)
{
    const char *mark = strchr(request->url, '?') ? "&" : "?";
    return url_add(request->url, mark, mark, problem) &&
           url_add(request->url, key, "", problem) &&
           url_add(request->url, "=", "=", problem) &&
           url_add(request->url, value, "", problem);
}

/* Parses the JSON object of an answer, which it frees. */
static json_t *
parse_answer(struct http *http, struct http_answer *answer, const char *what,
             struct api_problem *problem)
{
    json_t *json = NULL;
    if (answer->status != 200) {
        http_fail(http, answer, what, problem);
        http_answer_fini(answer);
        return NULL;
    }
    json = json_loadb(answer->body ? answer->body : "", answer->len, 0, NULL);
    http_answer_fini(answer);
    if (!json_is_object(json)) {
        json_decref(json);
        json = NULL;
        api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                        "remote %s: the answer for %s is no JSON object; its url may "
                        "be another service's",
                        http->remote->name, what);
    }
    return json;
}

json_t *
mlflow_send(struct http *http, const struct http_request *request, const char *what,
            struct api_problem *problem)
{
    struct http_answer answer;
    return http_send(http, request, &answer, problem)
               ? parse_answer(http, &answer, what, problem)
               : NULL;
}

json_t *
mlflow_call(struct http *http, const char *method, const char *path, json_t *body,
            const char *what, struct api_problem *problem)
{
    struct http_request request = {.method = method,
                                   .headers = {"Content-Type: application/json"}};
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_t *json = NULL;
    json_decref(body);
    if (!text) {
        api_problem_no_memory(problem);
        return NULL;
    }
    request.body = text;
    request.body_len = strlen(text);
    if (url_add(request.url, MLFLOW_API, "/", problem) &&
        url_add(request.url, path, "/", problem))
        json = mlflow_send(http, &request, what, problem);
    free(text);
    return json;
}

const char *
mlflow_text(const json_t *json, const char *object, const char *member)
{
    const json_t *inner = object ? json_object_get(json, object) : json;
    const char *text = json_string_value(json_object_get(inner, member));
    return text ? text : "";
}

json_t *
mlflow_find(struct http *http, const struct mlflow_ref *ref,
            struct api_problem *problem)
{
    bool has_alias = *ref->alias;
    struct http_request request = {.method = NULL};
    bool ok = url_add(request.url, MLFLOW_API, "/", problem) &&
              url_add(request.url,
                      has_alias ? "registered-models/alias" : "model-versions/get", "/",
                      problem) &&
              mlflow_query(&request, "name", ref->name, problem) &&
              mlflow_query(&request, has_alias ? "alias" : "version",
                           has_alias ? ref->alias : ref->version, problem);
    struct http_answer answer;
    if (!ok || !http_send(http, &request, &answer, problem))
        return NULL;
    if (has_alias && answer.status == 400) /* MLflow's answer for an unknown alias */
        answer.status = 404;
    return parse_answer(http, &answer, has_alias ? "the alias" : "the model version",
                        problem);
}

bool
mlflow_proxied(const struct http *http, const char *uri, char ret[QDQR_REF],
               struct api_problem *problem)
{
    static const char scheme[] = "mlflow-artifacts:";
    const char *path = uri + strlen(scheme);
    if (strncmp(uri, scheme, strlen(scheme)) == 0) {
        if (path[0] == '/' && path[1] == '/') /* behind it comes the server's name */
            path = strchr(path + 2, '/');
        if (path && *path == '/' && strlen(path) < QDQR_REF && !strstr(path, "..")) {
            snprintf(ret, QDQR_REF, "%s", path + 1);
            return true;
        }
    }
    return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                           "remote %s keeps the artifacts where its server does not "
                           "hand them out; start it with --serve-artifacts",
                           http->remote->name);
}
