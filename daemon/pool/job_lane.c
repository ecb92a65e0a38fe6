/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/job_lane.h"
#include "base/clock.h"
#include "base/log.h"
#include "pool/judging.h"
#include "pool/model_fds.h"
#include "settings/settings.h"
#include "tenants/tenants.h"
#include "watch/metrics.h"
#include "api/spec.h"
#include "qdq/quantize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
enter_stage(struct job_lane *job_lane, int stage)
{
    int64_t now = clock_steady_ms();
    if (stage == job_lane->stage)
        return;
    if (job_lane->stage >= 0)
        job_lane->spent[job_lane->stage] += now - job_lane->since + 1;
    job_lane->stage = stage;
    job_lane->since = now;
}

static void
count_run(struct job_lane *job_lane, int64_t began)
{
    struct metrics *metrics = job_lane->lane.service->metrics;
    enter_stage(job_lane, -1);
    metrics_observe(metrics, &metric_run_seconds, 0,
                    (clock_steady_ms() - began) * 1000);
    for (size_t i = 0; i < QDQ_N_STAGES; i++) {
        if (job_lane->spent[i])
            metrics_observe(metrics, &metric_stage_seconds, i,
                            (job_lane->spent[i] - 1) * 1000);
        job_lane->spent[i] = 0;
    }
}

static void
on_progress(void *arg, const struct message_progress *progress)
{
    struct job_lane *job_lane = arg;
    enter_stage(job_lane, (int)progress->stage);
    jobs_progress(job_lane->lane.service->jobs, &job_lane->ending->slot,
                  &(struct qdq_progress){(enum qdq_stage)progress->stage,
                                         progress->done, progress->total,
                                         progress->later, progress->unknown});
}

static bool
gpu_is_wanted(void *arg)
{
    struct job_lane *job_lane = arg;
    return jobs_gpu_is_wanted(job_lane->lane.service->jobs, &job_lane->ending->slot);
}

enum { CHECK_GPU_MS = 50 };

/* Lends the job's GPU, on which the worker has freed everything, and waits until the
   job has it again. Returns false when the job is no longer wanted. */
static bool
lend_gpu(void *arg, int64_t *ret_waited)
{
    const struct timespec slice = {0, CHECK_GPU_MS * 1000000};
    struct job_lane *job_lane = arg;
    struct jobs *jobs = job_lane->lane.service->jobs;
    int64_t since = clock_steady_ms();
    bool wanted = true;
    if (job_lane->ending->slot.device == GPUS_NONE)
        return false;
    log_info("gpu_lent", "job=%s gpu=%d", job_lane->ending->slot.id,
             job_lane->ending->slot.device);
    jobs_lend_gpu(jobs, &job_lane->ending->slot);
    while ((wanted = !jobs_is_unwanted(jobs, &job_lane->ending->slot)) &&
           !jobs_regain_gpu(jobs, &job_lane->ending->slot))
        nanosleep(&slice, NULL);
    *ret_waited = clock_steady_ms() - since;
    job_lane->since += *ret_waited;
    if (wanted)
        log_info("gpu_regained", "job=%s gpu=%d waited_ms=%lld",
                 job_lane->ending->slot.id, job_lane->ending->slot.device,
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
observes(const struct job_lane *job_lane, const struct store_job *job)
{
    return job_lane->lane.service->settings->cache_observations != 0 &&
           *job->observations;
}

/*
 * Gives the worker the observations of earlier jobs. Without them the job only takes
 * longer. A job with `fresh` does not read them, and its own observations replace them.
 */
static void
open_observations(struct job_lane *job_lane, const struct store_job *job,
                  struct work *work)
{
    struct api_problem problem = {0};
    if (!work->observed)
        return;
    work->request.body.quantize.observe = 1;
    if (job->fresh)
        return;
    if (!library_observations_get(job_lane->lane.service->library, job->observations,
                                  work->observed, work->kept, &problem))
        log_observations_lost(&problem);
    metrics_add(job_lane->lane.service->metrics, &metric_observations,
                *work->kept ? HIT : MISS, 1);
}

/*
 * Lends the worker what earlier jobs of the model measured, which is kept like observations, where the
 * job has data. Without it the job measures again.
 */
static bool
lend_times(struct job_lane *job_lane, const struct store_job *job, struct work *work,
           struct api_problem *p)
{
    struct api_spec *spec = NULL;
    char *identity = NULL;
    const char *text = job->effective_spec;
    if (job_lane->lane.service->settings->cache_observations == 0 || !job->calibration)
        return true;
    bool ok = api_spec_decode(text, strlen(text), &spec, p);
    if (ok) {
        identity = qdq_times_identity(api_spec_get(spec), job->model);
        ok = (identity && digest_of(identity, strlen(identity), work->times_key)) ||
             api_problem_no_memory(p);
        ok = ok && ending_lend(job_lane->ending, LENT_TIMES, &work->times, p);
    }
    free(identity);
    api_spec_free(&spec);
    return ok;
}

static void
open_times(struct job_lane *job_lane, const struct store_job *job, struct work *work)
{
    struct api_problem problem = {0};
    work->kept_times[0] = '\0';
    work->request.body.quantize.keep_times = work->times != NULL;
    if (work->times && !job->fresh &&
        !library_observations_get(job_lane->lane.service->library, work->times_key,
                                  work->times, work->kept_times, &problem))
        log_observations_lost(&problem);
}

/*
 * Opens the journal of a job that searches by patterns, from which it goes on where its worker or the daemon was killed. Without
 * it the job measures again.
 */
static void
open_journal(struct job_lane *job_lane, const struct store_job *job, struct work *work)
{
    struct message_quantize *request = &work->request.body.quantize;
    struct api_problem ignored = {0};
    struct api_spec *spec = NULL;
    const char *text = job->effective_spec;
    request->journal_of[0] = '\0';
    if (!job->calibration || !api_spec_decode(text, strlen(text), &spec, &ignored))
        return;
    const struct qdq_spec *asked = api_spec_get(spec);
    if (qdq_spec_keeps_journal(asked) &&
        judging_runner_digest(&job_lane->lane, asked->target->runtime,
                              request->journal_of) &&
        *request->journal_of) {
        work->journal = library_journal_open(job_lane->lane.service->library, job->id);
        if (work->journal >= 0)
            snprintf(work->journaled, sizeof work->journaled, "%s", job->id);
        else
            log_error("journal_not_opened", "job=%s errno=%d", job->id, errno);
    }
    if (work->journal < 0)
        request->journal_of[0] = '\0';
    api_spec_free(&spec);
}

/* Attaches the inputs beside the model that there are. */
static void
attach_inputs(struct message *request, const struct work *work)
{
    const int inputs[] = {work->dataset, work->evaluation, work->metric};
    request->n_fds = MESSAGE_FD_DATASET;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i] >= 0)
            request->fds[request->n_fds++] = inputs[i];
}

static bool
open_work(struct job_lane *job_lane, const struct store_job *job, struct work *work,
          struct api_problem *p)
{
    struct blobs *blobs = library_blobs(job_lane->lane.service->library);
    struct ending *ending = job_lane->ending;
    struct message *request = &work->request;
    request->type = MESSAGE_QUANTIZE;
    if (!model_fds_open(job_lane->lane.service->library, job->model, &work->model, p) ||
        (job->calibration && !blob_read(blobs, job->calibration, &work->dataset, p)) ||
        (job->evaluation && !blob_read(blobs, job->evaluation, &work->evaluation, p)) ||
        (job->metric && !blob_read(blobs, job->metric, &work->metric, p)))
        return false;
    if (!ending_lend(ending, LENT_OUTPUT, &work->output, p) ||
        !ending_lend(ending, LENT_REPORT, &work->report, p) ||
        !ending_lend(ending, LENT_FROZEN, &work->frozen, p) ||
        !ending_lend(ending, LENT_DATA, &work->data, p) ||
        (observes(job_lane, job) &&
         !ending_lend(ending, LENT_OBSERVED, &work->observed, p)) ||
        !lend_times(job_lane, job, work, p))
        return false;
    request->fds[MESSAGE_FD_OUTPUT] = spool_fd(work->output);
    request->fds[MESSAGE_FD_REPORT] = spool_fd(work->report);
    request->fds[MESSAGE_FD_FROZEN] = spool_fd(work->frozen);
    /* A worker that does not observe gets another file in this place, and ignores it. */
    request->fds[MESSAGE_FD_OBSERVATIONS] =
        spool_fd(work->observed ? work->observed : work->output);
    request->fds[MESSAGE_FD_TIMES] = spool_fd(work->times ? work->times : work->output);
    open_journal(job_lane, job, work);
    request->fds[MESSAGE_FD_JOURNAL] =
        work->journal >= 0 ? work->journal : spool_fd(work->output);
    request->fds[MESSAGE_FD_DATA] = spool_fd(work->data);
    attach_inputs(request, work);
    model_fds_attach(&work->model, request);
    snprintf(request->body.quantize.model_id, DIGEST_SIZE, "%s", job->model);
    snprintf(request->body.quantize.dataset_id, DIGEST_SIZE, "%s",
             job->calibration ? job->calibration : "");
    snprintf(request->body.quantize.evaluation_id, DIGEST_SIZE, "%s",
             job->evaluation ? job->evaluation : "");
    request->body.quantize.has_metric = work->metric >= 0;
    request->text = job->effective_spec;
    request->text_len = strlen(job->effective_spec);
    open_observations(job_lane, job, work);
    open_times(job_lane, job, work);
    return true;
}

/* Returns whether the file begins with that text, which the worker writes last into one of
   observations. */
static bool
begins_with(const struct spool *spool, const char *text)
{
    char begin[16];
    const size_t n = strlen(text);
    return pread(spool_fd(spool), begin, n, 0) == (ssize_t)n &&
           memcmp(begin, text, n) == 0;
}

/* Stores a file that later jobs read, unless it is the blob `before`. */
static void
keep_file(struct job_lane *job_lane, const struct store_observations *row,
          struct spool **file, const char *before)
{
    struct api_problem problem = {0};
    const struct service *service = job_lane->lane.service;
    bool ok = jobs_is_held(service->jobs, &job_lane->ending->slot, &problem) &&
              spool_finish_file(*file, &problem);
    /* An unusable, damaged file may already have this name; it is replaced. */
    spool_set_replace(*file);
    if (ok && strcmp(spool_id(*file), before) != 0)
        ok = library_observations_keep(service->library, row, file,
                                       service->settings->cache_observations, &problem);
    if (!ok)
        log_observations_lost(&problem);
}

/* Stores the times that were measured for later jobs. */
static void
keep_times(struct job_lane *job_lane, struct work *work)
{
    struct store_observations row = {.model = work->request.body.quantize.model_id};
    if (!work->times || !begins_with(work->times, QDQ_TIMES_MAGIC))
        return;
    memcpy(row.key, work->times_key, sizeof row.key);
    keep_file(job_lane, &row, &work->times, work->kept_times);
}

/*
 * Stores the observations for later jobs. This happens before the job ends, so that a
 * client that waited for its end can rely on them. The observations of a failed job are
 * stored, too, because calibration itself may have succeeded.
 */
static void
keep_observations(struct job_lane *job_lane, const struct store_job *job,
                  struct work *work)
{
    const struct message_quantize *ids = &work->request.body.quantize;
    struct store_observations row = {.model = ids->model_id,
                                     .calibration =
                                         *ids->dataset_id ? ids->dataset_id : NULL};
    if (!ids->observe || !begins_with(work->observed, QDQ_OBSERVATIONS_MAGIC))
        return;
    memcpy(row.key, job->observations, sizeof row.key);
    keep_file(job_lane, &row, &work->observed, work->kept);
}

/* --- one job -------------------------------------------------------------- */

static enum outcome
run_worker(struct job_lane *job_lane, const struct message *request, char **ret,
           struct api_problem *p)
{
    const struct lane_events events = {on_progress, gpu_is_wanted, lend_gpu, job_lane};
    enum outcome started =
        lane_start_process(&job_lane->lane, job_lane->ending->slot.device, p);
    if (started != OUTCOME_DONE)
        return started;
    if (jobs_is_unwanted(job_lane->lane.service->jobs, &job_lane->ending->slot))
        return OUTCOME_DIED;
    return lane_ask(&job_lane->lane, request, &events, ret, p);
}

/* Ends the process that lost its GPU. Returns DIED when the job may run once more,
   on a new process, which may find the device working again. */
static enum outcome
retry_on_new_process(struct job_lane *job_lane, const struct store_job *job,
                     char how[64])
{
    lane_end(&job_lane->lane);
    if (job->attempts > 0 || job_lane->lane.settings->workers_attempts < 2)
        return OUTCOME_FAILED;
    snprintf(how, 64, "lost its GPU");
    return OUTCOME_DIED;
}

/* Ends a process that used a GPU, because the next job on this GPU may be another
   lane's and may need all of its memory. */
static void
release_device(struct job_lane *job_lane)
{
    if (job_lane->ending->slot.device != GPUS_NONE &&
        job_lane->lane.settings->workers_count > 1)
        lane_end(&job_lane->lane);
}

/* Ends a job that has no result. `how` is the way in which its worker died. */
static void
end_without_result(struct job_lane *job_lane, const struct store_job *job,
                   enum outcome outcome, struct api_problem *p, const char *how)
{
    struct ending *ending = job_lane->ending;
    struct jobs *jobs = ending->service->jobs;
    bool waits = outcome == OUTCOME_FAILED && p->code == API_UNAVAILABLE;
    bool lacks = outcome == OUTCOME_FAILED && p->code == API_NOT_FOUND &&
                 store_is_shared(library_store(ending->service->library));
    ending_report_full_disk(ending, p);
    ending_close(ending);
    if (waits || lacks ||
        (outcome == OUTCOME_DIED && !jobs_is_unwanted(jobs, &ending->slot)))
        lane_count_failure(&job_lane->lane);
    else if (outcome != OUTCOME_DIED)
        lane_count_success(&job_lane->lane);
    if (waits)
        jobs_put_back(jobs, &ending->slot);
    else if (lacks)
        jobs_lack_files(jobs, &ending->slot, job, p);
    else if (outcome == OUTCOME_FAILED)
        jobs_fail(jobs, &ending->slot, p);
    else
        jobs_lost(jobs, &ending->slot, job, how);
    ending_settle_journal(ending);
    free(ending->summary);
    ending->summary = NULL;
    ending_leave(ending);
}

/* Ends a job with a result. One that has a GPU keeps the lane waiting, so that the GPU is free
   when the lane claims the next job. */
static void
end_with_result(struct job_lane *job_lane)
{
    struct ending *ending = job_lane->ending;
    atomic_store(&job_lane->lane.failures, 0);
    if (ending->slot.device == GPUS_NONE) {
        ending_give(ending);
        return;
    }
    ending_finish(ending);
    ending_leave(ending);
}

static void
run_job(struct job_lane *job_lane, const struct store_job *job)
{
    struct ending *ending = job_lane->ending;
    struct work *work = &ending->work;
    struct api_problem *p = &ending->problem;
    char *summary = NULL, how[64] = "";
    enum outcome outcome = OUTCOME_FAILED;
    int64_t began = clock_steady_ms();
    if (open_work(job_lane, job, work, p))
        outcome = run_worker(job_lane, &work->request, &summary, p);
    count_run(job_lane, began);
    if (outcome == OUTCOME_DIED)
        outcome = lane_end_dead(&job_lane->lane, how, p);
    else if (outcome == OUTCOME_FAILED && p->code == API_DEVICE_LOST)
        outcome = retry_on_new_process(job_lane, job, how);
    release_device(job_lane);
    if (outcome != OUTCOME_DIED) {
        keep_observations(job_lane, job, work);
        keep_times(job_lane, work);
    }
    ending->outcome = outcome;
    ending->summary = summary;
    if (outcome == OUTCOME_DONE || outcome == OUTCOME_REJECTED)
        end_with_result(job_lane);
    else
        end_without_result(job_lane, job, outcome, p, how);
}

/* --- the thread of the lane ------------------------------------------------ */

static void *
run_jobs(void *arg)
{
    struct job_lane *job_lane = arg;
    struct ending *ending;
    struct store_job job;
    int64_t claimed;
    while ((ending = endings_take(&job_lane->endings)) &&
           tenants_claim(job_lane->tenants, &ending->slot, &ending->service, &job,
                         &claimed)) {
        const struct service *service = ending->service;
        lane_set_service(&job_lane->lane, service);
        job_lane->ending = ending;
        run_job(job_lane, &job);
        store_job_fini(&job);
        lane_back_off(&job_lane->lane);
        tenants_lane_is_free(job_lane->tenants, service, claimed);
    }
    endings_fini(&job_lane->endings);
    lane_end(&job_lane->lane);
    return NULL;
}

bool
job_lane_start(struct job_lane *job_lane, struct tenants *tenants,
               const struct settings *settings, struct api_problem *p)
{
    job_lane->tenants = tenants;
    job_lane->stage = -1;
    endings_init(&job_lane->endings, &job_lane->lane.process);
    if (lane_start(&job_lane->lane, settings, tenants_metrics(tenants), run_jobs,
                   job_lane, p))
        return true;
    endings_fini(&job_lane->endings);
    return false;
}
