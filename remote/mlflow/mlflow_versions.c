/* SPDX-License-Identifier: Apache-2.0 */
/* The newest versions of MLflow's registered models. */
#include "config.h"
#include "mlflow/mlflow_api.h"
#include "mlflow/mlflow_versions.h"
#include "api/remote.h"
#include "api/grow.h"

#include <string.h>

#define PAGE "500"
#define MOST_PAGES 40
#define PAGE_TOKEN 4096 /* bytes of the name of the next page, with its NUL */
#define PROMPT "mlflow.prompt.is_prompt" /* the tag of a prompt, which is no model */

/* The versions that were found, and how far the search has come. */
struct search {
    const char *models, *prefix;
    int64_t since;
    struct qdqr_version *list;
    size_t n;
    bool is_over; /* a version is older than `since` */
    struct api_problem *problem;
};

/* Returns whether a tag has a name that begins so. */
static bool
has_tag(const json_t *version, const char *prefix)
{
    const json_t *tags = json_object_get(version, "tags");
    for (size_t i = 0; i < json_array_size(tags); i++)
        if (strncmp(mlflow_text(json_array_get(tags, i), NULL, "key"), prefix,
                    strlen(prefix)) == 0)
            return true;
    return false;
}

static bool
is_number(const char *version)
{
    size_t len = strspn(version, "0123456789");
    return len > 0 && len < 19 && !version[len] && *version != '0';
}

static bool
add_version(struct search *search, const json_t *version)
{
    const char *name = mlflow_text(version, NULL, "name");
    const char *number = mlflow_text(version, NULL, "version");
    int64_t created =
        json_integer_value(json_object_get(version, "creation_timestamp"));
    search->is_over = search->is_over || created < search->since;
    if (search->is_over || !is_number(number) ||
        !api_rule_matches(search->models, name) || has_tag(version, PROMPT) ||
        strcmp(mlflow_text(version, NULL, "status"), "READY") != 0)
        return true;
    struct qdqr_version *grown =
        api_grow(search->list, search->n, 1, sizeof *search->list);
    if (!grown)
        return api_problem_no_memory(search->problem);
    search->list = grown;
    grown[search->n] =
        (struct qdqr_version){.name = strdup(name),
                              .version = strdup(number),
                              .created = created,
                              .is_tagged = has_tag(version, search->prefix)};
    search->n++;
    return (grown[search->n - 1].name && grown[search->n - 1].version) ||
           api_problem_no_memory(search->problem);
}

/* Reads a page of the search. `token` is that of this page, and becomes that of the next;
   "": it is the first, or was the last. */
static bool
read_page(struct http *http, struct search *search, char token[PAGE_TOKEN])
{
    struct http_request request = {.max_body = INT64_C(64) << 20};
    if (!url_add(request.url, MLFLOW_API "model-versions/search", "/",
                 search->problem) ||
        !mlflow_query(&request, "max_results", PAGE, search->problem) ||
        !mlflow_query(&request, "order_by", "creation_timestamp DESC",
                      search->problem) ||
        (*token && !mlflow_query(&request, "page_token", token, search->problem)))
        return false;
    json_t *json = mlflow_send(http, &request, "the list of versions", search->problem);
    const json_t *list = json_object_get(json, "model_versions");
    bool ok = json != NULL;
    for (size_t i = 0; ok && i < json_array_size(list); i++)
        ok = add_version(search, json_array_get(list, i));
    const char *next = mlflow_text(json, NULL, "next_page_token");
    if (ok && strlen(next) >= PAGE_TOKEN)
        ok = api_problem_set(search->problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING,
                             NULL, "remote %s names the next page by %zu bytes",
                             http->remote->name, strlen(next));
    snprintf(token, PAGE_TOKEN, "%s", next);
    json_decref(json);
    return ok;
}

bool
mlflow_versions(struct http *http, const struct qdqr_question *question,
                struct qdqr_version **ret, size_t *ret_n, struct api_problem *problem)
{
    struct search search = {.models = question->models,
                            .prefix = question->tag_prefix,
                            .since = question->since,
                            .problem = problem};
    char token[PAGE_TOKEN] = "";
    bool ok = true;
    for (int i = 0; ok && i < MOST_PAGES && !search.is_over && (!i || *token); i++)
        ok = read_page(http, &search, token);
    if (!ok) {
        qdqr_versions_free(search.list, search.n);
        return false;
    }
    *ret = search.list;
    *ret_n = search.n;
    return true;
}
