/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MLflow's model registry (3.x). A model version names a folder of artifacts, which the
 * tracking server hands out: MLmodel, the ONNX file, its data files, and environments.
 */
#include "config.h"
#include "base/kind.h"
#include "mlflow/mlflow_api.h"
#include "mlflow/mlflow_place.h"
#include "mlflow/mlflow_publish.h"
#include "mlflow/mlflow_ref.h"
#include "mlflow/mlflow_versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FOLDERS 256

static bool
check_ref(const char *ref, bool to_publish, struct api_problem *problem)
{
    struct mlflow_ref parsed;
    return parse_mlflow_ref(ref, to_publish, &parsed, problem);
}

/* Folders below source->place, in the order in which they are listed. */
struct folders {
    char *names[MOST_FOLDERS]; /* "", or a path that ends in '/'; owned */
    size_t n;
};

static bool
add_folder(struct folders *folders, const char *name, struct api_problem *problem)
{
    if (folders->n == MOST_FOLDERS || !name_is_safe(name))
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "the remote lists more than %d folders, or one whose "
                               "name is no relative path",
                               MOST_FOLDERS);
    if (asprintf(&folders->names[folders->n], "%s/", name) < 0)
        return api_problem_no_memory(problem);
    folders->n++;
    return true;
}

/* Adds an entry of a list, which is a file or a folder. */
static bool
add_entry(struct qdqr_source *source, struct folders *folders, const char *folder,
          const json_t *entry, struct api_problem *problem)
{
    const json_t *size = json_object_get(entry, "file_size");
    char name[QDQR_REF];
    if (snprintf(name, sizeof name, "%s%s", folder, mlflow_text(entry, NULL, "path")) >=
        (int)sizeof name)
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "the remote lists a file whose name is too long");
    if (json_is_true(json_object_get(entry, "is_dir")))
        return add_folder(folders, name, problem);
    return source_add(source, name,
                      json_is_integer(size) ? json_integer_value(size) : -1,
                      role_by_name(name), problem);
}

/* Lists a folder below source->place. */
static bool
list_folder(struct http *http, struct qdqr_source *source, struct folders *folders,
            const char *folder, struct api_problem *problem)
{
    struct http_request request = {.method = NULL};
    size_t len = strlen(folder);
    char *path;
    int n = asprintf(&path, "%s%s%.*s", source->place, len ? "/" : "",
                     len ? (int)len - 1 : 0, folder);
    if (n < 0)
        return api_problem_no_memory(problem);
    bool ok = url_add(request.url, MLFLOW_ARTIFACTS, "/", problem) &&
              mlflow_query(&request, "path", path, problem);
    free(path);
    json_t *json =
        ok ? mlflow_send(http, &request, "the list of artifacts", problem) : NULL;
    const json_t *files = json_object_get(json, "files");
    ok = json != NULL;
    for (size_t i = 0; ok && i < json_array_size(files); i++)
        ok = add_entry(source, folders, folder, json_array_get(files, i), problem);
    if (ok && *mlflow_text(json, NULL, "next_page_token"))
        ok = api_problem_set(problem, API_REMOTE_TOO_LARGE, QDQ_AT_NOTHING, NULL,
                             "remote %s lists the files of a folder in pages, and more "
                             "than one is not read",
                             http->remote->name);
    json_decref(json);
    return ok;
}

/* Adds the files of source->place and of all folders below it. */
static bool
list_files(struct http *http, struct qdqr_source *source, struct api_problem *problem)
{
    if (mlflow_is_in_bucket(source->place))
        return mlflow_list_bucket(http, source, problem);
    struct folders *folders = calloc(1, sizeof *folders);
    bool ok = folders || api_problem_no_memory(problem);
    ok = ok && list_folder(http, source, folders, "", problem);
    for (size_t i = 0; ok && i < folders->n; i++)
        ok = list_folder(http, source, folders, folders->names[i], problem);
    for (size_t i = 0; folders && i < folders->n; i++)
        free(folders->names[i]);
    free(folders);
    return ok;
}

/* Finds the folder of a version's artifacts. */
static bool
find_place(struct http *http, const char *name, const char *version,
           struct qdqr_source *source, struct api_problem *problem)
{
    char path[QDQR_REF];
    struct http_request request = {.method = NULL};
    bool ok = url_add(request.url, MLFLOW_API "model-versions/get-download-uri", "/",
                      problem) &&
              mlflow_query(&request, "name", name, problem) &&
              mlflow_query(&request, "version", version, problem);
    json_t *json =
        ok ? mlflow_send(http, &request, "the place of the model", problem) : NULL;
    ok = json && mlflow_find_place(http, mlflow_text(json, NULL, "artifact_uri"), path,
                                   problem);
    if (ok) {
        source->place = strdup(path);
        ok = source->place || api_problem_no_memory(problem);
    }
    json_decref(json);
    return ok;
}

static bool
resolve(struct http *http, const char *ref, struct qdqr_source *source,
        struct api_problem *problem)
{
    struct mlflow_ref parsed;
    if (!parse_mlflow_ref(ref, false, &parsed, problem))
        return false;
    json_t *json = mlflow_find(http, &parsed, problem);
    const char *version = mlflow_text(json, "model_version", "version");
    bool ok = json != NULL;
    if (ok && (!*version || strspn(version, "0123456789") != strlen(version)))
        ok =
            api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                            "remote %s answered without a version", http->remote->name);
    if (ok) {
        char resolved[2 * QDQR_REF + 16];
        snprintf(resolved, sizeof resolved, "models:/%s/%.32s", parsed.name, version);
        source->resolved = strdup(resolved);
        source->digest = strdup(mlflow_text(json, "model_version", "source"));
        ok = (source->resolved && source->digest) || api_problem_no_memory(problem);
    }
    ok = ok && find_place(http, parsed.name, version, source, problem) &&
         list_files(http, source, problem) && source_has_model(http, source, problem);
    json_decref(json);
    return ok;
}

static bool
locate(struct http *http, const struct qdqr_source *source, size_t file,
       struct http_request *ret, struct http **ret_from, struct api_problem *problem)
{
    return mlflow_locate(http, source->place, source->files[file].name, ret, ret_from,
                         problem);
}

const struct remote_kind_row remote_mlflow = {
    .name = "mlflow",
    .authenticate = http_authenticate,
    .check = mlflow_check_bucket,
    .check_ref = check_ref,
    .resolve = resolve,
    .locate = locate,
    .publish = mlflow_publish,
    .versions = mlflow_versions,
};
