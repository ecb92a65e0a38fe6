/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/body.h"
#include "base/budget.h"
#include "api/grow.h"
#include "api/utf8.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LARGE_TEXT (16u << 10) /* smaller ones are not counted */
#define FORM_BUFFER (64u << 10)
/* bytes of a file after which the free room on the disk is checked again */
#define CHECK_EVERY (8u << 20)

enum part_kind { MODEL, DATASET, EVALUATION, EXTERNAL, TEXT };

static const struct {
    const char *name;
    enum part_kind kind;
} parts[BODY_N_PARTS] = {
#define PART(part, text, kind) [BODY_PART_##part] = {text, kind},
#include "http/parts.h"
#undef PART
};

/* --- appending bytes ------------------------------------------------------ */

bool
body_reserve(struct body *body, uint64_t bytes, struct api_problem *p)
{
    budget_give(body->reserved);
    body->reserved = 0;
    bool ok = budget_take(bytes, p);
    body->reserved = ok ? bytes : 0;
    return ok;
}

/* Returns the bytes of all texts that the body has. */
static uint64_t
count_text(const struct body *body)
{
    uint64_t n = body->json.len;
    for (int i = 0; i < BODY_N_PARTS; i++)
        n += body->texts[i].len;
    return n;
}

static bool
append_text(struct body *body, struct body_text *text, const char *data, size_t len,
            struct api_problem *p)
{
    if (len > BODY_MAX_TEXT - text->len)
        return api_fail(p, API_TOO_LARGE, "JSON and text are at most %u bytes",
                        BODY_MAX_TEXT);
    if (text->len + len + 1 > text->capacity) {
        size_t capacity = 2 * (text->len + len) + 64;
        if (capacity > LARGE_TEXT &&
            !body_reserve(body, 2 * count_text(body) + capacity, p))
            return false;
        char *grown = realloc(text->data, capacity);
        if (!grown)
            return api_problem_no_memory(p);
        text->data = grown;
        text->capacity = capacity;
    }
    memcpy(text->data + text->len, data, len);
    text->len += len;
    text->data[text->len] = '\0';
    return true;
}

static bool
append_file(struct body *body, struct spool **file, const char *data, size_t len,
            struct api_problem *p)
{
    if (!*file && !spool_open(body->blobs, file, p))
        return false;
    uint64_t size = spool_size(*file);
    if (size / CHECK_EVERY != (size + len) / CHECK_EVERY &&
        !blobs_check_room(body->blobs, 0, p))
        return false;
    return spool_write(*file, data, len, p);
}

/* --- multipart forms ------------------------------------------------------ */

static int
find_part(const char *name)
{
    int i = BODY_N_PARTS;
    while (i-- > 0)
        if (!strcmp(parts[i].name, name))
            return i;
    return -1;
}

static bool
refuse_part(struct api_problem *p, enum api_code code, const char *name,
            const char *what)
{
    char pointer[128];
    snprintf(pointer, sizeof pointer, "/%.100s", name);
    return api_fail_at(p, code, pointer, "the part \"%.100s\" %s", name, what);
}

/* Adds an empty entry for a file beside the model; `name` is the client's name for
   it, or NULL. */
static bool
add_external(struct body *body, const char *name, struct api_problem *p)
{
    size_t n = body->n_externals;
    if (n == API_MAX_EXTERNAL)
        return api_fail_at(p, API_LIMIT_EXCEEDED, "/external",
                           "a model has at most %d files beside its own",
                           API_MAX_EXTERNAL);
    struct body_external *grown = api_grow(body->externals, n, 1, sizeof *grown);
    if (!grown)
        return api_problem_no_memory(p);
    body->externals = grown;
    grown[n] = (struct body_external){.name = strdup(name ? name : "")};
    body->n_externals += grown[n].name != NULL;
    return grown[n].name || api_problem_no_memory(p);
}

/* Refuses a part that this kind of body cannot have, or that has come already. */
static bool
check_part(const struct body *body, int part, const char *name, struct api_problem *p)
{
    bool one_file = body->kind == API_BODY_FILE, upload = body->kind != API_BODY_JOB;
    if (part < 0 || (part == BODY_PART_DATASET && !one_file))
        return refuse_part(p, API_BAD_REQUEST, name, "is not known");
    enum part_kind kind = parts[part].kind;
    if ((upload && (kind == TEXT || kind == EVALUATION)) ||
        (one_file && kind == EXTERNAL) ||
        (body->kind == API_BODY_MODEL && kind == DATASET))
        return refuse_part(p, API_BAD_REQUEST, name, "does not belong to this upload");
    if ((body->seen[part] && kind != EXTERNAL) || (one_file && body->part >= 0))
        return refuse_part(p, API_BAD_REQUEST, name, "is one file too many");
    return true;
}

/* Returns the file name when it is short enough for a path, otherwise NULL. */
static const char *
path_of(const char *filename)
{
    return filename && strnlen(filename, API_MAX_PATH + 1) <= API_MAX_PATH ? filename
                                                                           : NULL;
}

static bool
begin_part(struct body *body, const char *name, const char *filename,
           struct api_problem *p)
{
    int part = find_part(name);
    if (!check_part(body, part, name, p))
        return false;
    body->seen[part] = true;
    body->part = part;
    body->part_size = 0;
    if (parts[part].kind == EXTERNAL)
        return add_external(body, path_of(filename), p);
    if (parts[part].kind == MODEL && path_of(filename)) {
        body->model_name = strdup(filename);
        return body->model_name || api_problem_no_memory(p);
    }
    return true;
}

/* Returns the file that the current part's bytes belong to. */
static struct spool **
current_file(struct body *body)
{
    enum part_kind kind = parts[body->part].kind;
    if (kind == EXTERNAL)
        return &body->externals[body->n_externals - 1].file;
    if (kind == EVALUATION)
        return &body->files[BODY_EVALUATION];
    return &body->files[kind == DATASET && body->kind == API_BODY_JOB ? BODY_DATASET
                                                                      : BODY_MODEL];
}

/* Returns whether a part's Content-Transfer-Encoding leaves its bytes as they are. */
static bool
is_plain(const char *encoding)
{
    return !strcasecmp(encoding, "binary") || !strcasecmp(encoding, "8bit") ||
           !strcasecmp(encoding, "7bit");
}

/* Receives a piece of a part from libmicrohttpd, which may deliver an empty piece
   before the first bytes. */
static enum MHD_Result
on_piece(void *arg, enum MHD_ValueKind value_kind, const char *name,
         const char *filename, const char *content_type, const char *encoding,
         const char *data, uint64_t offset, size_t len)
{
    struct body *body = arg;
    (void)value_kind;
    (void)content_type;
    if (encoding && !is_plain(encoding)) {
        (void)api_fail(body->problem, API_UNSUPPORTED_MEDIA_TYPE,
                       "a part of the form has the Content-Transfer-Encoding "
                       "\"%.64s\"; send its bytes as they are",
                       encoding);
        return MHD_NO;
    }
    if (!name) {
        (void)api_fail(body->problem, API_BAD_REQUEST,
                       "a part of the form has no name");
        return MHD_NO;
    }
    bool goes_on = body->part >= 0 && !strcmp(parts[body->part].name, name) &&
                   (offset > 0 || body->part_size == 0);
    if (!goes_on && !begin_part(body, name, filename, body->problem))
        return MHD_NO;
    body->part_size += len;
    bool ok =
        parts[body->part].kind == TEXT
            ? append_text(body, &body->texts[body->part], data, len, body->problem)
            : append_file(body, current_file(body), data, len, body->problem);
    return ok ? MHD_YES : MHD_NO;
}

static bool
fail_form(struct api_problem *p)
{
    return api_fail(p, API_BAD_REQUEST, "the multipart form cannot be read");
}

/* --- receiving a body ----------------------------------------------------- */

static bool
has_type(const char *content_type, const char *wanted)
{
    size_t len = strlen(wanted);
    return content_type && !strncasecmp(content_type, wanted, len) &&
           (content_type[len] == '\0' || strchr("; \t", content_type[len]));
}

bool
body_begin(struct body *body, enum api_body kind, struct blobs *blobs, uint64_t limit,
           struct MHD_Connection *connection, const char *content_type,
           struct api_problem *p)
{
    *body = (struct body){.kind = kind, .blobs = blobs, .limit = limit, .part = -1};
    if (kind == API_BODY_NONE || kind == API_BODY_BLOB)
        return true;
    if (kind == API_BODY_MESSAGE) {
        body->is_json = true;
        if (body->limit > BODY_MAX_MESSAGE)
            body->limit = BODY_MAX_MESSAGE;
        return true;
    }
    if (has_type(content_type, "multipart/form-data")) {
        body->post = MHD_create_post_processor(connection, FORM_BUFFER, on_piece, body);
        /* libmicrohttpd's parser reads no other boundary; no client is known to send one. */
        return body->post ||
               api_fail(p, API_BAD_REQUEST,
                        "the multipart form cannot be read: its "
                        "Content-Type names no boundary of two characters "
                        "or more");
    }
    body->is_json =
        kind == API_BODY_JOB ||
        (kind == API_BODY_MODEL && has_type(content_type, "application/json"));
    /* curl sends application/x-www-form-urlencoded by default. Such a form would
       have no use here, so the body is read as JSON. */
    if (kind == API_BODY_JOB && content_type &&
        !has_type(content_type, "application/json") &&
        !has_type(content_type, "application/x-www-form-urlencoded"))
        return api_fail(p, API_UNSUPPORTED_MEDIA_TYPE,
                        "a job is application/json or multipart/form-data");
    if (body->is_json && body->limit > BODY_MAX_TEXT)
        body->limit = BODY_MAX_TEXT;
    return true;
}

bool
body_receive(struct body *body, const char *data, size_t len, struct api_problem *p)
{
    body->received += len;
    if (body->received > body->limit)
        return api_fail(p, API_TOO_LARGE, "the body is over the limit of %llu bytes",
                        (unsigned long long)body->limit);
    if (body->kind == API_BODY_NONE)
        return true;
    if (body->is_json)
        return append_text(body, &body->json, data, len, p);
    if (!body->post)
        return append_file(body, &body->files[BODY_MODEL], data, len, p);
    body->problem = p;
    return MHD_post_process(body->post, data, len) == MHD_YES || fail_form(p);
}

/* --- completing a body ---------------------------------------------------- */

/* Reads a small file part whose text is the id of a stored file, or a place in a remote
   (`place` is not NULL), and discards the part. Leaves any other part and *ret as they
   are. */
static bool
read_id(struct spool **file, char **ret, struct api_place *place, struct api_problem *p)
{
    char text[API_REMOTE_NAME + API_MAX_REF + 8];
    uint64_t size = spool_size(*file);
    if (size >= sizeof text || pread(spool_fd(*file), text, size, 0) != (ssize_t)size)
        return true;
    text[size] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (place && strlen(text) + 2 >= size && api_place_is_text(text)) {
        spool_discard(file);
        return api_place_parse(text, "", place, p);
    }
    text[strcspn(text, " ")] = '\0';
    if (strncmp(text, "sha256:", 7) != 0 || !api_utf8_is_valid(text))
        return true;
    spool_discard(file);
    *ret = strdup(text);
    return *ret || api_problem_no_memory(p);
}

/* Completes a file part. Where `ret_id` is not NULL, the part may hold the id of a
   stored file instead, and where `place` is not NULL a place in a remote. */
static bool
finish_file(struct spool **file, char **ret_id, struct api_place *place,
            struct api_problem *p)
{
    if (spool_size(*file) == 0)
        return api_fail(p, API_EMPTY_BODY, "the file is empty");
    return (!ret_id || read_id(file, ret_id, place, p)) &&
           (!*file || spool_finish(*file, p));
}

static bool
finish_files(struct body *body, struct api_problem *p)
{
    char **const ids[BODY_N_FILES] = {&body->job.model, &body->job.calibration,
                                      &body->job.evaluation};
    struct api_place *const places[BODY_N_FILES] = {&body->job.model_place,
                                                    &body->job.calibration_place, NULL};
    bool is_job = body->kind == API_BODY_JOB;
    bool may_be_id = is_job || (body->kind == API_BODY_MODEL && body->part >= 0);
    for (int i = 0; i < BODY_N_FILES; i++)
        if (body->files[i] && !finish_file(&body->files[i], may_be_id ? ids[i] : NULL,
                                           is_job ? places[i] : NULL, p))
            return false;
    for (size_t i = 0; i < body->n_externals; i++) {
        struct body_external *external = &body->externals[i];
        if (!external->file) /* its part had no bytes */
            return api_fail(p, API_EMPTY_BODY, "the file is empty");
        if (!finish_file(&external->file, &external->id, NULL, p))
            return false;
    }
    /* A model part with the text of an id names stored bytes, as a JSON list does. */
    body->is_listed = body->kind == API_BODY_MODEL && body->job.model;
    return true;
}

/* Adopts the files that a JSON body names by their digests, as if the client had
   sent them. */
static bool
adopt_named_files(struct body *body, struct api_problem *p)
{
    struct api_named_files named;
    if (!api_named_files_decode(body->json.data, body->json.len, &named, p))
        return false;
    bool ok = true;
    body->is_listed = true;
    for (size_t i = 0; ok && i < named.n; i++) {
        struct api_named_file *file = &named.items[i];
        ok = i == 0 || add_external(body, file->path, p);
        if (ok) {
            char **to = i ? &body->externals[i - 1].id : &body->job.model;
            *to = file->digest;
            file->digest = NULL;
        }
    }
    if (ok) {
        body->model_name = named.items[0].path;
        named.items[0].path = NULL;
    }
    api_named_files_fini(&named);
    return ok;
}

/* Moves the text to `ret`, which then owns it. */
static void
move_text(struct body_text *text, char **ret)
{
    *ret = text->data;
    *text = (struct body_text){0};
}

static bool
read_priority(const struct body_text *text, int64_t *ret, struct api_problem *p)
{
    char *end;
    if (!text->data)
        return true;
    errno = 0;
    long long n = strtoll(text->data, &end, 10);
    if (end == text->data || *end || errno)
        return refuse_part(p, API_BAD_REQUEST, "priority", "is not a whole number");
    *ret = n;
    return true;
}

static bool
read_fresh(const struct body_text *text, bool *ret, struct api_problem *p)
{
    *ret = text->data && !strcmp(text->data, "true");
    return !text->data || !strcmp(text->data, "true") || !strcmp(text->data, "false") ||
           refuse_part(p, API_BAD_REQUEST, "fresh", "is neither true nor false");
}

/* Refuses a text with a NUL, because the functions that read it later would stop
   there. */
static bool
check_texts(const struct body *body, struct api_problem *p)
{
    for (int i = 0; i < BODY_N_PARTS; i++) {
        const struct body_text *text = &body->texts[i];
        if (text->data && strlen(text->data) != text->len)
            return refuse_part(p, API_BAD_REQUEST, parts[i].name, "has a NUL byte");
    }
    return true;
}

static bool
finish_form(struct body *body, struct api_problem *p)
{
    struct body_text *labels = &body->texts[BODY_PART_LABELS];
    const struct body_text *publish = &body->texts[BODY_PART_PUBLISH];
    body->problem = p;
    bool whole = MHD_destroy_post_processor(body->post) == MHD_YES;
    body->post = NULL;
    if (!whole || body->part < 0)
        return fail_form(p);
    if (!finish_files(body, p) || !check_texts(body, p) ||
        !read_priority(&body->texts[BODY_PART_PRIORITY], &body->job.priority, p) ||
        !read_fresh(&body->texts[BODY_PART_FRESH], &body->job.fresh, p) ||
        (labels->data && !api_labels_check(labels->data, p)) ||
        (publish->data && !api_job_request_publish(&body->job, publish->data, p)))
        return false;
    move_text(&body->texts[BODY_PART_SPEC], &body->job.spec);
    move_text(labels, &body->job.labels);
    return true;
}

static bool
check_digest(const struct body *body, struct api_problem *p)
{
    const char *id = spool_id(body->files[BODY_MODEL]);
    return !body->digest[0] || !strcmp(body->digest, id) ||
           api_fail(p, API_DIGEST_MISMATCH, "the body hashes to %s, not to %s", id,
                    body->digest);
}

bool
body_finish(struct body *body, struct api_problem *p)
{
    if (body->kind == API_BODY_NONE || body->kind == API_BODY_MESSAGE)
        return true;
    if (body->received == 0)
        return api_fail(p, API_EMPTY_BODY, "the request has no body");
    if (count_text(body) > LARGE_TEXT &&
        !body_reserve(body, BUDGET_JSON * count_text(body), p))
        return false;
    if (body->post)
        return finish_form(body, p);
    if (body->is_json && body->kind == API_BODY_MODEL)
        return adopt_named_files(body, p);
    if (body->is_json)
        return api_job_request_decode(body->json.data, body->json.len, &body->job, p);
    return finish_files(body, p) && check_digest(body, p);
}

void
body_fini(struct body *body)
{
    if (body->post)
        MHD_destroy_post_processor(body->post);
    body->post = NULL;
    for (int i = 0; i < BODY_N_PARTS; i++)
        free(body->texts[i].data);
    memset(body->texts, 0, sizeof body->texts);
    free(body->json.data);
    body->json = (struct body_text){0};
    for (int i = 0; i < BODY_N_FILES; i++)
        spool_discard(&body->files[i]);
    while (body->n_externals) {
        struct body_external *external = &body->externals[--body->n_externals];
        spool_discard(&external->file);
        free(external->name);
        free(external->id);
    }
    free(body->externals);
    body->externals = NULL;
    free(body->model_name);
    body->model_name = NULL;
    api_job_request_fini(&body->job);
    budget_give(body->reserved);
    body->reserved = 0;
}
