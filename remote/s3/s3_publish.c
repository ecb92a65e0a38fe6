/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each object has the metadata x-amz-meta-qdqd-delivery. An object of the same delivery is
 * not sent again, and one of another delivery is not replaced.
 */
#include "config.h"
#include "s3/s3_publish.h"
#include "s3/s3_api.h"

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
    long status;               /* of the last answer to send_one() */
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
    work->status = 0;
    if (!http_send(work->http, request, &answer, work->problem))
        return false;
    work->status = answer.status;
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

/* Starts to compute the digest of the part at `at`. Returns NULL with a problem. */
static struct hasher *
hash_part(struct work *work, const struct object *object, int64_t at, int64_t size)
{
    struct hasher *hasher = hasher_start(object->file->fd, at);
    if (hasher)
        hasher_allow(hasher, at + size);
    else
        api_problem_no_memory(work->problem);
    return hasher;
}

/* Writes the header with the digest of the part that ends at `end`. */
static bool
print_digest(struct work *work, struct hasher **hasher, int64_t end, char *ret,
             size_t size)
{
    char digest[DIGEST_SIZE];
    if (!hasher_finish(hasher, end, digest))
        return api_problem_set(work->problem, API_IO, QDQ_AT_NOTHING, NULL,
                               "a file to publish cannot be read");
    snprintf(ret, size, "x-amz-content-sha256: %s", strchr(digest, ':') + 1);
    return true;
}

/* Sends the part of that number, whose digest `hasher` computes, and writes its line of the
   final list. Meanwhile the digest of the next part is computed: *hasher is that one then, NULL
   behind the last one. */
static bool
put_part(struct work *work, const struct object *object, int number, int64_t part,
         struct hasher **hasher, FILE *list)
{
    int64_t at = (number - 1) * part, left = object->file->size - at;
    int64_t size = left < part ? left : part, next = left - size;
    struct http_request request = {
        .method = "PUT", .body_fd = object->file->fd, .body_at = at, .body_size = size};
    char etag[256];
    snprintf(request.url, sizeof request.url, "%.*s?partNumber=%d&uploadId=%s",
             HTTP_URL - 1100, object->url, number, object->upload);
    request.headers[0] = request.condition;
    if (!print_digest(work, hasher, at + size, request.condition,
                      sizeof request.condition) ||
        (next > 0 &&
         !(*hasher = hash_part(work, object, at + size, next < part ? next : part))) ||
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
    int64_t size = object->file->size, part = PART;
    while (size / part >= MOST_PARTS)
        part *= 2;
    FILE *to = open_memstream(&list, &len);
    if (!to)
        return api_problem_no_memory(work->problem);
    bool has_begun = begin_parts(work, object);
    struct hasher *hasher = has_begun ? hash_part(work, object, 0, part) : NULL;
    bool ok = hasher;
    fputs("<CompleteMultipartUpload>", to);
    for (int number = 1; ok && hasher; number++)
        ok = put_part(work, object, number, part, &hasher, to);
    hasher_free(&hasher);
    fputs("</CompleteMultipartUpload>", to);
    ok = (fclose(to) == 0 || api_problem_no_memory(work->problem)) && ok &&
         end_parts(work, object, list, len);
    free(list);
    if (!ok && has_begun)
        abort_parts(work, object);
    return ok;
}

/* --- one object ----------------------------------------------------------- */

/* Returns whether a failure is that the object is there. */
static bool
is_taken(const struct work *work, long status)
{
    return work->problem->set && work->status == status;
}

bool
s3_put(struct http *http, const char *key, const struct qdqr_upload *file,
       bool *ret_was_there, bool *ret_conflict, struct api_problem *problem)
{
    struct api_problem fault = {0};
    struct work work = {.http = http, .problem = &fault};
    struct object *object = calloc(1, sizeof *object);
    bool ok = object || api_problem_no_memory(problem);
    *ret_was_there = *ret_conflict = false;
    if (!ok)
        return false;
    object->file = file;
    snprintf(object->key, sizeof object->key, "%s", key);
    ok = s3_url(http, key, object->url, &fault);
    if (ok && file->size > PART)
        ok = s3_find(http, key, ret_was_there, &fault) &&
             (*ret_was_there || put_parts(&work, object));
    else if (ok)
        ok = put_whole(&work, object);
    free(object);
    *ret_was_there = *ret_was_there || is_taken(&work, 412);
    *ret_conflict = is_taken(&work, 409);
    if (ok || *ret_was_there || *ret_conflict)
        return true;
    if (problem && !problem->set)
        *problem = fault;
    return false;
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
    struct work work = {.http = http, .publication = publication, .problem = problem};
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

bool
s3_put_file(struct http *http, const char *folder, const struct qdqr_upload *file,
            const char *delivery, struct api_problem *problem)
{
    const struct qdqr_publication publication = {.ref = folder, .delivery = delivery};
    struct work work = {.http = http, .publication = &publication, .problem = problem};
    bool ok = make_meta(&work) && put_file(&work, file);
    for (size_t i = 0; i < MOST_META; i++)
        free(work.meta[i]);
    return ok;
}

bool
s3_put_text(struct http *http, struct http_request *request, const char *what,
            struct api_problem *problem)
{
    struct http_answer answer;
    char digest[DIGEST_SIZE];
    if (!digest_of(request->body, request->body_len, digest))
        return api_problem_no_memory(problem);
    snprintf(request->condition, sizeof request->condition, "x-amz-content-sha256: %s",
             strchr(digest, ':') + 1);
    request->method = "PUT";
    request->headers[0] = request->condition;
    request->headers[1] = "Content-Type: application/octet-stream";
    if (!http_send(http, request, &answer, problem))
        return false;
    bool ok = answer.status == 200 || http_fail(http, &answer, what, problem);
    http_answer_fini(&answer);
    return ok;
}
