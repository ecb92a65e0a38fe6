/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handlers of what proves where a result came from: its signature, its provenance and its
 * bill of materials. They are made of the record at each request, and signed then where the
 * service has a key: a new key signs old results, too.
 */
#include "config.h"
#include "base/budget.h"
#include "handlers/handlers.h"
#include "workers/signer.h"
#include "api/lineage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copies of a statement in memory: the spec, its values, the statement, and its signed form. */
#define COPIES 3

/* A job that has succeeded, with everything that is said of it. */
struct told {
    struct job_view view;
    struct store_model_files result, model;
    struct api_file *result_files, *model_files;
    char *spec;
    struct api_lineage lineage;
};

static void
told_fini(struct told *told)
{
    store_model_files_fini(&told->result);
    store_model_files_fini(&told->model);
    job_view_fini(&told->view);
    free(told->result_files);
    free(told->model_files);
    free(told->spec);
}

/* Lists the files of a model; one that is a single file has the name of a result. */
static bool
list_files(struct request *request, const char *id, struct store_model_files *files,
           struct api_file **ret, size_t *ret_n)
{
    struct store *store = library_store(request->service->library);
    if (!store_model_files(store, id, files, &request->problem))
        return false;
    size_t n = files->n ? files->n : 1;
    struct api_file *list = calloc(n, sizeof *list);
    if (!list)
        return api_problem_no_memory(&request->problem);
    list[0] = (struct api_file){.path = LIBRARY_RESULT_NAME, .digest = id};
    for (size_t i = 0; i < files->n; i++)
        list[i] = (struct api_file){files->items[i].path, files->items[i].digest,
                                    files->items[i].size};
    *ret = list;
    *ret_n = n;
    return true;
}

/* Lists the files of the float model. There are none where it was removed since, because then it is
   not known any more whether it was one file. */
static bool
list_model(struct request *request, const char *id, struct told *told)
{
    struct store *store = library_store(request->service->library);
    struct api_problem gone = {0};
    struct store_file file = {0};
    bool ok = store_file_get(store, STORE_MODEL, id, &file, &gone);
    store_file_fini(&file);
    if (ok)
        return list_files(request, id, &told->model, &told->model_files,
                          &told->lineage.n_model);
    if (gone.code != API_NOT_FOUND)
        request->problem = gone;
    return gone.code == API_NOT_FOUND;
}

/* Checks that the files of the result are stored, with the bytes that their digests name. */
static bool
check_files(struct request *request, const struct api_file *files, size_t n)
{
    struct blobs *blobs = library_blobs(request->service->library);
    for (size_t i = 0; i < n; i++) {
        int fd;
        if (!blob_read(blobs, files[i].digest, &fd, &request->problem))
            return false;
        close(fd);
    }
    return true;
}

/* Reads the frozen spec, for which and for whose copies memory is reserved. */
static bool
read_spec(struct request *request, struct told *told)
{
    struct api_problem *p = &request->problem;
    const char *id = told->view.row.frozen;
    struct stat st;
    int fd;
    if (!id)
        return api_fail(p, API_NOT_FOUND,
                        "the job ran under a version that did not keep its spec");
    if (!blob_read(library_blobs(request->service->library), id, &fd, p))
        return false;
    bool ok = fstat(fd, &st) == 0 || api_fail(p, API_IO, "reading the frozen spec");
    uint64_t size = ok ? (uint64_t)st.st_size : 0;
    ok = ok && body_reserve(&request->body, (BUDGET_JSON + COPIES) * size, p) &&
         ((told->spec = calloc(1, size + 1)) || api_problem_no_memory(p)) &&
         (pread(fd, told->spec, size, 0) == (ssize_t)size ||
          api_fail(p, API_IO, "reading the frozen spec"));
    close(fd);
    return ok;
}

/* Reads what the record has of the job in the path. The caller calls told_fini(), also after a
   failure. */
static bool
tell(struct request *request, struct told *told)
{
    struct api_lineage *to = &told->lineage;
    if (!wait_for_job(request, request->match.id, &told->view) ||
        !check_succeeded(&told->view, &request->problem))
        return false;
    const struct store_job *row = &told->view.row;
    *to = (struct api_lineage){.job = row->id,
                               .started_at = row->cached_from ? 0 : row->started_at,
                               .ended_at = row->cached_from ? 0 : row->ended_at,
                               .model_id = row->model,
                               .calibration = row->calibration,
                               .evaluation = row->evaluation,
                               .metric = row->metric,
                               .spec_id = row->frozen,
                               .report_id = row->report,
                               .summary = row->summary};
    bool ok = list_files(request, row->result_model, &told->result, &told->result_files,
                         &to->n_result) &&
              list_model(request, row->model, told) &&
              check_files(request, told->result_files, to->n_result) &&
              read_spec(request, told);
    to->result = told->result_files;
    to->model = told->model_files;
    to->spec = told->spec;
    return ok;
}

/* Answers with a statement in its signed form. Owns the statement; NULL: out of memory. */
static void
reply_signed(struct request *request, char *statement, enum signed_form form,
             const char *type)
{
    const struct service *service = request->service;
    char *text;
    if (!statement)
        api_problem_no_memory(&request->problem);
    else if (signer_sign(service->settings, service->metrics, statement, form, &text,
                         &request->problem))
        reply_text(request, 200, type, text);
    free(statement);
}

void
handle_job_signature(struct request *request)
{
    struct told told = {0};
    if (!signer_is_configured(request->service->settings))
        api_fail(&request->problem, API_NOT_FOUND,
                 "this service signs nothing: its configuration has no signing.key");
    else if (tell(request, &told))
        reply_signed(request,
                     api_manifest_encode(told.lineage.result, told.lineage.n_result),
                     SIGNED_BUNDLE, API_BUNDLE_TYPE);
    told_fini(&told);
}

void
handle_job_provenance(struct request *request)
{
    struct told told = {0};
    bool ok = tell(request, &told);
    char *text = ok ? api_provenance_encode(&told.lineage) : NULL;
    if (ok && signer_is_configured(request->service->settings))
        reply_signed(request, text, SIGNED_ENVELOPE, API_ENVELOPE_TYPE);
    else if (ok)
        reply_text(request, 200, API_PAYLOAD_TYPE, text);
    told_fini(&told);
}

void
handle_job_bom(struct request *request)
{
    struct told told = {0};
    if (tell(request, &told))
        reply_text(request, 200, API_BOM_TYPE, api_bom_encode(&told.lineage));
    told_fini(&told);
}
