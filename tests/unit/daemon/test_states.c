/* SPDX-License-Identifier: Apache-2.0 */
/* The changes of a job's state that are drawn in jobs/job.h succeed; any other ends
   the process before the row changes. */
#include "config.h"
#include "store/store.h"
#include "apart.h"
#include "daemon.h"

static struct store *store;
static struct api_problem problem;
static enum api_job_state from, to;

/* The drawn changes, and the ends of jobs that were answered at once or joined
   another. */
static const enum api_job_state drawn[][2] = {
    {API_JOB_QUEUED, API_JOB_RUNNING}, {API_JOB_QUEUED, API_JOB_SUCCEEDED},
    {API_JOB_QUEUED, API_JOB_FAILED},  {API_JOB_QUEUED, API_JOB_CANCELLED},
    {API_JOB_RUNNING, API_JOB_QUEUED}, {API_JOB_RUNNING, API_JOB_SUCCEEDED},
    {API_JOB_RUNNING, API_JOB_FAILED}, {API_JOB_RUNNING, API_JOB_CANCELLED},
};

static bool
is_drawn(void)
{
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
        if (drawn[i][0] == from && drawn[i][1] == to)
            return true;
    return false;
}

/* Stores a queued job. */
static void
set_up(void)
{
    char model[] = "sha256:m";
    const struct store_file file = {.id = "sha256:m"};
    const struct store_job job = {.id = "j", .created_at = 1000, .model = model};
    enum store_added added;
    bool is_new;
    scratch_make();
    problem = (struct api_problem){0};
    ck_assert(store_open(scratch_path("db"), &store, &problem));
    ck_assert(store_file_add(store, STORE_MODEL, &file, &is_new, &problem));
    ck_assert(store_job_add(store, &job, &(struct store_asking){0}, &added, &problem));
}

static void
tear_down(void)
{
    store_close(&store);
    scratch_remove();
}

static void
change(void)
{
    const struct store_end end = {.state = to};
    struct store_ended ended;
    ck_assert(store_job_end(store, "j", from, &end, 2000, &ended, &problem));
}

UNIT_LOOP(changes, (API_N_JOB_STATES * API_N_JOB_STATES))
{
    struct store_job job;
    from = (enum api_job_state)(_i / API_N_JOB_STATES);
    to = (enum api_job_state)(_i % API_N_JOB_STATES);
    ck_assert_int_eq(store_job_may_change(from, to), is_drawn());
    apart_expect(change, is_drawn() ? NULL : "\"store_job_may_change(from, to)\"");
    if (is_drawn())
        return;
    ck_assert(store_job_get(store, "j", &job, &problem));
    ck_assert_int_eq(job.state, API_JOB_QUEUED);
    store_job_fini(&job);
}

UNIT_SUITE("daemon/states", .setup = set_up, .teardown = tear_down)
