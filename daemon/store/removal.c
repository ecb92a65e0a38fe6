/* SPDX-License-Identifier: Apache-2.0 */
/* Removes rows: files and jobs, by a request or by age, and blobs that no row names. */
#include "config.h"
#include "store/inner.h"
#include "store/leader.h"

/* Whether this daemon may remove something, as a part of a transaction. */
static bool
may_remove(struct store *store, enum store_remover who, struct api_problem *p)
{
    return who != STORE_SWEEP || store_check_leads(store, p);
}

/* --- files ----------------------------------------------------------------- */

/* Removes the row of a file that no unfinished job needs, as a part of a transaction. */
static bool
remove_file(struct store *store, enum store_kind kind, const char *id,
            struct api_problem *p)
{
    bool any = false, used = false;
    bind_file(store, FILE_LOCK, kind, id);
    if (!ask(store, FILE_LOCK, &any, NULL, p))
        return false;
    bind_file(store, FILE_USED, kind, id);
    if (!ask(store, FILE_USED, &used, NULL, p))
        return false;
    if (used)
        return api_problem_set(p, API_IN_USE, QDQ_AT_NOTHING, NULL,
                               "a job that has not ended needs %s", id);
    if (!any)
        return api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                               "there is no such file");
    bind_file(store, FILE_REMOVE, kind, id);
    return run(store, FILE_REMOVE, p);
}

bool
store_file_remove(struct store *store, enum store_kind kind, const char *id,
                  enum store_remover who, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bool ok =
        run(store, BEGIN, p) &&
        finish(store, may_remove(store, who, p) && remove_file(store, kind, id, p), p);
    lock_release(&store->lock);
    return ok && store_sync(store, p);
}

/* --- jobs ------------------------------------------------------------------ */

/* Checks whether the job may be removed. */
static bool
check_removable(struct store *store, const struct store_job *job, struct api_problem *p)
{
    bool used = false;
    if (!api_job_state_ended(job->state))
        return api_problem_set(p, API_IN_USE, QDQ_AT_NOTHING, NULL,
                               "the job has not ended; cancel it first");
    if (*job->parent)
        return api_problem_set(p, API_IN_USE, QDQ_AT_NOTHING, NULL,
                               "the job is one target of %s, and is deleted with that",
                               job->parent);
    bind_file(store, FILE_USED, STORE_MODEL, job->result_model);
    if (!ask(store, FILE_USED, &used, NULL, p))
        return false;
    bind_text(&store->statements[TARGETS_USED], 1, job->id);
    return (used || ask(store, TARGETS_USED, &used, NULL, p)) &&
           (!used || api_problem_set(p, API_IN_USE, QDQ_AT_NOTHING, NULL,
                                     "a job that has not ended needs its model"));
}

bool
store_job_remove(struct store *store, const char *id, enum store_remover who,
                 struct store_job *ret, struct api_problem *p)
{
    struct store_job job = {0};
    lock_acquire(&store->lock);
    bool ok = run(store, BEGIN, p);
    if (ok) {
        bind_text(&store->statements[JOB_LOCK], 1, id);
        ok = may_remove(store, who, p) && run(store, JOB_LOCK, p) &&
             store_find_job(store, id, &job, p) && check_removable(store, &job, p);
        bind_text(&store->statements[DELIVERIES_WAIT], 1, id);
        ok = ok && ask(store, DELIVERIES_WAIT, NULL, &job.n_waiting, p);
        bind_text(&store->statements[JOB_REMOVE], 1, id);
        ok = finish(store, ok && run(store, JOB_REMOVE, p), p);
    }
    lock_release(&store->lock);
    ok = ok && store_sync(store, p);
    if (ok)
        *ret = job;
    else
        store_job_fini(&job);
    return ok;
}

/* --- blobs that no row names ----------------------------------------------- */

/* Takes the mark of a blob away if it is old enough. Nobody who stores these bytes goes on
   before the transaction has ended. */
static bool
remove_mark(struct store *store, const char *id, const struct store_blob_sweep *sweep,
            bool *ret_taken, struct api_problem *p)
{
    bind_all(&store->statements[MARK_TAKE], 1, TEXT(id), INT(sweep->now),
             INT(sweep->grace));
    return change(store, MARK_TAKE, ret_taken, p);
}

static bool
add_mark(struct store *store, const char *id, const struct store_blob_sweep *sweep,
         struct api_problem *p)
{
    bind_all(&store->statements[MARK_ADD], 1, TEXT(id), INT(sweep->now));
    return run(store, MARK_ADD, p);
}

bool
store_sweep_blob(struct store *store, const char *id,
                 const struct store_blob_sweep *sweep, bool *ret_gone,
                 struct api_problem *p)
{
    bool taken = false, needed = true;
    *ret_gone = false;
    lock_acquire(&store->lock);
    bool ok = run(store, BEGIN, p);
    if (ok) {
        bind_text(&store->statements[BLOB_NEEDED], 1, id);
        ok = store_check_leads(store, p) && remove_mark(store, id, sweep, &taken, p) &&
             ask(store, BLOB_NEEDED, &needed, NULL, p) &&
             (taken || needed || add_mark(store, id, sweep, p));
        *ret_gone = ok && taken && !needed;
        if (*ret_gone)
            sweep->set_aside(sweep->arg, id);
        ok = finish(store, ok, p);
    }
    lock_release(&store->lock);
    return ok;
}

enum { MARKS = 4 }; /* parameters of MARK_DROP */

bool
store_unmark_blobs(struct store *store, char (*ids)[DIGEST_SIZE], size_t n,
                   struct api_problem *p)
{
    bool ok = true;
    for (size_t at = 0; at < n && ok; at += MARKS) {
        lock_acquire(&store->lock);
        for (size_t i = 0; i < MARKS; i++)
            bind_text(&store->statements[MARK_DROP], (int)i + 1,
                      at + i < n ? ids[at + i] : NULL);
        ok = run(store, MARK_DROP, p);
        lock_release(&store->lock);
    }
    return ok;
}
