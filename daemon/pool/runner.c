/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/runner.h"
#include "base/clock.h"
#include "base/log.h"
#include "pool/model_fds.h"
#include "settings/settings.h"
#include "tenants/tenants.h"
#include "watch/metrics.h"
#include "qdq/quantize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

METRIC(run_seconds, HISTOGRAM, "qdqd_job_run_seconds", &metric_unlabelled, SECONDS,
       "Time that a worker spent on a job.");
METRIC(stage_seconds, HISTOGRAM, "qdqd_stage_seconds", &metric_stages, SECONDS,
       "Time of a stage in a job.");
enum { MISS, HIT };
METRIC_WORDS(result_labels, "result", [MISS] = "miss", [HIT] = "hit");
METRIC(
    observations, COUNTER, "qdqd_observations_total", &result_labels, ONE,
    "Searches for observations of an earlier calibration of the same model and data.");

/* --- callbacks while a job runs ------------------------------------------- */

/* Counts the time of the current stage and enters another; -1: none. */
static void
enter_stage(struct runner *runner, int stage)
{
    int64_t now = clock_steady_ms();
    if (stage == runner->stage)
        return;
    if (runner->stage >= 0)
        runner->spent[runner->stage] += now - runner->since + 1;
    runner->stage = stage;
    runner->since = now;
}

static void
count_run(struct runner *runner, int64_t began)
{
    struct metrics *metrics = runner->lane.service->metrics;
    enter_stage(runner, -1);
    metrics_observe(metrics, &metric_run_seconds, 0,
                    (clock_steady_ms() - began) * 1000);
    for (size_t i = 0; i < QDQ_N_STAGES; i++) {
        if (runner->spent[i])
            metrics_observe(metrics, &metric_stage_seconds, i,
                            (runner->spent[i] - 1) * 1000);
        runner->spent[i] = 0;
    }
}

static void
on_progress(void *arg, const struct message_progress *progress)
{
    struct runner *runner = arg;
    enter_stage(runner, (int)progress->stage);
    jobs_progress(runner->lane.service->jobs, &runner->ending->slot,
                  &(struct qdq_progress){(enum qdq_stage)progress->stage,
                                         progress->done, progress->total,
                                         progress->later});
}

static bool
gpu_is_wanted(void *arg)
{
    struct runner *runner = arg;
    return jobs_gpu_is_wanted(runner->lane.service->jobs, &runner->ending->slot);
}

enum { CHECK_GPU_MS = 50 };

/* Lends the job's GPU, on which the worker has freed everything, and waits until the
   job has it again. Returns false when the job is no longer wanted. */
static bool
lend_gpu(void *arg, int64_t *ret_waited)
{
    const struct timespec slice = {0, CHECK_GPU_MS * 1000000};
    struct runner *runner = arg;
    struct jobs *jobs = runner->lane.service->jobs;
    int64_t since = clock_steady_ms();
    bool wanted = true;
    if (runner->ending->slot.device == GPUS_NONE)
        return false;
    log_info("gpu_lent", "job=%s gpu=%d", runner->ending->slot.id,
             runner->ending->slot.device);
    jobs_lend_gpu(jobs, &runner->ending->slot);
    while ((wanted = !jobs_is_unwanted(jobs, &runner->ending->slot)) &&
           !jobs_regain_gpu(jobs, &runner->ending->slot))
        nanosleep(&slice, NULL);
    *ret_waited = clock_steady_ms() - since;
    runner->since += *ret_waited;
    if (wanted)
        log_info("gpu_regained", "job=%s gpu=%d waited_ms=%lld",
                 runner->ending->slot.id, runner->ending->slot.device,
                 (long long)*ret_waited);
    return wanted;
}

/* --- the files of one job while it runs ----------------------------------- */

static void
log_observations_lost(const struct api_problem *problem)
{
    char quoted[LOG_QUOTED];
    log_error("observations_not_kept", "detail=%s", log_quote(quoted, problem->detail));
}

static bool
observes(const struct runner *runner, const struct store_job *job)
{
    return runner->lane.service->settings->cache_observations != 0 &&
           *job->observations;
}

/*
 * Gives the worker the observations of earlier jobs. Without them the job only takes
 * longer. A job with `fresh` does not read them, and its own observations replace them.
 */
static void
open_observations(struct runner *runner, const struct store_job *job, struct work *work)
{
    struct api_problem problem = {0};
    if (!work->observed)
        return;
    work->request.body.quantize.observe = 1;
    if (job->fresh)
        return;
    if (!library_observations_get(runner->lane.service->library, job->observations,
                                  work->observed, work->kept, &problem))
        log_observations_lost(&problem);
    metrics_add(runner->lane.service->metrics, &metric_observations,
                *work->kept ? HIT : MISS, 1);
}

static bool
open_work(struct runner *runner, const struct store_job *job, struct work *work,
          struct api_problem *p)
{
    struct blobs *blobs = library_blobs(runner->lane.service->library);
    struct ending *ending = runner->ending;
    struct message *request = &work->request;
    request->type = MESSAGE_QUANTIZE;
    if (!model_fds_open(runner->lane.service->library, job->model, &work->model, p) ||
        (job->calibration && !blob_read(blobs, job->calibration, &work->dataset, p)))
        return false;
    if (!ending_lend(ending, LENT_OUTPUT, &work->output, p) ||
        !ending_lend(ending, LENT_REPORT, &work->report, p) ||
        !ending_lend(ending, LENT_FROZEN, &work->frozen, p) ||
        !ending_lend(ending, LENT_DATA, &work->data, p) ||
        (observes(runner, job) &&
         !ending_lend(ending, LENT_OBSERVED, &work->observed, p)))
        return false;
    request->fds[MESSAGE_FD_OUTPUT] = spool_fd(work->output);
    request->fds[MESSAGE_FD_REPORT] = spool_fd(work->report);
    request->fds[MESSAGE_FD_FROZEN] = spool_fd(work->frozen);
    /* A worker that does not observe gets another file in this place, and ignores it. */
    request->fds[MESSAGE_FD_OBSERVATIONS] =
        spool_fd(work->observed ? work->observed : work->output);
    request->fds[MESSAGE_FD_DATA] = spool_fd(work->data);
    request->fds[MESSAGE_FD_DATASET] = work->dataset;
    request->n_fds = work->dataset < 0 ? MESSAGE_FD_DATASET : MESSAGE_FD_DATASET + 1;
    model_fds_attach(&work->model, request);
    snprintf(request->body.quantize.model_id, DIGEST_SIZE, "%s", job->model);
    snprintf(request->body.quantize.dataset_id, DIGEST_SIZE, "%s",
             job->calibration ? job->calibration : "");
    request->text = job->effective_spec;
    request->text_len = strlen(job->effective_spec);
    open_observations(runner, job, work);
    return true;
}

/* Returns whether the worker finished the file: it writes the head last. */
static bool
is_whole(const struct spool *spool)
{
    char begin[sizeof QDQ_OBSERVATIONS_MAGIC - 1];
    return pread(spool_fd(spool), begin, sizeof begin, 0) == sizeof begin &&
           memcmp(begin, QDQ_OBSERVATIONS_MAGIC, sizeof begin) == 0;
}

/*
 * Stores the observations for later jobs. This happens before the job ends, so that a
 * client that waited for its end can rely on them. The observations of a failed job are
 * stored, too, because calibration itself may have succeeded.
 */
static void
keep_observations(struct runner *runner, const struct store_job *job, struct work *work)
{
    struct api_problem problem = {0};
    const struct message_quantize *ids = &work->request.body.quantize;
    int64_t most = runner->lane.service->settings->cache_observations;
    struct store_observations row = {.model = ids->model_id,
                                     .calibration =
                                         *ids->dataset_id ? ids->dataset_id : NULL};
    if (!ids->observe || !is_whole(work->observed))
        return;
    memcpy(row.key, job->observations, sizeof row.key);
    bool ok =
        jobs_is_held(runner->lane.service->jobs, &runner->ending->slot, &problem) &&
        spool_finish_file(work->observed, &problem);
    /* An unusable, damaged file may already have this name; it is replaced. */
    spool_set_replace(work->observed);
    if (ok && strcmp(spool_id(work->observed), work->kept) != 0)
        ok = library_observations_keep(runner->lane.service->library, &row,
                                       &work->observed, most, &problem);
    if (!ok)
        log_observations_lost(&problem);
}

/* --- one job -------------------------------------------------------------- */

static enum outcome
run_worker(struct runner *runner, const struct message *request, char **ret,
           struct api_problem *p)
{
    const struct lane_events events = {on_progress, gpu_is_wanted, lend_gpu, runner};
    enum outcome started =
        lane_start_process(&runner->lane, runner->ending->slot.device, p);
    if (started != OUTCOME_DONE)
        return started;
    if (jobs_is_unwanted(runner->lane.service->jobs, &runner->ending->slot))
        return OUTCOME_DIED;
    return lane_ask(&runner->lane, request, &events, ret, p);
}

/* Ends the process that lost its GPU. Returns DIED when the job may run once more,
   on a new process, which may find the device working again. */
static enum outcome
retry_on_new_process(struct runner *runner, const struct store_job *job, char how[64])
{
    lane_end(&runner->lane);
    if (job->attempts > 0 || runner->lane.settings->workers_attempts < 2)
        return OUTCOME_FAILED;
    snprintf(how, 64, "lost its GPU");
    return OUTCOME_DIED;
}

/* Ends a process that used a GPU, because the next job on this GPU may be another
   lane's and may need all of its memory. */
static void
release_device(struct runner *runner)
{
    if (runner->ending->slot.device != GPUS_NONE &&
        runner->lane.settings->workers_count > 1)
        lane_end(&runner->lane);
}

/* Ends a job that has no result. `how` is the way in which its worker died. */
static void
end_without_result(struct runner *runner, const struct store_job *job,
                   enum outcome outcome, struct api_problem *p, const char *how)
{
    struct ending *ending = runner->ending;
    struct jobs *jobs = ending->service->jobs;
    bool waits = outcome == OUTCOME_FAILED && p->code == API_UNAVAILABLE;
    ending_report_full_disk(ending, p);
    ending_close(ending);
    if (waits || (outcome == OUTCOME_DIED && !jobs_is_unwanted(jobs, &ending->slot)))
        lane_count_failure(&runner->lane);
    else if (outcome != OUTCOME_DIED)
        lane_count_success(&runner->lane);
    if (waits)
        jobs_put_back(jobs, &ending->slot);
    else if (outcome == OUTCOME_FAILED)
        jobs_fail(jobs, &ending->slot, p);
    else
        jobs_lost(jobs, &ending->slot, job, how);
    free(ending->summary);
    ending->summary = NULL;
    ending_leave(ending);
}

/* Ends a job with a result. One that has a GPU keeps the lane waiting, so that the GPU is free
   when the lane claims the next job. */
static void
end_with_result(struct runner *runner)
{
    struct ending *ending = runner->ending;
    atomic_store(&runner->lane.failures, 0);
    if (ending->slot.device == GPUS_NONE) {
        ending_give(ending);
        return;
    }
    ending_finish(ending);
    ending_leave(ending);
}

static void
run_job(struct runner *runner, const struct store_job *job)
{
    struct ending *ending = runner->ending;
    struct work *work = &ending->work;
    struct api_problem *p = &ending->problem;
    char *summary = NULL, how[64] = "";
    enum outcome outcome = OUTCOME_FAILED;
    int64_t began = clock_steady_ms();
    if (open_work(runner, job, work, p))
        outcome = run_worker(runner, &work->request, &summary, p);
    count_run(runner, began);
    if (outcome == OUTCOME_DIED)
        outcome = lane_end_dead(&runner->lane, how, p);
    else if (outcome == OUTCOME_FAILED && p->code == API_DEVICE_LOST)
        outcome = retry_on_new_process(runner, job, how);
    release_device(runner);
    if (outcome != OUTCOME_DIED)
        keep_observations(runner, job, work);
    ending->outcome = outcome;
    ending->summary = summary;
    if (outcome == OUTCOME_DONE || outcome == OUTCOME_REJECTED)
        end_with_result(runner);
    else
        end_without_result(runner, job, outcome, p, how);
}

/* --- the runner's thread -------------------------------------------------- */

static void *
run_jobs(void *arg)
{
    struct runner *runner = arg;
    struct ending *ending;
    struct store_job job;
    while ((ending = endings_take(&runner->endings)) &&
           tenants_claim(runner->tenants, &ending->slot, &ending->service, &job)) {
        lane_set_service(&runner->lane, ending->service);
        runner->ending = ending;
        run_job(runner, &job);
        store_job_fini(&job);
        lane_back_off(&runner->lane);
    }
    endings_fini(&runner->endings);
    lane_end(&runner->lane);
    return NULL;
}

bool
runner_start(struct runner *runner, struct tenants *tenants,
             const struct settings *settings, struct api_problem *p)
{
    runner->tenants = tenants;
    runner->stage = -1;
    endings_init(&runner->endings, &runner->lane.process);
    if (lane_start(&runner->lane, settings, tenants_metrics(tenants), run_jobs, runner,
                   p))
        return true;
    endings_fini(&runner->endings);
    return false;
}
