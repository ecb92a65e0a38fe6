/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/several/targets.h"
#include "store/inner.h"

/* Adds the row of a target, without what an earlier job may have to do with it. */
static bool
insert_target(struct store *store, const struct store_job *parent,
              const struct store_target *target, struct api_problem *p)
{
    const struct store_asking asking = {.identity = target->identity};
    struct store_job job = target->job;
    memcpy(job.parent, parent->id, sizeof job.parent);
    return store_insert_job(store, &job, &asking, p) &&
           store_set_processor(store, &job, p);
}

/* Adds all rows, and then looks for earlier jobs: a target that is answered at once is not the last
   one only because others are not there yet. */
static bool
insert_all(struct store *store, const struct store_job *job,
           const struct store_asking *asking, const struct store_target *targets,
           size_t n, struct api_problem *p)
{
    const struct store_asking own = {.key = asking->key, .asked = asking->asked};
    enum store_added added;
    bool ok = store_insert_job(store, job, &own, p);
    for (size_t i = 0; ok && i < n; i++)
        ok = insert_target(store, job, &targets[i], p);
    for (size_t i = 0; ok && i < n; i++)
        ok = store_settle_job(store, &targets[i].job, targets[i].identity, &added, p);
    return ok;
}

bool
store_targets_add(struct store *store, const struct store_job *job,
                  const struct store_asking *asking, const struct store_target *targets,
                  size_t n, struct api_problem *p)
{
    struct store_job waiting = *job;
    waiting.waits_for = waiting.id;
    lock_acquire(&store->lock);
    bool ok = run(store, BEGIN, p) &&
              finish(store, insert_all(store, &waiting, asking, targets, n, p), p);
    lock_release(&store->lock);
    return ok;
}

bool
store_target_get(struct store *store, const char *job, const char *target,
                 struct store_job *ret, struct api_problem *p)
{
    bool any;
    lock_acquire(&store->lock);
    bind_all(&store->statements[TARGET_GET], 1, TEXT(job), TEXT(target));
    bool ok = store_read_job(store, TARGET_GET, ret, &any, p);
    lock_release(&store->lock);
    return ok && (any || api_fail(p, API_NOT_FOUND,
                                  "there is no such job, or \"%.40s\" is none of its "
                                  "targets",
                                  target));
}

bool
store_target_ids(struct store *store, const char *job, char (**ret)[JOB_ID_SIZE],
                 size_t *ret_n, struct api_problem *p)
{
    struct store_targets targets;
    lock_acquire(&store->lock);
    bool ok = store_lock_targets(store, job, &targets, p);
    lock_release(&store->lock);
    if (!ok)
        return false;
    char(*ids)[JOB_ID_SIZE] = calloc(targets.n + 1, sizeof *ids);
    for (size_t i = 0; ids && i < targets.n; i++)
        memcpy(ids[i], targets.items[i].id, sizeof ids[i]);
    free(targets.items);
    *ret = ids;
    *ret_n = targets.n;
    return ids || api_problem_no_memory(p);
}
