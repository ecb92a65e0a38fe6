/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a job needs a run of its own: another one with the same identity may have succeeded, or
   still wait, and both share what it makes. */
#include "config.h"
#include "store/inner.h"

/* Finds a job with the same identity, and whether it has succeeded. */
static bool
find_same(struct store *store, const char *id, const char *identity,
          char ret[JOB_ID_SIZE], bool *ret_done, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    struct stmt *stmt = &store->statements[JOB_SAME];
    bind_all(stmt, 1, TEXT(identity), TEXT(id));
    int rc = step(stmt);
    ret[0] = '\0';
    if (rc == DB_ROW) {
        column_chars(stmt, 0, ret, JOB_ID_SIZE);
        *ret_done = (int)column_int(stmt, 1) != 0;
    }
    bool ok = rc == DB_ROW || rc == DB_DONE || fail(store, p);
    done(stmt);
    return ok;
}

static bool
answer_job(struct store *store, const struct store_job *job, const char *other,
           struct api_problem *p)
{
    struct stmt *stmt = &store->statements[JOB_ANSWER];
    bind_all(stmt, 1, TEXT(job->id), TEXT(other), INT(job->created_at));
    store_bind_change(stmt, 4, API_JOB_QUEUED, API_JOB_SUCCEEDED);
    return run(store, JOB_ANSWER, p);
}

static bool
join_job(struct store *store, const struct store_job *job, const char *other,
         struct api_problem *p)
{
    bind_all(&store->statements[JOB_JOIN], 1, TEXT(job->id), TEXT(other));
    bind_all(&store->statements[JOB_RAISE], 1, TEXT(other), INT(job->priority));
    return run(store, JOB_JOIN, p) && run(store, JOB_RAISE, p);
}

bool
store_settle_job(struct store *store, const struct store_job *job, const char *identity,
                 enum store_added *ret, struct api_problem *p)
{
    char other[JOB_ID_SIZE];
    bool has_succeeded = false;
    if (!identity || job->fresh)
        return true;
    bind_text(&store->statements[IDENTITY_LOCK], 1, identity);
    if (!run(store, IDENTITY_LOCK, p) ||
        !find_same(store, job->id, identity, other, &has_succeeded, p))
        return false;
    if (!other[0])
        return true;
    *ret = has_succeeded ? STORE_ANSWERED : STORE_JOINED;
    return has_succeeded ? answer_job(store, job, other, p)
                         : join_job(store, job, other, p);
}
