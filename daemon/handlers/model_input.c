/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "handlers/model_input.h"
#include "pool/pool.h"
#include "tenants/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_NAME "model.onnx"

bool
model_input_is_brought(const struct body *body)
{
    return body->files[BODY_MODEL] || body->n_externals || body->is_listed;
}

/* Finds bytes that are stored under their own digest: a blob, or a model of one
   file. */
static bool
find_stored(struct library *library, const char *id, uint64_t *ret_size,
            struct api_problem *p)
{
    static const enum store_kind kinds[] = {STORE_BLOB, STORE_MODEL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct api_problem problem = {0};
        struct store_file file = {0};
        bool found =
            store_file_get(library_store(library), kinds[i], id, &file, &problem);
        bool whole = found && (kinds[i] == STORE_BLOB || !file.info);
        *ret_size = file.size;
        store_file_fini(&file);
        if (whole)
            return true;
        if (!found && problem.code != API_NOT_FOUND) {
            *p = problem;
            return false;
        }
    }
    return api_fail(p, API_NOT_FOUND, "no blob is stored under %.80s", id);
}

/* Adds one file of the model, which came with the request or is stored under `id`,
   and opens it. */
static bool
add_file(struct library *library, struct spool **spool, const char *id,
         struct model_input *to, struct api_problem *p)
{
    struct library_part *part = &to->parts[to->n];
    int *fd = &to->open.fds[to->open.n];
    if (*spool) {
        part->spool = spool;
        part->size = spool_size(*spool);
        memcpy(part->digest, spool_id(*spool), sizeof part->digest);
        if (!spool_read(*spool, fd, p))
            return false;
    } else {
        if (!find_stored(library, id, &part->size, p) ||
            !blob_read(library_blobs(library), id, fd, p))
            return false;
        snprintf(part->digest, sizeof part->digest, "%s", id);
    }
    to->size += part->size;
    to->open.n++;
    to->n++;
    return true;
}

static bool
add_files(struct library *library, struct body *body, struct model_input *to,
          struct api_problem *p)
{
    if (!add_file(library, &body->files[BODY_MODEL], body->job.model, to, p))
        return false;
    for (size_t i = 0; i < body->n_externals; i++) {
        struct body_external *external = &body->externals[i];
        if (!add_file(library, &external->file, external->id, to, p) ||
            !model_fds_name(&to->open, external->name, p))
            return false;
    }
    return true;
}

/* Has a worker check the model; the caller frees *ret, the worker's answer. */
static bool
ask_worker(const struct service *service, const struct model_input *input, char **ret,
           struct api_problem *p)
{
    struct message question = {.type = MESSAGE_CHECK_MODEL};
    model_fds_attach(&input->open, &question);
    return pool_ask(service, &question, ret, p);
}

/* Sets the model's own name: the client's name for it, without folders. */
static bool
name_model(const struct body *body, struct model_input *input, struct api_problem *p)
{
    const char *name = body->model_name ? api_path_base(body->model_name) : "";
    input->parts[0].path = strdup(api_path_is_inside(name) ? name : DEFAULT_NAME);
    return input->parts[0].path || api_problem_no_memory(p);
}

/* Sets the names of the other files: the paths that the model gives, as the worker
   lists them. They must differ from the model's own name. */
static bool
name_others(struct model_input *input, const char *answer, struct api_problem *p)
{
    size_t n = input->n - 1;
    char *paths[API_MAX_EXTERNAL];
    if (!api_paths_decode(answer, paths, n))
        return api_fail(p, API_INTERNAL, "a worker's answer cannot be read");
    for (size_t i = 0; i < n; i++) {
        api_path_normalize(paths[i]);
        input->parts[1 + i].path = paths[i];
    }
    input->open.names_len = 0;
    for (size_t i = 1; i <= n; i++) {
        const char *path = input->parts[i].path;
        if (!api_path_is_inside(path))
            return api_fail(p, API_UNSUPPORTED,
                            "the model keeps data in a file whose name cannot be used: "
                            "not UTF-8, or longer than %d bytes",
                            API_MAX_PATH);
        if (!strcmp(path, input->parts[0].path))
            return api_fail(
                p, API_EXTERNAL_AMBIGUOUS,
                "the model's own file has the name %.100s, which it gives to its data",
                path);
        if (!model_fds_name(&input->open, path, p))
            return false;
    }
    return true;
}

static bool
make_id(struct model_input *input, struct api_problem *p)
{
    struct api_file files[1 + API_MAX_EXTERNAL];
    if (input->n == 1) {
        memcpy(input->id, input->parts[0].digest, sizeof input->id);
        return true;
    }
    for (size_t i = 0; i < input->n; i++)
        files[i] = (struct api_file){input->parts[i].path, input->parts[i].digest,
                                     input->parts[i].size};
    char *text = api_files_identity(files, input->n);
    bool ok =
        (text && digest_of(text, strlen(text), input->id)) || api_problem_no_memory(p);
    free(text);
    return ok;
}

bool
model_input_check(const struct service *service, struct body *body,
                  struct model_input *ret, struct api_problem *p)
{
    struct model_input input = {0};
    char *answer = NULL;
    if (!body->files[BODY_MODEL] && !body->job.model)
        return api_fail_at(p, API_MISSING_PART, "/model", "the request has no model");
    input.parts = calloc(1 + body->n_externals, sizeof *input.parts);
    bool ok = (input.parts || api_problem_no_memory(p)) &&
              add_files(service->library, body, &input, p) &&
              ask_worker(service, &input, &answer, p) && name_model(body, &input, p) &&
              name_others(&input, answer, p) && make_id(&input, p);
    free(answer);
    if (ok)
        *ret = input;
    else
        model_input_fini(&input);
    return ok;
}

bool
model_input_store(struct library *library, struct model_input *input,
                  struct store_file *ret, bool *ret_new, struct api_problem *p)
{
    return library_add_model(library, input->id, input->parts, input->n, ret, ret_new,
                             p);
}

void
model_input_fini(struct model_input *input)
{
    for (size_t i = 0; i < input->n; i++)
        free(input->parts[i].path);
    free(input->parts);
    model_fds_fini(&input->open);
    *input = (struct model_input){0};
}
