/* SPDX-License-Identifier: Apache-2.0 */
/* A job while it runs, as its lane sees it. */
#include "config.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/inner.h"

#include <stdio.h>
#include <string.h>

/* Requests a GPU when an idle lane found no job: no job can run without one, so
   those that wait want one. The caller holds the lock. */
static bool
ask_for_gpu(struct jobs *jobs, struct api_problem *p)
{
    lock_assert_held(&jobs->lock);
    int64_t waiting;
    if (jobs->draining || jobs->bell->gpus.n == 0)
        return true;
    if (!store_queue_length(jobs->store, &waiting, p))
        return false;
    if (waiting > 0)
        gpus_want(&jobs->bell->gpus);
    return true;
}

bool
jobs_claim(struct jobs *jobs, struct job_slot *slot, struct store_job *ret,
           bool *ret_any, struct api_problem *p)
{
    bool ok = true;
    struct gpus *gpus = &jobs->bell->gpus;
    int device = gpus_claim(gpus);
    int64_t begun = clock_steady_ms();
    struct api_speed earlier;
    *ret_any = false;
    QDQD_CHECK(!*slot->id);
    lock_acquire(&jobs->lock);
    if (!jobs->draining)
        ok = store_job_claim(jobs->store, clock_wall_ms(),
                             gpus->n == 0 || device != GPUS_NONE, ret, ret_any, p);
    slot->device = GPUS_NONE;
    if (ok && *ret_any && ret->wants_gpu)
        slot->device = device;
    else
        gpus_give_back(gpus, device);
    if (slot->device != GPUS_NONE)
        gpus_keep(gpus, device);
    if (ok && !*ret_any && device == GPUS_NONE)
        ok = ask_for_gpu(jobs, p);
    if (ok && *ret_any) {
        jobs_add_slot(jobs, slot, ret, begun);
        snprintf(slot->model, sizeof slot->model, "%s", ret->model);
        slot->spec = speeds_spec(ret->effective_spec ? ret->effective_spec : ret->spec);
        api_eta_start(&slot->eta,
                      speeds_find(&jobs->speeds, slot->model, slot->spec, &earlier)
                          ? &earlier
                          : NULL);
        jobs_notify(jobs, slot->id);
        if (*slot->parent)
            jobs_notify(jobs, slot->parent);
    }
    lock_release(&jobs->lock);
    if (ok && *ret_any)
        log_info("job_started", "job=%s tenant=%s attempt=%lld", ret->id, jobs->tenant,
                 (long long)ret->attempts + 1);
    return ok;
}

void
jobs_progress(struct jobs *jobs, struct job_slot *slot,
              const struct qdq_progress *progress)
{
    lock_acquire(&jobs->lock);
    slot->stage = qdq_stage_name(progress->stage);
    slot->done = progress->done;
    slot->total = progress->total;
    api_eta_update(&slot->eta, progress, clock_steady_ms());
    lock_release(&jobs->lock);
}

bool
jobs_is_unwanted(struct jobs *jobs, const struct job_slot *slot)
{
    lock_acquire(&jobs->lock);
    bool unwanted = slot->unwanted || jobs_has_lapsed(jobs, &slot->lease);
    lock_release(&jobs->lock);
    return unwanted;
}

bool
jobs_gpu_is_wanted(struct jobs *jobs, const struct job_slot *slot)
{
    return slot->device != GPUS_NONE && gpus_is_wanted(&jobs->bell->gpus, slot->device);
}

void
jobs_lend_gpu(struct jobs *jobs, struct job_slot *slot)
{
    lock_acquire(&jobs->lock);
    gpus_lend(&jobs->bell->gpus, slot->device, &slot->turn);
    slot->device = GPUS_NONE;
    slot->lends = true;
    lock_release(&jobs->lock);
    bell_ring(jobs->bell);
}

bool
jobs_regain_gpu(struct jobs *jobs, struct job_slot *slot)
{
    lock_acquire(&jobs->lock);
    bool has_it = gpus_regain(&jobs->bell->gpus, &slot->turn);
    if (has_it) {
        slot->device = slot->turn.device;
        slot->lends = false;
    }
    lock_release(&jobs->lock);
    return has_it;
}
