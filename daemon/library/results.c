/* SPDX-License-Identifier: Apache-2.0 */
/* The results of jobs: their blobs together with the end of the row. */
#include "config.h"
#include "base/clock.h"
#include "base/log.h"
#include "library/inner.h"
#include "store/several/targets.h"
#include "api/files.h"

#include <stdlib.h>
#include <string.h>

/* The files of a result, in the order in which they are stored. */
enum { RESULT_MODEL, RESULT_REPORT, RESULT_FROZEN, RESULT_DATA, N_RESULTS };

/* A result while it is stored. */
struct result {
    size_t n; /* number of files */
    struct spool **files[N_RESULTS];
    char digests[N_RESULTS][DIGEST_SIZE];
    char id[DIGEST_SIZE]; /* id of the model */
    uint64_t size;        /* bytes of the model's files */
    struct store_model_file model[2];
    struct store_model_files model_files; /* empty when the model is one file */
};

/* Adds the data file of a model whose external data lies in a file of its own. */
static bool
add_data(struct result *result, const char *path, struct api_problem *p)
{
    static char name[] = LIBRARY_RESULT_NAME;
    struct store_model_file *files = result->model;
    const size_t from[] = {RESULT_MODEL, RESULT_DATA};
    struct api_file named[2];
    char *const paths[] = {name, strdup(path)};
    for (size_t i = 0; i < 2; i++) {
        files[i].path = paths[i];
        files[i].size = spool_size(*result->files[from[i]]);
        memcpy(files[i].digest, result->digests[from[i]], DIGEST_SIZE);
        named[i] = (struct api_file){files[i].path, files[i].digest, files[i].size};
    }
    result->model_files = (struct store_model_files){2, files};
    result->size += files[1].size;
    char *text = paths[1] ? api_files_identity(named, 2) : NULL;
    bool ok =
        (text && digest_of(text, strlen(text), result->id)) || api_problem_no_memory(p);
    free(text);
    return ok;
}

static void
result_fini(struct result *result)
{
    free(result->model[1].path);
}

/* Collects the files, ids and sizes of a result. */
static bool
collect_result(const struct job_result *from, struct result *ret, struct api_problem *p)
{
    *ret = (struct result){
        .n = from->data ? N_RESULTS : RESULT_DATA,
        .files = {from->model, from->report, from->frozen, from->data},
        .size = spool_size(*from->model),
    };
    for (size_t i = 0; i < ret->n; i++)
        memcpy(ret->digests[i], spool_id(*ret->files[i]), DIGEST_SIZE);
    memcpy(ret->id, ret->digests[RESULT_MODEL], sizeof ret->id);
    return !from->data || add_data(ret, from->data_path, p);
}

bool
library_job_end(struct library *library, const char *id,
                const struct job_result *result, const struct api_problem *error,
                struct store_ended *ret, struct api_problem *p)
{
    struct result made;
    struct store_ended ended = {0};
    if (!collect_result(result, &made, p) || !blobs_check_room(library->blobs, 0, p)) {
        result_fini(&made);
        return false;
    }
    struct store_end end = {.state = error ? API_JOB_FAILED : API_JOB_SUCCEEDED,
                            .result_model = made.id,
                            .report = made.digests[RESULT_REPORT],
                            .frozen = made.digests[RESULT_FROZEN],
                            .summary = result->summary,
                            .result_size = made.size,
                            .result_files = &made.model_files,
                            .error = error,
                            .fence = result->fence};
    struct deferred_files deferred = {0};
    struct incoming incoming = {made.n, made.files, made.digests, NULL, &deferred};
    bool ok = library_publish(library, &incoming, p);
    end.unsynced = deferred.files;
    end.n_unsynced = deferred.n;
    ok = ok && store_job_end(library->store, id, API_JOB_RUNNING, &end, clock_wall_ms(),
                             &ended, p);
    if (!ok || !ended.was)
        library_discard_incoming(library, &incoming);
    lock_release(&library->lock);
    deferred_added(library, &deferred, ok && ended.was);
    result_fini(&made);
    if (ok)
        *ret = ended;
    return ok;
}

/* A row that goes: that of a job, or of one of its targets. */
struct leaving {
    struct store_job job;
    struct store_model_files files; /* of its model, where that is several */
};

static void
leaving_fini(struct leaving *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        store_job_fini(&rows[i].job);
        store_model_files_fini(&rows[i].files);
    }
    free(rows);
}

/* Reads a row and the files of its model, which nothing refers to once the row is removed. */
static bool
read_leaving(struct library *library, const char *id, struct leaving *ret,
             struct api_problem *p)
{
    return store_job_get(library->store, id, &ret->job, p) &&
           (!ret->job.result_files ||
            store_model_files(library->store, ret->job.result_model, &ret->files, p));
}

/* Reads the rows of the targets of a job. They stay the same as long as it is there. */
static bool
read_targets(struct library *library, const char *id, struct leaving **ret,
             size_t *ret_n, struct api_problem *p)
{
    char(*ids)[JOB_ID_SIZE];
    size_t n;
    if (!store_target_ids(library->store, id, &ids, &n, p))
        return false;
    struct leaving *rows = calloc(n + 1, sizeof *rows);
    bool ok = rows || api_problem_no_memory(p);
    for (size_t i = 0; ok && i < n; i++)
        ok = read_leaving(library, ids[i], &rows[i], p);
    free(ids);
    if (ok) {
        *ret = rows;
        *ret_n = n;
    } else {
        leaving_fini(rows, rows ? n : 0);
    }
    return ok;
}

/* Removes what a row named and no other row needs. */
static void
discard_leaving(struct library *library, const struct leaving *row)
{
    const struct store_job *job = &row->job;
    library_discard_files(library, &row->files);
    if (job->result_model) {
        library_discard(library, job->result_model);
        if (!store_needs_blob(library->store, job->result_model))
            library_forget_observations(library, STORE_MODEL, job->result_model);
    }
    if (job->report)
        library_discard(library, job->report);
    if (job->frozen)
        library_discard(library, job->frozen);
}

static bool
remove_job(struct library *library, const char *id, enum store_remover who,
           struct api_problem *p)
{
    struct leaving own = {.files = {.n = 0}}, *targets = NULL;
    struct store_job removed;
    size_t n = 0;
    lock_acquire(&library->lock);
    bool ok = read_leaving(library, id, &own, p) &&
              read_targets(library, id, &targets, &n, p) &&
              store_job_remove(library->store, id, who, &removed, p);
    if (ok) {
        if (removed.n_waiting > 0)
            log_info("deliveries_dropped", "job=%s tenant=%s n=%lld by=%s", id,
                     library_tenant(library), (long long)removed.n_waiting,
                     who == STORE_SWEEP ? "sweep" : "request");
        discard_leaving(library, &own);
        for (size_t i = 0; i < n; i++)
            discard_leaving(library, &targets[i]);
        store_job_fini(&removed);
    }
    lock_release(&library->lock);
    store_job_fini(&own.job);
    store_model_files_fini(&own.files);
    leaving_fini(targets, n);
    return ok;
}

bool
library_job_remove(struct library *library, const char *id, enum store_remover who,
                   struct api_problem *p)
{
    bool ok = remove_job(library, id, who, p) ||
              (library_make_room(library, p) && remove_job(library, id, who, p));
    ballast_fill(library->ballast);
    return ok;
}
