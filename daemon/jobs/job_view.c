/* SPDX-License-Identifier: Apache-2.0 */
/* How a job is found and seen: its row, its place and its progress. */
#include "config.h"
#include "jobs/inner.h"

#include "base/clock.h"

#include <string.h>

struct job_slot *
jobs_find_slot(struct jobs *jobs, const char *id)
{
    struct job_slot *slot = jobs->slots;
    while (slot && strcmp(slot->id, id) != 0 && strcmp(slot->parent, id) != 0)
        slot = slot->next;
    return slot;
}

bool
jobs_view_progress(struct jobs *jobs, const char *id, struct job_view *ret)
{
    lock_acquire(&jobs->lock);
    const struct job_slot *slot = jobs_find_slot(jobs, id);
    if (slot) {
        ret->stage = slot->stage;
        ret->done = slot->done;
        ret->total = slot->total;
        ret->eta_s = api_eta_left(&slot->eta, clock_steady_ms());
        ret->waits_for_gpu = slot->lends;
    }
    lock_release(&jobs->lock);
    return slot;
}

/* Fills in the progress that the daemon that runs the job has stored. */
static void
view_stored_progress(const struct store_progress *told, struct job_view *ret)
{
    for (int i = 0; i < QDQ_N_STAGES; i++)
        if (strcmp(told->stage, qdq_stage_name((enum qdq_stage)i)) == 0)
            ret->stage = qdq_stage_name((enum qdq_stage)i);
    ret->done = (uint64_t)told->done;
    ret->total = (uint64_t)told->total;
    ret->eta_s = told->eta_s;
}

bool
jobs_view(struct jobs *jobs, struct store_job *row, struct job_view *ret,
          struct api_problem *p)
{
    struct job_view view = {.row = *row, .eta_s = -1};
    if (row->state == API_JOB_QUEUED &&
        !store_job_position(jobs->store, row->id, &view.position, p))
        return false;
    view.waits_for_gpu = row->state == API_JOB_QUEUED && !row->waits_for &&
                         gpus_are_claimed(&jobs->bell->gpus) && row->wants_gpu;
    if ((row->state == API_JOB_RUNNING || row->fetching) &&
        !jobs_view_progress(jobs, row->id, &view))
        view_stored_progress(&row->progress, &view);
    if (row->fetching) {
        view.stage = "fetch";
        view.eta_s = -1;
    }
    memset(row, 0, sizeof *row);
    *ret = view;
    return true;
}

bool
jobs_get(struct jobs *jobs, const char *id, struct job_view *ret, struct api_problem *p)
{
    struct store_job row;
    if (!store_job_get(jobs->store, id, &row, p))
        return false;
    if (jobs_view(jobs, &row, ret, p))
        return true;
    store_job_fini(&row);
    return false;
}

void
job_view_fini(struct job_view *view)
{
    store_job_fini(&view->row);
}
