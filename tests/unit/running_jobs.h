/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of a library in a scratch folder, whose lane and worker the test plays. */
#ifndef TESTS_UNIT_RUNNING_JOBS_H
#define TESTS_UNIT_RUNNING_JOBS_H

#include "api/spec.h"
#include "jobs/job.h"
#include "settings/settings.h"
#include "workers/process.h"
#include "daemon.h"

static struct library *library;
static struct jobs *jobs;
static struct bell bell;
static struct settings settings;
static struct process process;
static struct job_slot slot;
static struct api_problem problem;
static char id[JOB_ID_SIZE];
static const char *devices = "";

static inline void
open_jobs(void)
{
    ck_assert_msg(library_open(scratch_path("state"), &library, &problem), "%s",
                  problem.detail);
    ck_assert(jobs_open(library, &settings, &bell, &jobs, &problem));
    slot = (struct job_slot){.process = &process};
}

static inline void
set_up(void)
{
    const struct setting_flag flag = {"queue.max", "2"};
    char error[SETTINGS_ERROR];
    scratch_make();
    problem = (struct api_problem){0};
    ck_assert_msg(settings_load(NULL, &flag, 1, NULL, &settings, error), "%s", error);
    process_init(&process, &settings, NULL);
    bell_init(&bell, devices);
    open_jobs();
}

static inline void
tear_down(void)
{
    jobs_close(&jobs);
    library_close(&library);
    bell_fini(&bell);
    process_fini(&process);
    settings_fini(&settings);
    scratch_remove();
}

static inline bool
submit_asked(const struct store_asking *asking)
{
    char model[] = "sha256:m";
    const struct store_job request = {.model = model};
    const struct store_file file = {.id = "sha256:m"};
    bool is_new;
    ck_assert(
        store_file_add(library_store(library), STORE_MODEL, &file, &is_new, &problem));
    return jobs_submit(jobs, &request, asking, id, &problem);
}

static inline bool
submit(void)
{
    return submit_asked(&(struct store_asking){0});
}

static inline enum api_job_state
state(void)
{
    struct job_view view;
    ck_assert(jobs_get(jobs, id, &view, &problem));
    job_view_fini(&view);
    return view.row.state;
}

static inline struct store_job
claim(void)
{
    struct store_job job;
    bool any;
    ck_assert(jobs_claim(jobs, &slot, &job, &any, &problem) && any);
    ck_assert_str_eq(slot.id, job.id);
    return job;
}

static inline struct spool *
spool_of(const char *text)
{
    struct spool *spool;
    ck_assert(spool_open(library_blobs(library), &spool, &problem));
    ck_assert(spool_write(spool, text, strlen(text), &problem));
    ck_assert(spool_finish(spool, &problem));
    return spool;
}

/* Ends the slot's job with a result; with a problem, as a job whose model was
   rejected. */
static inline void
end_with(const struct api_problem *refused)
{
    struct spool *model = spool_of("model"), *report = spool_of("report");
    struct spool *frozen = spool_of("frozen");
    const struct job_result result = {
        .model = &model, .report = &report, .frozen = &frozen, .summary = "{}"};
    if (refused)
        jobs_reject(jobs, &slot, &result, refused);
    else
        jobs_succeed(jobs, &slot, &result);
    spool_discard(&model);
    spool_discard(&report);
    spool_discard(&frozen);
}

static inline void
succeed(void)
{
    end_with(NULL);
}

#endif
