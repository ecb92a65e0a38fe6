/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of models, datasets and blobs. */
#include "config.h"
#include "handlers/handlers.h"
#include "handlers/model_input.h"
#include "http/conditions.h"
#include "library/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The path under which each kind of stored file is found. */
static const char *const paths[] = {
    [STORE_MODEL] = "/v1/models",
    [STORE_DATASET] = "/v1/datasets",
    [STORE_BLOB] = "/v1/blobs",
};

static char *
encode_file(enum store_kind kind, const struct store_file *file)
{
    switch (kind) {
    case STORE_MODEL:
        return api_model_encode(file->id, file->size, file->created_at,
                                file->expires_at, file->info);
    case STORE_DATASET:
        return api_dataset_encode(file->id, file->size, file->created_at,
                                  file->expires_at, file->info);
    default:
        return api_blob_encode(file->id, file->size, file->created_at,
                               file->expires_at);
    }
}

bool
check_dataset(const struct service *service, struct spool *file, char **ret,
              struct api_problem *p)
{
    struct message question = {.type = MESSAGE_CHECK_DATASET, .n_fds = 1};
    if (!spool_read(file, &question.fds[0], p))
        return false;
    bool ok = pool_ask(service, &question, ret, p);
    close(question.fds[0]);
    return ok;
}

static void
reply_stored(struct request *request, enum store_kind kind,
             const struct store_file *stored, bool is_new)
{
    reply_json(request, is_new ? 201 : 200, encode_file(kind, stored));
    reply_header(request, "Location", "%s/%s", paths[kind], stored->id);
}

/* Stores the file that is the body. */
static void
store_file(struct request *request, enum store_kind kind, const char *info)
{
    struct store_file stored = {0};
    bool is_new;
    if (library_add(request->service->library, kind, &request->body.files[BODY_MODEL],
                    info, &stored, &is_new, &request->problem))
        reply_stored(request, kind, &stored, is_new);
    store_file_fini(&stored);
}

static void
delete_file(struct request *request, enum store_kind kind)
{
    if (library_remove(request->service->library, kind, request->match.id,
                       STORE_REQUEST, &request->problem))
        reply_empty(request, 204);
}

void
handle_models_post(struct request *request)
{
    const struct service *service = request->service;
    struct model_input input = {0};
    struct store_file stored = {0};
    bool is_new;
    if (model_input_check(service, &request->body, &input, &request->problem) &&
        model_input_store(service->library, &input, &stored, &is_new,
                          &request->problem))
        reply_stored(request, STORE_MODEL, &stored, is_new);
    store_file_fini(&stored);
    model_input_fini(&input);
}

void
handle_datasets_post(struct request *request)
{
    char *info = NULL;
    if (check_dataset(request->service, request->body.files[BODY_MODEL], &info,
                      &request->problem))
        store_file(request, STORE_DATASET, info);
    free(info);
}

/* Stores any bytes under the digest in the path. Their content is not checked. */
void
handle_blob_put(struct request *request)
{
    store_file(request, STORE_BLOB, NULL);
}

void
handle_blob_delete(struct request *request)
{
    delete_file(request, STORE_BLOB);
}

void
handle_model_delete(struct request *request)
{
    delete_file(request, STORE_MODEL);
}

void
handle_dataset_delete(struct request *request)
{
    delete_file(request, STORE_DATASET);
}

enum { TAG_SIZE = DIGEST_SIZE + 2 };

/* The client's conditions and range of a conditional request. */
struct wanted {
    bool known;
    enum api_range_kind ranged;
    struct api_range range;
};

/* Reads the conditions of GET and HEAD, and the range of GET. With other methods the
   answer is not the resource at the path, so they have neither. */
static bool
read_wanted(const struct request *request, const char *tag, uint64_t size,
            struct wanted *ret, struct api_problem *p)
{
    const char *unless = request_header(request, "If-Range");
    bool is_get = !strcmp(request->method, "GET");
    *ret = (struct wanted){.ranged = API_RANGE_WHOLE};
    if (!is_get && strcmp(request->method, "HEAD") != 0)
        return true;
    if (!conditions_match(request, tag, p) ||
        !conditions_know(request, tag, &ret->known, p))
        return false;
    if (is_get && !ret->known && (!unless || !strcmp(unless, tag)))
        ret->ranged =
            api_header_range(request_header(request, "Range"), size, &ret->range);
    return ret->ranged != API_RANGE_NONE ||
           api_fail(p, API_RANGE_NOT_SATISFIABLE,
                    "the range begins beyond the %llu bytes that are there",
                    (unsigned long long)size);
}

void
reply_digest(struct request *request, const char *id)
{
    char digest[API_HEADER_DIGEST];
    if (api_header_digest_of(id, digest))
        reply_header(request, "Repr-Digest", "%s", digest);
}

/* Opens a blob for an answer. Bytes that are sent as a whole are checked first. */
static bool
open_bytes(const struct request *request, bool is_whole, const char *id, uint64_t size,
           int *ret, struct api_problem *p)
{
    struct blobs *blobs = library_blobs(request->service->library);
    return is_whole ? blob_read(blobs, id, ret, p)
                    : blob_read_part(blobs, id, size, ret, p);
}

/* Opens a stored model of several files as one bundle. NOT_FOUND. */
static bool
open_bundle(const struct request *request, bool is_whole,
            const struct store_model_files *files, struct bundle **ret,
            struct api_problem *p)
{
    struct bundle_file packed[1 + API_MAX_EXTERNAL];
    size_t n = 0;
    bool ok = files->n > 0 && files->n <= sizeof packed / sizeof *packed;
    if (!ok) /* the model was deleted meanwhile */
        return api_fail(p, API_NOT_FOUND, "there is no such model");
    for (; ok && n < files->n; n += ok) {
        const struct store_model_file *file = &files->items[n];
        packed[n] = (struct bundle_file){.path = file->path, .size = file->size};
        ok = open_bytes(request, is_whole, file->digest, file->size, &packed[n].fd, p);
    }
    if (ok)
        return bundle_open(packed, n, ret, p);
    while (n)
        close(packed[--n].fd);
    return false;
}

/* Finds whether the answer has the whole file. The size of a bundle is known only when its files
   are open, and does not matter for that: a range that begins beyond the end is no whole. */
static bool
find_whole(const struct request *request, const struct store_file *file, bool *ret,
           struct api_problem *p)
{
    struct wanted wanted;
    struct api_problem problem = {0};
    char tag[TAG_SIZE];
    snprintf(tag, sizeof tag, "\"%s\"", file->id);
    if (!read_wanted(request, tag, UINT64_MAX, &wanted, &problem) &&
        problem.code != API_RANGE_NOT_SATISFIABLE) {
        *p = problem;
        return false;
    }
    *ret = strcmp(request->method, "HEAD") != 0 && !wanted.known &&
           wanted.ranged == API_RANGE_WHOLE;
    return true;
}

/* Replies with the stored bytes: one file, or several as a bundle. */
static bool
reply_bytes(struct request *request, const struct store_file *file,
            struct api_problem *p)
{
    struct library *library = request->service->library;
    struct store_model_files several = {0};
    struct bundle *bundle;
    bool is_whole;
    int fd;
    if (!find_whole(request, file, &is_whole, p))
        return false;
    if (!file->info) {
        if (!open_bytes(request, is_whole, file->id, file->size, &fd, p))
            return false;
        reply_file(request, "application/octet-stream", fd, file->size);
        return true;
    }
    bool ok = store_model_files(library_store(library), file->id, &several, p) &&
              open_bundle(request, is_whole, &several, &bundle, p);
    store_model_files_fini(&several);
    if (ok)
        reply_bundle(request, bundle);
    return ok;
}

/* Adds the headers that describe the bytes, and reduces the reply to 304 or to a
   range when the request asks for that. */
static void
apply_conditions(struct request *request, const struct store_file *file,
                 const char *ext)
{
    struct wanted wanted;
    char tag[TAG_SIZE];
    uint64_t size = request->reply.size;
    snprintf(tag, sizeof tag, "\"%s\"", file->id);
    if (!read_wanted(request, tag, size, &wanted, &request->problem)) {
        if (request->problem.code == API_RANGE_NOT_SATISFIABLE)
            reply_header(request, "Content-Range", "bytes */%llu",
                         (unsigned long long)size);
        return;
    }
    if (wanted.known)
        request->reply.status = 304; /* libmicrohttpd sends no body with it */
    if (wanted.ranged == API_RANGE_PART)
        reply_part(request, &wanted.range);
    reply_header(request, "Accept-Ranges", "bytes");
    reply_header(request, "ETag", "%s", tag);
    reply_header(request, "Content-Disposition", "attachment; filename=\"%.12s%s\"",
                 strchr(file->id, ':') + 1, ext);
    if (!request->reply.bundle)
        reply_digest(request, file->id);
}

/*
 * Replies with a stored file. An id stands for the same bytes forever, so it is the
 * entity tag as well. This is also true of a bundle, because the same files always give
 * the same bundle.
 */
static void
reply_stored_bytes(struct request *request, enum store_kind kind, const char *id)
{
    struct store_file file = {0};
    if (store_file_get(library_store(request->service->library), kind, id, &file,
                       &request->problem) &&
        reply_bytes(request, &file, &request->problem))
        apply_conditions(request, &file,
                         kind == STORE_BLOB ? ".bin"
                         : file.info        ? ".tar"
                                            : ".onnx");
    store_file_fini(&file);
}

void
reply_model(struct request *request, const char *id)
{
    reply_stored_bytes(request, STORE_MODEL, id);
}

void
handle_model_get(struct request *request)
{
    reply_model(request, request->match.id);
}

void
handle_blob_get(struct request *request)
{
    reply_stored_bytes(request, STORE_BLOB, request->match.id);
}

void
handle_model_info(struct request *request)
{
    struct library *library = request->service->library;
    struct api_problem *p = &request->problem;
    const char *id = request->match.id;
    struct message question = {.type = MESSAGE_INFO};
    struct store_file file = {0};
    struct model_fds files = {0};
    char *info;
    bool ok = store_file_get(library_store(library), STORE_MODEL, id, &file, p) &&
              model_fds_open(library, id, &files, p);
    if (ok)
        model_fds_attach(&files, &question);
    if (ok && pool_ask(request->service, &question, &info, p))
        reply_json(request, 200, info);
    model_fds_fini(&files);
    store_file_fini(&file);
}

void
handle_dataset_get(struct request *request)
{
    struct store_file file;
    if (!store_file_get(library_store(request->service->library), STORE_DATASET,
                        request->match.id, &file, &request->problem))
        return;
    reply_json(request, 200, encode_file(STORE_DATASET, &file));
    store_file_fini(&file);
}
