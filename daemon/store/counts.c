/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of jobs and bytes, and a job's place in the queue. */
#include "config.h"
#include "store/inner.h"
#include "base/clock.h"

bool
store_count_queued(struct store *store, int64_t *ret, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bool ok = ask(store, JOB_WAITING, NULL, ret, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_queue_length(struct store *store, int64_t *ret, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bool ok = ask(store, JOB_COUNT, NULL, ret, p);
    lock_release(&store->lock);
    return ok;
}

/* Counts the jobs in each state. The caller holds the lock. */
static bool
count_states(struct store *store, struct store_counts *ret, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    struct stmt *stmt = &store->statements[JOB_STATES];
    int rc;
    while ((rc = step(stmt)) == DB_ROW) {
        const char *name = borrow_text(stmt, 0);
        enum api_job_state state = name ? api_job_state_parse(name) : API_N_JOB_STATES;
        if (state < API_N_JOB_STATES)
            ret->jobs[state] = column_int(stmt, 1);
    }
    bool ok = rc == DB_DONE || fail(store, p);
    done(stmt);
    return ok;
}

/* Sums the stored bytes. The caller holds the lock. */
static bool
count_bytes(struct store *store, struct store_counts *ret, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    struct stmt *stmt = &store->statements[AMOUNTS];
    bool ok = step(stmt) == DB_ROW || fail(store, p);
    for (int i = 0; ok && i < (int)(sizeof ret->bytes / sizeof *ret->bytes); i++)
        ret->bytes[i] = column_int(stmt, i);
    done(stmt);
    return ok;
}

bool
store_count(struct store *store, struct store_counts *ret, struct api_problem *p)
{
    *ret = (struct store_counts){0};
    lock_acquire(&store->lock);
    bind_int(&store->statements[JOB_OLDEST_WAITING], 1, clock_wall_ms());
    bool ok = count_states(store, ret, p) && count_bytes(store, ret, p) &&
              ask(store, JOB_COUNT, NULL, &ret->waiting, p) &&
              ask(store, JOB_OLDEST_WAITING, NULL, &ret->oldest, p);
    lock_release(&store->lock);
    return ok;
}

uint64_t
store_record_bytes(struct store *store)
{
    struct api_problem ignored = {0};
    int64_t bytes = 0;
    lock_acquire(&store->lock);
    bool ok = ask(store, RECORD_BYTES, NULL, &bytes, &ignored);
    lock_release(&store->lock);
    return ok && bytes > 0 ? (uint64_t)bytes : 0;
}

bool
store_job_position(struct store *store, const char *id, int64_t *ret,
                   struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_text(&store->statements[JOB_POSITION], 1, id);
    bool ok = ask(store, JOB_POSITION, NULL, ret, p);
    lock_release(&store->lock);
    return ok;
}
