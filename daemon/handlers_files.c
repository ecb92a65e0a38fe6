/* SPDX-License-Identifier: Apache-2.0 */
/* Models and datasets. */
#include "config.h"
#include "handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The two kinds of stored files differ only in these. */
static const struct {
    const char *path;
    enum message_type check;
} kinds[] = {
    [STORE_MODEL] = {"/v1/models", MESSAGE_CHECK_MODEL},
    [STORE_DATASET] = {"/v1/datasets", MESSAGE_CHECK_DATASET},
};

static char *
encode_file(enum store_kind kind, const struct store_file *file)
{
    return kind == STORE_MODEL
               ? api_model_encode(file->id, file->size, file->created_at,
                                  file->expires_at)
               : api_dataset_encode(file->id, file->size, file->created_at,
                                    file->expires_at, file->info);
}

bool
check_upload(struct request *request, enum store_kind kind, struct spool *file,
             char **ret, struct api_problem *p)
{
    struct message question = {.type = kinds[kind].check, .n_fds = 1};
    if (!spool_read(file, &question.fds[0], p))
        return false;
    bool ok = pool_ask(request->service, &question, ret, p);
    close(question.fds[0]);
    return ok;
}

static void
post_file(struct request *request, enum store_kind kind)
{
    struct api_problem problem = {0};
    struct spool **file = &request->body.files[BODY_MODEL];
    struct store_file stored = {0};
    char *info = NULL;
    bool is_new;
    if (!check_upload(request, kind, *file, &info, &problem) ||
        !library_add(request->service->library, kind, file,
                     kind == STORE_DATASET ? info : NULL, &stored, &is_new, &problem)) {
        reply_problem(request, &problem);
    } else {
        reply_json(request, is_new ? 201 : 200, encode_file(kind, &stored));
        reply_header(request, "Location", "%s/%s", kinds[kind].path, stored.id);
    }
    store_file_fini(&stored);
    free(info);
}

static void
delete_file(struct request *request, enum store_kind kind)
{
    struct api_problem problem = {0};
    if (library_remove(request->service->library, kind, request->match.id, &problem))
        reply_empty(request, 204);
    else
        reply_problem(request, &problem);
}

void
handle_models_post(struct request *request)
{
    post_file(request, STORE_MODEL);
}

void
handle_datasets_post(struct request *request)
{
    post_file(request, STORE_DATASET);
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

/* Opens a stored model, or answers with what is wrong. */
static bool
open_model(struct request *request, const char *id, struct store_file *ret, int *ret_fd)
{
    struct library *library = request->service->library;
    struct api_problem problem = {0};
    if (store_file_get(library_store(library), STORE_MODEL, id, ret, &problem) &&
        blob_read(library_blobs(library), id, ret_fd, &problem))
        return true;
    reply_problem(request, &problem);
    return false;
}

/* What a request wants of bytes that it may have already. */
struct wanted {
    bool known;
    enum api_ranged ranged;
    struct api_range range;
};

/* Only GET has ranges, and only GET and HEAD conditions: the answer of another method is
   not what lies at its path. */
static bool
read_wanted(const struct request *request, const char *tag, uint64_t size,
            struct wanted *ret, struct api_problem *p)
{
    const char *unless = request_header(request, "If-Range");
    char *known = NULL;
    bool is_get = !strcmp(request->method, "GET");
    *ret = (struct wanted){.ranged = API_RANGED_WHOLE};
    if (!is_get && strcmp(request->method, "HEAD") != 0)
        return true;
    if (!request_list(request, "If-None-Match", &known, p))
        return false;
    ret->known = api_header_has_tag(known, tag);
    free(known);
    if (is_get && !ret->known && (!unless || !strcmp(unless, tag)))
        ret->ranged =
            api_header_range(request_header(request, "Range"), size, &ret->range);
    return ret->ranged != API_RANGED_NONE ||
           api_problem_set(p, API_RANGE_NOT_SATISFIABLE, QDQ_AT_NOTHING, NULL,
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

/* A model's id names its bytes, so it is its own entity tag and never goes stale. */
void
reply_model(struct request *request, const char *id)
{
    struct api_problem problem = {0};
    struct store_file file;
    struct wanted wanted;
    int fd;
    char tag[DIGEST_SIZE + 2];
    if (!open_model(request, id, &file, &fd))
        return;
    snprintf(tag, sizeof tag, "\"%s\"", file.id);
    if (read_wanted(request, tag, file.size, &wanted, &problem)) {
        reply_file(request, "application/octet-stream", fd, file.size);
        if (wanted.known)
            request->reply.status = 304; /* goes without the body */
        if (wanted.ranged == API_RANGED_PART)
            reply_part(request, &wanted.range);
        reply_header(request, "Accept-Ranges", "bytes");
        reply_header(request, "ETag", "%s", tag);
        reply_header(request, "Content-Disposition",
                     "attachment; filename=\"%.12s.onnx\"", strchr(file.id, ':') + 1);
        reply_digest(request, file.id);
    } else {
        close(fd);
        reply_problem(request, &problem);
        if (problem.code == API_RANGE_NOT_SATISFIABLE)
            reply_header(request, "Content-Range", "bytes */%llu",
                         (unsigned long long)file.size);
    }
    store_file_fini(&file);
}

void
handle_model_get(struct request *request)
{
    reply_model(request, request->match.id);
}

void
handle_model_info(struct request *request)
{
    struct message question = {.type = MESSAGE_INFO, .n_fds = 1};
    struct store_file file;
    struct api_problem problem = {0};
    char *info;
    if (!open_model(request, request->match.id, &file, &question.fds[0]))
        return;
    if (pool_ask(request->service, &question, &info, &problem))
        reply_json(request, 200, info);
    else
        reply_problem(request, &problem);
    close(question.fds[0]);
    store_file_fini(&file);
}

void
handle_dataset_get(struct request *request)
{
    struct store_file file;
    struct api_problem problem = {0};
    if (!store_file_get(library_store(request->service->library), STORE_DATASET,
                        request->match.id, &file, &problem)) {
        reply_problem(request, &problem);
        return;
    }
    reply_json(request, 200, encode_file(STORE_DATASET, &file));
    store_file_fini(&file);
}
