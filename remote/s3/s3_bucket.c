/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "remote/bucket.h"
#include "s3/s3_api.h"
#include "s3/s3_publish.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MOST_CONFLICTS 5
#define CONFLICT_PAUSE_MS 200

_Static_assert(QDQR_TOKEN == S3_TOKEN, "the same tokens");

struct qdqr_bucket {
    struct http *http;
    /* A handle without credentials, for requests whose URL is signed; NULL until there is one. */
    struct http *bare;
};

bool
qdqr_bucket_open(const struct qdqr_remote *remote, struct qdqr_call *call,
                 struct qdqr_bucket **ret, struct api_problem *problem)
{
    struct qdqr_bucket *bucket = calloc(1, sizeof *bucket);
    bool ok = (bucket || api_problem_no_memory(problem)) &&
              http_open(remote, call, &bucket->http, problem) &&
              s3_authenticate(bucket->http, problem);
    if (!ok)
        qdqr_bucket_close(&bucket);
    *ret = bucket;
    return ok;
}

void
qdqr_bucket_close(struct qdqr_bucket **bucket)
{
    if (!*bucket)
        return;
    http_close(&(*bucket)->http);
    http_close(&(*bucket)->bare);
    free(*bucket);
    *bucket = NULL;
}

bool
qdqr_object_put(struct qdqr_bucket *bucket, const char *key, int fd, const char *digest,
                bool *ret_was_there, struct api_problem *problem)
{
    const struct timespec pause = {0, CONFLICT_PAUSE_MS * 1000000};
    struct stat st;
    if (fstat(fd, &st))
        return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                               "a file for the bucket cannot be read");
    const struct qdqr_upload file = {
        .name = key, .fd = fd, .size = st.st_size, .digest = digest};
    for (int i = 0; i < MOST_CONFLICTS; i++) {
        bool conflict;
        if (!s3_put(bucket->http, key, &file, ret_was_there, &conflict, problem))
            return false;
        if (!conflict)
            return true;
        nanosleep(&pause, NULL);
    }
    return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "the bucket reports one conflict of uploads after the other "
                           "for %.100s",
                           key);
}

bool
qdqr_object_get(struct qdqr_bucket *bucket, const char *key, int fd,
                struct api_problem *problem)
{
    struct http_request request = {.to_fd = fd, .headers = {S3_NO_BODY}};
    return s3_url(bucket->http, key, request.url, problem) &&
           http_pull(bucket->http, &request, -1, problem);
}

bool
qdqr_object_find(struct qdqr_bucket *bucket, const char *key, bool *ret_there,
                 struct api_problem *problem)
{
    return s3_find(bucket->http, key, ret_there, problem);
}

bool
qdqr_object_remove(struct qdqr_bucket *bucket, const char *key,
                   struct api_problem *problem)
{
    struct http_request request = {.method = "DELETE", .headers = {S3_NO_BODY}};
    struct http_answer answer;
    if (!s3_url(bucket->http, key, request.url, problem) ||
        !http_send(bucket->http, &request, &answer, problem))
        return false;
    bool ok = (answer.status >= 200 && answer.status <= 299) || answer.status == 404 ||
              http_fail(bucket->http, &answer, key, problem);
    http_answer_fini(&answer);
    return ok;
}

static bool
open_bare(struct qdqr_bucket *bucket, struct api_problem *problem)
{
    const struct http *http = bucket->http;
    if (bucket->bare)
        return true;
    if (!http_open(http->remote, http->call, &bucket->bare, problem))
        return false;
    memcpy(bucket->bare->base, http->base, sizeof http->base);
    return true;
}

/* Returns whether the server has refused a request because its time was over. */
static bool
is_expired(const struct http_answer *answer)
{
    return answer->status == 403 && answer->body && strstr(answer->body, "expired");
}

bool
qdqr_object_remove_by(struct qdqr_bucket *bucket, const char *key,
                      const struct qdqr_while *when, bool *ret_in_time,
                      struct api_problem *problem)
{
    struct http_request request = {.method = "DELETE", .accepts_all = true};
    struct http_answer answer;
    if (!s3_url(bucket->http, key, request.url, problem) ||
        !s3_sign_url(bucket->http, "DELETE",
                     (struct s3_while){when->since, when->seconds}, request.url,
                     problem) ||
        !open_bare(bucket, problem) ||
        !http_send(bucket->bare, &request, &answer, problem))
        return false;
    *ret_in_time = !is_expired(&answer);
    bool ok = (answer.status >= 200 && answer.status <= 299) || answer.status == 404 ||
              !*ret_in_time || http_fail(bucket->http, &answer, key, problem);
    http_answer_fini(&answer);
    return ok;
}

struct visit {
    qdqr_object_fn fn;
    void *arg;
};

static bool
on_object(void *arg, const struct s3_object *object, struct api_problem *problem)
{
    const struct visit *visit = arg;
    const struct qdqr_object one = {object->key, object->size, object->modified};
    return visit->fn(visit->arg, &one, problem);
}

bool
qdqr_object_list(struct qdqr_bucket *bucket, const char *prefix, char token[QDQR_TOKEN],
                 qdqr_object_fn visit, void *arg, int64_t *ret_now,
                 struct api_problem *problem)
{
    struct visit calls = {visit, arg};
    char date[64];
    if (!s3_list_page(bucket->http, prefix, token, on_object, &calls, problem))
        return false;
    http_header(bucket->http, "Date", date, sizeof date);
    *ret_now = (int64_t)curl_getdate(date, NULL);
    if (*ret_now <= 0)
        *ret_now = (int64_t)time(NULL);
    return true;
}
