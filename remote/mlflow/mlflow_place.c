/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "mlflow/mlflow_place.h"
#include "base/kind.h"
#include "mlflow/mlflow_api.h"
#include "s3/s3_api.h"
#include "s3/s3_publish.h"

#include <string.h>

#define SCHEME "s3://"
#define PRESIGNED "/api/2.0/mlflow-artifacts/presigned/"

bool
mlflow_is_in_bucket(const char *place)
{
    return strncmp(place, SCHEME, strlen(SCHEME)) == 0;
}

/* --- the bucket ----------------------------------------------------------- */

static const char *
text_or_empty(const char *text)
{
    return text ? text : "";
}

/* Opens http->store with the remote's words about its bucket, unless it is open. */
static bool
open_store(struct http *http, struct api_problem *problem)
{
    if (http->store)
        return true;
    http->store_remote = *http->remote;
    http->store_remote.kind = "s3";
    http->store_remote.url = http->remote->artifacts_url;
    http->store_remote.credentials = http->remote->artifacts_credentials;
    return http_open(&http->store_remote, http->call, &http->store, problem) &&
           s3_authenticate(http->store, problem);
}

bool
mlflow_check_bucket(const struct qdqr_remote *remote, struct api_problem *problem)
{
    struct http *http = NULL;
    struct qdqr_call call = {0};
    if (!*text_or_empty(remote->artifacts_url))
        return true;
    bool ok = http_open(remote, &call, &http, problem) && open_store(http, problem);
    http_close(&http);
    return ok;
}

/* Returns the bucket and the prefix of the remote's URL, "BUCKET/PREFIX"; "": it has none. */
static const char *
own_bucket(const struct http *http)
{
    const char *url = text_or_empty(http->remote->artifacts_url);
    const char *host = strstr(url, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;
    return path ? path + strspn(path, "/") : "";
}

/* Returns the key below the remote's prefix; NULL when the place is not below it. */
static const char *
own_key(const struct http *http, const char *place)
{
    const char *own = own_bucket(http), *path = place + strlen(SCHEME);
    size_t len = strlen(own);
    while (len && own[len - 1] == '/')
        len--;
    if (!len || strncmp(path, own, len) != 0 || path[len] != '/')
        return NULL;
    return path + len + 1;
}

bool
mlflow_find_place(const struct http *http, const char *uri, char ret[QDQR_REF],
                  struct api_problem *problem)
{
    if (!mlflow_is_in_bucket(uri))
        return mlflow_proxied(http, uri, ret, problem);
    const char *key = own_key(http, uri);
    if (!key || !name_is_safe(key) || strlen(uri) >= QDQR_REF)
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "remote %s keeps the artifacts in a bucket that is not "
                               "below its artifacts_url",
                               http->remote->name);
    snprintf(ret, QDQR_REF, "%s", uri);
    return true;
}

/* --- pull ----------------------------------------------------------------- */

/* A list under way. */
struct listing {
    struct qdqr_source *source;
    size_t folder_len; /* bytes of a key before the file's name */
};

static bool
on_object(void *arg, const struct s3_object *object, struct api_problem *problem)
{
    struct listing *listing = arg;
    size_t len = strlen(object->key);
    if (len <= listing->folder_len || object->key[len - 1] == '/')
        return true;
    const char *name = object->key + listing->folder_len;
    return source_add(listing->source, name, object->size, role_by_name(name), problem);
}

bool
mlflow_list_bucket(struct http *http, struct qdqr_source *source,
                   struct api_problem *problem)
{
    char folder[QDQR_REF + 1];
    snprintf(folder, sizeof folder, "%s/", own_key(http, source->place));
    struct listing listing = {source, strlen(folder)};
    return open_store(http, problem) &&
           s3_list(http->store, folder, on_object, &listing, problem);
}

/* Writes the path of a file behind the server. */
static bool
add_proxied(char url[HTTP_URL], const char *route, const char *place, const char *name,
            struct api_problem *problem)
{
    return url_add(url, route, "/", problem) && url_add(url, place, "/", problem) &&
           url_add(url, "/", "/", problem) && url_add(url, name, "/", problem);
}

/* Writes the key of a file in the bucket. */
static bool
make_key_url(struct http *http, const char *place, const char *name, char url[HTTP_URL],
             struct api_problem *problem)
{
    char key[2 * QDQR_REF];
    snprintf(key, sizeof key, "%s/%.1000s", own_key(http, place), name);
    return open_store(http, problem) && s3_url(http->store, key, url, problem);
}

/* Uses a signed URL, which has to be one of the bucket's host. */
static bool
use_signed(struct http *http, const char *url, struct http_request *ret,
           struct api_problem *problem)
{
    const char *host = strstr(url, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;
    if (!open_store(http, problem))
        return false;
    if (!path || strlen(path) >= HTTP_URL || !http_is_own(http->store, url))
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "remote %s hands out URLs of another host than its "
                               "artifacts_url",
                               http->remote->name);
    snprintf(http->store->base, sizeof http->store->base, "%.*s", (int)(path - url),
             url);
    snprintf(ret->url, sizeof ret->url, "%s", path);
    return true;
}

/* Asks the server for a signed URL. *ret_signed is false where it hands out none. */
static bool
ask_for_signed(struct http *http, const char *place, const char *name,
               struct http_request *ret, bool *ret_signed, struct api_problem *problem)
{
    struct http_request request = {.accepts_all = true};
    struct http_answer answer;
    if (!add_proxied(request.url, PRESIGNED, place, name, problem) ||
        !http_send(http, &request, &answer, problem))
        return false;
    json_t *json = answer.status == 200 && answer.body
                       ? json_loadb(answer.body, answer.len, 0, NULL)
                       : NULL;
    http_answer_fini(&answer);
    const char *url = mlflow_text(json, NULL, "url");
    *ret_signed = *url;
    bool ok = !*url || use_signed(http, url, ret, problem);
    json_decref(json);
    return ok;
}

bool
mlflow_locate(struct http *http, const char *place, const char *name,
              struct http_request *ret, struct http **ret_from,
              struct api_problem *problem)
{
    bool is_signed = false;
    *ret_from = http;
    if (mlflow_is_in_bucket(place)) {
        ret->headers[0] = S3_NO_BODY;
        bool ok = make_key_url(http, place, name, ret->url, problem);
        *ret_from = http->store;
        return ok;
    }
    if (*text_or_empty(http->remote->artifacts_url) &&
        !*text_or_empty(http->remote->artifacts_credentials) &&
        !ask_for_signed(http, place, name, ret, &is_signed, problem))
        return false;
    if (is_signed)
        *ret_from = http->store;
    return is_signed ||
           add_proxied(ret->url, MLFLOW_ARTIFACTS "/", place, name, problem);
}

/* --- publish -------------------------------------------------------------- */

static bool
put_proxied(struct http *http, const char *place, const char *name,
            struct http_request *request, struct api_problem *problem)
{
    struct http_answer answer;
    request->method = "PUT";
    request->headers[0] = "Content-Type: application/octet-stream";
    if (!add_proxied(request->url, MLFLOW_ARTIFACTS "/", place, name, problem) ||
        !http_send(http, request, &answer, problem))
        return false;
    bool ok = answer.status == 200 || http_fail(http, &answer, name, problem);
    http_answer_fini(&answer);
    return ok;
}

bool
mlflow_put_file(struct http *http, const char *place, const struct qdqr_upload *file,
                const char *delivery, struct api_problem *problem)
{
    struct http_request request = {.body_fd = file->fd, .body_size = file->size};
    char folder[QDQR_REF + 1];
    if (!mlflow_is_in_bucket(place))
        return put_proxied(http, place, file->name, &request, problem);
    if (!open_store(http, problem))
        return false;
    snprintf(folder, sizeof folder, "%s/", own_key(http, place));
    http->store->done = http->done;
    http->store->total = http->total;
    bool ok = s3_put_file(http->store, folder, file, delivery, problem);
    http->done = http->store->done;
    return ok;
}

bool
mlflow_put_text(struct http *http, const char *place, const char *name,
                const char *text, struct api_problem *problem)
{
    struct http_request request = {.body = text, .body_len = strlen(text)};
    if (!mlflow_is_in_bucket(place))
        return put_proxied(http, place, name, &request, problem);
    return make_key_url(http, place, name, request.url, problem) &&
           s3_put_text(http->store, &request, name, problem);
}
