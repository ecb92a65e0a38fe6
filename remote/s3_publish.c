/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each object has the metadata x-amz-meta-qdqd-delivery. An object of the same delivery is
 * not sent again, and one of another delivery is not replaced.
 */
#include "config.h"
#include "s3_publish.h"
#include "s3_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define META "x-amz-meta-"
#define DELIVERY META "qdqd-delivery"
#define PART (INT64_C(64) << 20)
#define MOST_PARTS 9000
#define MOST_META (HTTP_HEADERS - 8)

/* A publication under way. */
struct work {
    struct http *http;
    const struct qdqr_publication *publication;
    char *meta[MOST_META + 1]; /* headers; owned, to the first NULL */
    struct api_problem *problem;
};

/* One object under way. */
struct object {
    const struct qdqr_upload *file;
    char key[2 * QDQR_REF];
    char url[HTTP_URL];
    char upload[1024]; /* id of the upload in parts, escaped */
};

/* --- headers -------------------------------------------------------------- */

/* Adds a header of metadata. Values that a header cannot have are escaped. */
static bool
add_meta(struct work *work, size_t i, const char *name, const char *value)
{
    static const char safe[] = " !\"#$&'()*+,/:;<=>?@[\\]^`{|}";
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-._";
    char escaped[HTTP_URL] = "";
    if (!*name || strspn(name, letters) != strlen(name) || i == MOST_META)
        return api_problem_set(
            work->problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
            "the tag \"%.100s\": a tag in S3 has letters, digits, -, "
            "_ and . in its name, and there are at most %d",
            name, MOST_META - 1);
    if (!url_add(escaped, value, safe, work->problem))
        return false;
    if (asprintf(&work->meta[i], META "%s: %s", name, escaped) < 0) {
        work->meta[i] = NULL;
        return api_problem_no_memory(work->problem);
    }
    return true;
}

static bool
make_meta(struct work *work)
{
    const struct qdqr_publication *publication = work->publication;
    bool ok = add_meta(work, 0, DELIVERY + strlen(META), publication->delivery);
    for (size_t i = 0; ok && i < publication->n_tags; i++)
        ok = add_meta(work, i + 1, publication->tags[i].name,
                      publication->tags[i].value);
    return ok;
}

/* Adds the headers of a new object behind the first `n`. */
static void
set_headers(const struct work *work, struct http_request *request, size_t n)
{
    request->headers[n++] = "Content-Type: application/octet-stream";
    for (size_t i = 0; work->meta[i] && n < HTTP_HEADERS; i++)
        request->headers[n++] = work->meta[i];
}

/* --- requests ------------------------------------------------------------- */

static bool
fail_taken(struct work *work, const struct object *object)
{
    return api_problem_set(work->problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                           "remote %s has the key %.300s already, with another "
                           "delivery; choose another key, or remove that one",
                           work->http->remote->name, object->key);
}

/* Sends a request where only the success matters. The answer's body is for the caller, who
   frees it, where `ret` is not NULL. */
static bool
send_one(struct work *work, const struct http_request *request,
         const struct object *object, struct http_answer *ret)
{
    struct http_answer answer;
    if (!http_send(work->http, request, &answer, work->problem))
        return false;
    bool ok = answer.status >= 200 && answer.status <= 299;
    if (answer.status == 412 || answer.status == 409)
        fail_taken(work, object);
    else if (!ok)
        http_fail(work->http, &answer, object->key, work->problem);
    if (ok && ret)
        *ret = answer;
    else
        http_answer_fini(&answer);
    return ok;
}

/* Finds whether the object is there already. An object of another delivery is an error. */
static bool
look_up(struct work *work, const struct object *object, bool *ret_there)
{
    struct http_request request = {.method = "HEAD", .headers = {S3_NO_BODY}};
    struct http_answer answer;
    char delivery[QDQR_REF];
    snprintf(request.url, sizeof request.url, "%s", object->url);
    if (!http_send(work->http, &request, &answer, work->problem))
        return false;
    http_header(work->http, DELIVERY, delivery, sizeof delivery);
    *ret_there = answer.status == 200;
    if (*ret_there && strcmp(delivery, strchr(work->meta[0], ' ') + 1) != 0)
        return fail_taken(work, object);
    return *ret_there || answer.status == 404 ||
           http_fail(work->http, &answer, object->key, work->problem);
}

static bool
put_whole(struct work *work, const struct object *object)
{
    struct http_request request = {
        .method = "PUT", .body_fd = object->file->fd, .body_size = object->file->size};
    const char *hex = strchr(object->file->digest, ':');
    snprintf(request.url, sizeof request.url, "%s", object->url);
    snprintf(request.condition, sizeof request.condition, "x-amz-content-sha256: %s",
             hex ? hex + 1 : "");
    request.headers[0] = request.condition;
    request.headers[1] = "If-None-Match: *";
    set_headers(work, &request, 2);
    return send_one(work, &request, object, NULL);
}

/* --- uploads in parts ----------------------------------------------------- */

/* Starts an upload in parts. */
static bool
begin_parts(struct work *work, struct object *object)
{
    struct http_request request = {.method = "POST", .headers = {S3_NO_BODY}};
    struct http_answer answer;
    char id[512];
    if (snprintf(request.url, sizeof request.url, "%s?uploads=", object->url) >=
        (int)sizeof request.url)
        return api_problem_set(work->problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "the key is too long");
    set_headers(work, &request, 1);
    if (!send_one(work, &request, object, &answer))
        return false;
    const char *at = answer.body ? answer.body : "";
    bool ok = s3_element(&at, "UploadId", id, sizeof id);
    http_answer_fini(&answer);
    if (!ok)
        return api_problem_set(work->problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING,
                               NULL, "remote %s answered without an id of the upload",
                               work->http->remote->name);
    char escaped[HTTP_URL] = "";
    ok = url_add(escaped, id, "", work->problem);
    snprintf(object->upload, sizeof object->upload, "%.1000s", escaped);
    return ok;
}

/* Computes the header with the SHA-256 of a part. */
static bool
hash_part(const struct http_request *request, char *ret, size_t size,
          struct api_problem *problem)
{
    static const size_t chunk = 1 << 18;
    char digest[DIGEST_SIZE], *buffer = malloc(chunk);
    struct digest *state = digest_new();
    bool ok = buffer && state;
    for (int64_t at = 0; ok && at < request->body_size;) {
        int64_t left = request->body_size - at;
        ssize_t n = pread(request->body_fd, buffer,
                          left < (int64_t)chunk ? (size_t)left : chunk,
                          (off_t)(request->body_at + at));
        ok = n > 0 && digest_update(state, buffer, (size_t)n);
        at += n;
    }
    ok = ok && digest_finish(state, digest);
    digest_free(&state);
    free(buffer);
    if (ok)
        snprintf(ret, size, "x-amz-content-sha256: %s", strchr(digest, ':') + 1);
    return ok || api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                                 "a file to publish cannot be read");
}

/* Sends one part and writes its line of the final list. */
static bool
put_part(struct work *work, const struct object *object, int number, int64_t at,
         int64_t size, FILE *list)
{
    struct http_request request = {
        .method = "PUT", .body_fd = object->file->fd, .body_at = at, .body_size = size};
    char etag[256];
    snprintf(request.url, sizeof request.url, "%.*s?partNumber=%d&uploadId=%s",
             HTTP_URL - 1100, object->url, number, object->upload);
    request.headers[0] = request.condition;
    if (!hash_part(&request, request.condition, sizeof request.condition,
                   work->problem) ||
        !send_one(work, &request, object, NULL))
        return false;
    http_header(work->http, "ETag", etag, sizeof etag);
    fprintf(list, "<Part><PartNumber>%d</PartNumber><ETag>", number);
    for (const char *c = etag; *c; c++)
        fprintf(list, *c == '"' ? "&quot;" : "%c", *c);
    fputs("</ETag></Part>", list);
    return true;
}

static bool
end_parts(struct work *work, const struct object *object, const char *list, size_t len)
{
    struct http_request request = {.method = "POST", .body = list, .body_len = len};
    struct http_answer answer;
    char digest[DIGEST_SIZE];
    if (!digest_of(list, len, digest))
        return api_problem_no_memory(work->problem);
    snprintf(request.url, sizeof request.url, "%.*s?uploadId=%s", HTTP_URL - 1100,
             object->url, object->upload);
    snprintf(request.condition, sizeof request.condition, "x-amz-content-sha256: %s",
             strchr(digest, ':') + 1);
    request.headers[0] = request.condition;
    request.headers[1] = "Content-Type: application/xml";
    request.headers[2] = "If-None-Match: *";
    if (!send_one(work, &request, object, &answer))
        return false;
    /* S3 can report a failure behind the status 200. */
    bool ok = answer.body && !strstr(answer.body, "<Error>");
    http_answer_fini(&answer);
    return ok || api_problem_set(work->problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING,
                                 NULL, "remote %s could not join the parts of %.300s",
                                 work->http->remote->name, object->key);
}

static void
abort_parts(struct work *work, const struct object *object)
{
    struct http_request request = {.method = "DELETE", .headers = {S3_NO_BODY}};
    struct http_answer answer;
    struct api_problem ignored = {0};
    int64_t retry_after = work->http->call->retry_after;
    snprintf(request.url, sizeof request.url, "%.*s?uploadId=%s", HTTP_URL - 1100,
             object->url, object->upload);
    if (http_send(work->http, &request, &answer, &ignored))
        http_answer_fini(&answer);
    work->http->call->retry_after = retry_after;
}

static bool
put_parts(struct work *work, struct object *object)
{
    char *list = NULL;
    size_t len = 0;
    int64_t size = object->file->size, part = PART, at = 0;
    while (size / part >= MOST_PARTS)
        part *= 2;
    FILE *to = open_memstream(&list, &len);
    if (!to)
        return api_problem_no_memory(work->problem);
    bool ok = begin_parts(work, object), has_begun = ok;
    fputs("<CompleteMultipartUpload>", to);
    for (int number = 1; ok && at < size; number++, at += part)
        ok =
            put_part(work, object, number, at, size - at < part ? size - at : part, to);
    fputs("</CompleteMultipartUpload>", to);
    ok = (fclose(to) == 0 || api_problem_no_memory(work->problem)) && ok &&
         end_parts(work, object, list, len);
    free(list);
    if (!ok && has_begun)
        abort_parts(work, object);
    return ok;
}

/* --- the publication ------------------------------------------------------ */

/* Writes the key of a file: the model's is the ref, and the others stand beside it. */
static bool
make_object(struct work *work, const struct qdqr_upload *file, struct object *ret)
{
    const char *ref = work->publication->ref, *slash = strrchr(ref, '/');
    bool is_folder = slash && !slash[1];
    *ret = (struct object){.file = file};
    if (file->role == QDQR_MODEL && !is_folder)
        snprintf(ret->key, sizeof ret->key, "%s", ref);
    else
        snprintf(ret->key, sizeof ret->key, "%.*s%.1000s",
                 slash ? (int)(slash + 1 - ref) : 0, ref, file->name);
    return s3_url(work->http, ret->key, ret->url, work->problem);
}

/* Sends a file unless it is there. */
static bool
put_file(struct work *work, const struct qdqr_upload *file)
{
    struct object *object = malloc(sizeof *object);
    bool is_there = false;
    bool ok = object || api_problem_no_memory(work->problem);
    ok = ok && make_object(work, file, object) && look_up(work, object, &is_there);
    if (ok && is_there)
        work->http->done += file->size;
    else if (ok)
        ok = file->size > PART ? put_parts(work, object) : put_whole(work, object);
    free(object);
    return ok;
}

/* Checks that a pull of a key that is no folder will find the data beside it. */
static bool
check_names(const struct qdqr_publication *publication, struct api_problem *problem)
{
    const char *ref = publication->ref, *slash = strrchr(ref, '/');
    const char *base = slash ? slash + 1 : ref;
    for (size_t i = 0; *base && i < publication->n_files; i++) {
        const struct qdqr_upload *file = &publication->files[i];
        bool is_beside = strncmp(file->name, base, strlen(base)) == 0 &&
                         s3_is_data_ending(file->name + strlen(base));
        if (file->role == QDQR_DATA && !is_beside)
            return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                                   "%.200s is not found as the data of %.200s; publish "
                                   "to a folder, a key that ends in '/'",
                                   file->name, ref);
    }
    return true;
}

bool
s3_publish(struct http *http, const struct qdqr_publication *publication,
           char **ret_location, struct api_problem *problem)
{
    struct work work = {http, publication, {NULL}, problem};
    if (publication->alias && *publication->alias)
        return api_problem_set(problem, API_UNSUPPORTED, QDQ_AT_NOTHING, NULL,
                               "remote %s of kind s3 has no aliases",
                               http->remote->name);
    for (size_t i = 0; i < publication->n_files; i++)
        http->total += publication->files[i].size;
    bool ok = check_names(publication, problem) && make_meta(&work);
    for (int pass = 0; ok && pass < 2; pass++) /* the model in the second one */
        for (size_t i = 0; ok && i < publication->n_files; i++)
            if ((publication->files[i].role == QDQR_MODEL) == (pass == 1))
                ok = put_file(&work, &publication->files[i]);
    for (size_t i = 0; i < MOST_META; i++)
        free(work.meta[i]);
    if (!ok)
        return false;
    *ret_location = strdup(publication->ref);
    return *ret_location || api_problem_no_memory(problem);
}
