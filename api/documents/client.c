/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "documents/client.h"
#include "api/grow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- documents ------------------------------------------------------------ */

bool
api_document_parse(const char *text, size_t len, struct api_document **ret,
                   struct api_problem *problem)
{
    struct api_document *document = calloc(1, sizeof *document);
    if (!document)
        return api_problem_no_memory(problem);
    document->json = api_json_load(text, len, API_INVALID_JSON, problem);
    if (!document->json) {
        free(document);
        return false;
    }
    *ret = document;
    return true;
}

void
api_document_free(struct api_document **document)
{
    if (!*document)
        return;
    for (size_t i = 0; i < (*document)->n_blocks; i++)
        free((*document)->blocks[i]);
    free((*document)->blocks);
    json_decref((*document)->json);
    free(*document);
    *document = NULL;
}

void *
api_document_alloc(struct api_document *document, size_t n, size_t size)
{
    void **blocks = api_grow(document->blocks, document->n_blocks, 1, sizeof *blocks);
    if (!blocks)
        return NULL;
    document->blocks = blocks;
    void *block = calloc(n ? n : 1, size);
    if (block)
        document->blocks[document->n_blocks++] = block;
    return block;
}

const char *
api_get_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

int64_t
api_get_integer(const json_t *object, const char *name)
{
    int64_t value;
    const json_t *json = json_object_get(object, name);
    return json && api_json_integer(json, &value) ? value : 0;
}

double
api_get_real(const json_t *object, const char *name)
{
    const json_t *json = json_object_get(object, name);
    return json_is_number(json) ? json_number_value(json) : NAN;
}

/* --- requests ------------------------------------------------------------- */

char *
api_job_request_encode(const struct api_job_request *request)
{
    json_t *json = json_pack("{s:s}", "model", request->model);
    if (json && request->calibration)
        json_object_set_new(json, "calibration", json_string(request->calibration));
    if (json && request->evaluation)
        json_object_set_new(json, "evaluation", json_string(request->evaluation));
    if (json && request->labels)
        json_object_set_new(json, "labels", api_json_embed(request->labels));
    char *text = api_json_dump(json, 0), *whole;
    if (!text || !request->spec)
        return text;
    /* The last brace makes room for one more member. */
    int len = asprintf(&whole, "%.*s,\"spec\":%s}", (int)strlen(text) - 1, text,
                       request->spec);
    free(text);
    return len < 0 ? NULL : whole;
}

static json_t *
encode_file(const void *items, size_t i)
{
    const struct api_file *file = (const struct api_file *)items + i;
    return api_pack("path:t digest:t", file->path, file->digest);
}

char *
api_files_encode(const struct api_file *files, size_t n)
{
    return api_dump_list("files", files, n, encode_file);
}

char *
api_name_label_encode(const char *name)
{
    return api_json_dump(api_pack("name:t", name), 0);
}

bool
api_object_check(const char *text, size_t len, struct api_problem *problem)
{
    json_error_t error = {0};
    json_t *json = json_loadb(text, len, JSON_DECODE_ANY, &error);
    bool ok = json_is_object(json);
    if (!json) {
        api_json_set_broken(&error, problem);
    } else if (!ok) {
        api_fail(problem, API_INVALID_SPEC, "the spec is to be an object, not %s",
                 api_json_type_name(json));
    }
    json_decref(json);
    return ok;
}

/* --- problems ------------------------------------------------------------- */

/* Finds the place that errors[0] names. Returns its kind. */
static enum qdq_where
find_place(const json_t *json, char *where, size_t size)
{
    const json_t *first = json_array_get(json_object_get(json, "errors"), 0);
    for (int kind = QDQ_AT_NOTHING + 1; kind < QDQ_N_WHERES; kind++) {
        const json_t *value =
            json_object_get(first, qdq_where_name((enum qdq_where)kind));
        if (json_is_string(value))
            snprintf(where, size, "%s", json_string_value(value));
        else if (json_is_integer(value))
            snprintf(where, size, "%lld", (long long)json_integer_value(value));
        else
            continue;
        return (enum qdq_where)kind;
    }
    return QDQ_AT_NOTHING;
}

/* Returns the code of an answer without a problem document, such as that to HEAD. */
static enum api_code
code_of_status(long status)
{
    static const struct {
        long status;
        enum api_code code;
    } rows[] = {{401, API_UNAUTHORIZED}, {403, API_FORBIDDEN},  {404, API_NOT_FOUND},
                {413, API_TOO_LARGE},    {429, API_QUEUE_FULL}, {507, API_DISK_FULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status == status)
            return rows[i].code;
    return status >= 500 ? API_UNAVAILABLE : API_BAD_REQUEST;
}

/* Sets the problem of a document that has a code. */
static bool
decode_problem(const json_t *json, long status, struct api_problem *problem)
{
    char where[sizeof problem->where] = "";
    const char *slug = api_get_text(json, "code"),
               *detail = api_get_text(json, "detail");
    if (!slug)
        return false;
    enum qdq_where kind = find_place(json, where, sizeof where);
    enum api_code code = api_problem_code(slug);
    bool is_known = code != API_N_CODES;
    if (!is_known)
        code = code_of_status(status);
    api_problem_set(problem, code, kind, where, "%s%s%s", is_known ? "" : slug,
                    is_known ? "" : ": ", detail ? detail : api_problem_meaning(code));
    return true;
}

void
api_problem_decode(const char *text, size_t len, long status,
                   struct api_problem *problem)
{
    json_t *json = text ? json_loadb(text, len, 0, NULL) : NULL;
    enum api_code code = code_of_status(status);
    if (!decode_problem(json, status, problem))
        api_fail(problem, code, "%s (status %ld)", api_problem_meaning(code), status);
    json_decref(json);
}

/* --- jobs ----------------------------------------------------------------- */

static void
read_progress(const json_t *json, struct api_job_facts *ret)
{
    ret->stage = api_get_text(json, "stage");
    ret->done = (uint64_t)api_get_integer(json, "done");
    ret->total = (uint64_t)api_get_integer(json, "total");
    ret->eta_s = json_is_integer(json_object_get(json, "eta_s"))
                     ? api_get_integer(json, "eta_s")
                     : -1;
}

static bool
read_files(struct api_document *document, const json_t *json, struct api_job_facts *ret)
{
    size_t n = json_array_size(json);
    struct api_file *files = n ? api_document_alloc(document, n, sizeof *files) : NULL;
    for (size_t i = 0; files && i < n; i++) {
        const json_t *row = json_array_get(json, i);
        const char *path = api_get_text(row, "path"),
                   *digest = api_get_text(row, "digest");
        files[i] = (struct api_file){path ? path : "", digest ? digest : "",
                                     (uint64_t)api_get_integer(row, "size")};
    }
    ret->files = files;
    ret->n_files = files ? n : 0;
    return files || n == 0;
}

static bool
read_job(struct api_document *document, const json_t *json, struct api_job_facts *ret)
{
    const json_t *queue = json_object_get(json, "queue");
    const json_t *result = json_object_get(json, "result");
    const json_t *error = json_object_get(json, "error");
    const char *state = api_get_text(json, "state");
    *ret = (struct api_job_facts){
        .id = api_get_text(json, "id"),
        .state = state ? api_job_state_parse(state) : API_N_JOB_STATES,
        .name = api_get_text(json_object_get(json, "labels"), "name"),
        .created = api_get_text(json, "created_at"),
        .position = api_get_integer(queue, "position"),
        .waiting_for = api_get_text(queue, "waiting_for"),
        .result_model = api_get_text(result, "model"),
        .result_size = (uint64_t)api_get_integer(result, "size"),
    };
    read_progress(json_object_get(json, "progress"), ret);
    if (json_is_object(error))
        decode_problem(error, (long)api_get_integer(error, "status"), &ret->error);
    return read_files(document, json_object_get(result, "files"), ret);
}

bool
api_document_job(struct api_document *document, struct api_job_facts *ret)
{
    return read_job(document, document->json, ret);
}

void
api_document_progress(struct api_document *document, struct api_job_facts *ret)
{
    read_progress(document->json, ret);
}

bool
api_document_jobs(struct api_document *document, const struct api_job_facts **ret,
                  size_t *ret_n, const char **ret_cursor)
{
    const json_t *list = json_object_get(document->json, "jobs");
    size_t n = json_array_size(list);
    struct api_job_facts *jobs = api_document_alloc(document, n, sizeof *jobs);
    bool ok = jobs;
    for (size_t i = 0; ok && i < n; i++)
        ok = read_job(document, json_array_get(list, i), &jobs[i]);
    *ret = jobs;
    *ret_n = n;
    *ret_cursor = api_get_text(document->json, "next_cursor");
    return ok;
}
