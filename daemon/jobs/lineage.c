/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "jobs/lineage.h"
#include "base/budget.h"
#include "workers/signer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copies of a statement in memory: the spec, its values, the statement, and its signed form. */
#define COPIES 3

void
lineage_fini(struct lineage *lineage)
{
    store_model_files_fini(&lineage->result);
    store_model_files_fini(&lineage->model);
    free(lineage->result_files);
    free(lineage->model_files);
    free(lineage->spec);
}

/* --- the record --------------------------------------------------------------- */

/* Lists the files of a model; one that is a single file has the name of a result. */
static bool
list_files(struct library *library, const char *id, struct store_model_files *files,
           struct api_file **ret, size_t *ret_n, struct api_problem *p)
{
    if (!store_model_files(library_store(library), id, files, p))
        return false;
    size_t n = files->n ? files->n : 1;
    struct api_file *list = calloc(n, sizeof *list);
    if (!list)
        return api_problem_no_memory(p);
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
list_model(struct library *library, const char *id, struct lineage *lineage,
           struct api_problem *p)
{
    struct api_problem gone = {0};
    struct store_file file = {0};
    bool ok = store_file_get(library_store(library), STORE_MODEL, id, &file, &gone);
    store_file_fini(&file);
    if (ok)
        return list_files(library, id, &lineage->model, &lineage->model_files,
                          &lineage->facts.n_model, p);
    if (gone.code != API_NOT_FOUND)
        *p = gone;
    return gone.code == API_NOT_FOUND;
}

/* Checks that the files of the result are stored, with the bytes that their digests name. */
static bool
check_files(struct library *library, const struct api_file *files, size_t n,
            struct api_problem *p)
{
    for (size_t i = 0; i < n; i++) {
        int fd;
        if (!blob_read(library_blobs(library), files[i].digest, &fd, p))
            return false;
        close(fd);
    }
    return true;
}

/* Opens the frozen spec. */
static bool
open_spec(struct library *library, const struct store_job *row, int *ret_fd,
          uint64_t *ret_size, struct api_problem *p)
{
    struct stat st;
    if (!row->frozen)
        return api_fail(p, API_NOT_FOUND,
                        "the job ran under a version that did not keep its spec");
    if (!blob_read(library_blobs(library), row->frozen, ret_fd, p))
        return false;
    if (fstat(*ret_fd, &st) == 0) {
        *ret_size = (uint64_t)st.st_size;
        return true;
    }
    close(*ret_fd);
    return api_fail(p, API_IO, "reading the frozen spec");
}

bool
lineage_cost(struct library *library, const struct store_job *row, uint64_t *ret,
             struct api_problem *p)
{
    uint64_t size;
    int fd;
    if (!open_spec(library, row, &fd, &size, p))
        return false;
    close(fd);
    *ret = (BUDGET_JSON + COPIES) * size;
    return true;
}

static bool
read_spec(struct library *library, const struct store_job *row, char **ret,
          struct api_problem *p)
{
    uint64_t size;
    int fd;
    if (!open_spec(library, row, &fd, &size, p))
        return false;
    bool ok = ((*ret = calloc(1, size + 1)) || api_problem_no_memory(p)) &&
              (pread(fd, *ret, size, 0) == (ssize_t)size ||
               api_fail(p, API_IO, "reading the frozen spec"));
    close(fd);
    return ok;
}

bool
lineage_read(struct library *library, const struct store_job *row, struct lineage *ret,
             struct api_problem *p)
{
    struct api_lineage *facts = &ret->facts;
    *ret = (struct lineage){.spec = NULL};
    *facts = (struct api_lineage){.job = row->id,
                                  .started_at = row->cached_from ? 0 : row->started_at,
                                  .ended_at = row->cached_from ? 0 : row->ended_at,
                                  .model_id = row->model,
                                  .calibration = row->calibration,
                                  .evaluation = row->evaluation,
                                  .metric = row->metric,
                                  .spec_id = row->frozen,
                                  .report_id = row->report,
                                  .summary = row->summary};
    bool ok = list_files(library, row->result_model, &ret->result, &ret->result_files,
                         &facts->n_result, p) &&
              list_model(library, row->model, ret, p) &&
              check_files(library, ret->result_files, facts->n_result, p) &&
              read_spec(library, row, &ret->spec, p);
    facts->result = ret->result_files;
    facts->model = ret->model_files;
    facts->spec = ret->spec;
    return ok;
}

/* --- documents ---------------------------------------------------------------- */

/* Returns the signed form of a statement, which it frees; NULL: out of memory. */
static char *
sign(char *statement, enum signed_form form, const struct settings *settings,
     struct metrics *metrics, struct api_problem *p)
{
    char *text = NULL;
    if (!statement)
        api_problem_no_memory(p);
    else if (!signer_sign(settings, metrics, statement, form, &text, p))
        text = NULL;
    free(statement);
    return text;
}

static char *
make_signature(const struct lineage *lineage, const struct settings *settings,
               struct metrics *metrics, struct api_problem *p)
{
    const struct api_lineage *facts = &lineage->facts;
    if (signer_is_configured(settings))
        return sign(api_manifest_encode(facts->result, facts->n_result), SIGNED_BUNDLE,
                    settings, metrics, p);
    api_fail(p, API_NOT_FOUND,
             "this service signs nothing: its configuration has no signing.key");
    return NULL;
}

char *
lineage_document(const struct lineage *lineage, enum lineage_document which,
                 const struct settings *settings, struct metrics *metrics,
                 const char **ret_type, struct api_problem *p)
{
    bool is_signed = signer_is_configured(settings);
    *ret_type = which == LINEAGE_SIGNATURE ? API_BUNDLE_TYPE
                : which == LINEAGE_BOM     ? API_BOM_TYPE
                : is_signed                ? API_ENVELOPE_TYPE
                                           : API_PAYLOAD_TYPE;
    if (which == LINEAGE_SIGNATURE)
        return make_signature(lineage, settings, metrics, p);
    char *text = which == LINEAGE_BOM ? api_bom_encode(&lineage->facts)
                                      : api_provenance_encode(&lineage->facts);
    if (which == LINEAGE_PROVENANCE && is_signed)
        return sign(text, SIGNED_ENVELOPE, settings, metrics, p);
    if (!text)
        api_problem_no_memory(p);
    return text;
}
