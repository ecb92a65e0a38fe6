/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/pool.h"
#include "base/clock.h"
#include "base/log.h"
#include "pool/model_fds.h"
#include "settings/settings.h"
#include "tenants/tenants.h"
#include "watch/metrics.h"
#include "workers/backends.h"
#include "workers/process.h"
#include "qdq/quantize.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct lane {
    struct pool *pool;
    pthread_t thread;
    bool started;
    struct process process;
    const struct service *service; /* whose work it does, or did last */
    atomic_int failures;  /* in a row: processes that died, or could not be started */
    struct job_slot slot; /* of a lane that runs jobs */
    int stage;            /* of the job that it runs; -1: none yet */
    int64_t since;        /* when that began, steady ms */
    int64_t spent[QDQ_N_STAGES]; /* ms in each */
};

/* Short work that waits or is done; lives on the asker's stack. */
struct task {
    const struct service *service;
    const struct message *request;
    bool done, ok;
    char *text;
    struct api_problem problem;
    struct task *next;
};

struct pool {
    struct tenants *tenants;
    const struct settings *settings;
    struct lane short_lane;
    size_t n_lanes;
    struct lane *lanes;
    pthread_mutex_t lock;
    pthread_cond_t asked, answered;
    /* guarded by lock: */
    struct task *first, **last; /* the short work that waits, oldest first */
    uint64_t turn;
    bool closing;
};

/* --- when one process after the other dies ---------------------------------- */

/*
 * A job that brings down its worker is a matter of the job, so the first few are followed
 * by the next at once. More than that is a matter of the machine (a library that is
 * broken, no memory, no descriptors): each further one is waited for longer, so that the
 * machine is not kept busy with it.
 */
enum { FEW = 4, FIRST_REST_MS = 250, MOST_REST_MS = 5000, SLICE_MS = 50 };

static bool
is_failing(struct lane *lane)
{
    return atomic_load(&lane->failures) >= FEW;
}

static void
count_failure(struct lane *lane)
{
    int n = atomic_fetch_add(&lane->failures, 1) + 1;
    metrics_add(lane->process.metrics, METRIC_WORKERS_DIED, 0, 1);
    if (is_failing(lane))
        log_error("workers_fail", "in_a_row=%d", n);
}

static bool
is_over(struct lane *lane)
{
    struct pool *pool = lane->pool;
    pthread_mutex_lock(&pool->lock);
    bool closing = pool->closing;
    pthread_mutex_unlock(&pool->lock);
    return closing || jobs_is_draining(lane->service->jobs);
}

/* Waits as long as it is to be waited before the next process. */
static void
rest(struct lane *lane)
{
    const struct timespec slice = {0, SLICE_MS * 1000000};
    int64_t ms = FIRST_REST_MS;
    for (int i = FEW; i < atomic_load(&lane->failures) && ms < MOST_REST_MS; i++)
        ms *= 2;
    int64_t until = clock_steady_ms() + (ms < MOST_REST_MS ? ms : MOST_REST_MS);
    while (is_failing(lane) && clock_steady_ms() < until && !is_over(lane))
        nanosleep(&slice, NULL);
}

bool
pool_is_failing(struct pool *pool)
{
    size_t n = 0;
    for (size_t i = 0; i < pool->n_lanes; i++)
        n += is_failing(&pool->lanes[i]);
    return n == pool->n_lanes || is_failing(&pool->short_lane);
}

/* --- one request and its answers ------------------------------------------ */

enum outcome { DONE, REJECTED, FAILED, DIED };

typedef void (*told_fn)(struct lane *lane, const struct message_progress *progress);

/* How long work may take from its begin, and the setting that says so. */
struct limit {
    const char *setting;
    int64_t seconds; /* 0: no limit */
};

/*
 * The limit that holds at a stage (-1: before the first). What comes before calibration
 * is short work in a job, too: a model or a script that hangs there is found out early.
 */
static struct limit
limit_at(const struct lane *lane, enum message_type type, int stage)
{
    const struct settings *s = lane->service->settings;
    int64_t each = lane->pool->settings->workers_job_timeout;
    const struct limit brief = {"workers.short_timeout", s->workers_short_timeout};
    const struct limit whole = {s->workers_job_timeout == each
                                    ? "workers.job_timeout"
                                    : "the tenant's job_timeout",
                                s->workers_job_timeout};
    if (type != MESSAGE_QUANTIZE)
        return brief;
    if (stage >= QDQ_STAGE_CALIBRATE ||
        (whole.seconds && whole.seconds < brief.seconds))
        return whole;
    return brief;
}

/* Milliseconds that are left, -1: no limit. */
static int
time_left(struct limit limit, int64_t began)
{
    int64_t left = began + limit.seconds * 1000 - clock_steady_ms();
    return !limit.seconds ? -1 : left < 0 ? 0 : (int)left;
}

static enum outcome
took_too_long(struct lane *lane, struct limit limit, int stage, struct api_problem *p)
{
    api_problem_set(p, API_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                    "this took longer than %lld s (%s)%s%s", (long long)limit.seconds,
                    limit.setting, stage < 0 ? "" : ", in stage ",
                    stage < 0 ? "" : qdq_stage_name((enum qdq_stage)stage));
    process_end(&lane->process, true, NULL);
    return FAILED;
}

/* What became of work whose process died: another try would take as long. */
static enum outcome
end_dead(struct lane *lane, char how[64], struct api_problem *p)
{
    process_end(&lane->process, true, how);
    if (!lane->process.spent)
        return DIED;
    api_problem_set(p, API_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                    "this took more than %lld s of processor time (workers.cpu_time)",
                    (long long)lane->pool->settings->workers_cpu_time);
    return FAILED;
}

/* --- a GPU that is lent --------------------------------------------------- */

static bool
answer_gpu(struct lane *lane, bool wanted)
{
    const struct message answer = {.type = MESSAGE_GPU, .body.gpu.wanted = wanted};
    return message_send(lane->process.socket, &answer);
}

/*
 * Until it is the job's again: nothing of it is on the GPU meanwhile. What it waits is
 * not its own time. False: the job is to be given up, or its process is gone.
 */
static bool
lend_gpu(struct lane *lane, int64_t *began)
{
    const struct timespec slice = {0, SLICE_MS * 1000000};
    struct jobs *jobs = lane->service->jobs;
    int64_t since = clock_steady_ms();
    log_info("gpu_lent", "job=%s gpu=%d", lane->slot.id, lane->slot.device);
    jobs_lend_gpu(jobs, &lane->slot);
    bool wanted = true;
    while ((wanted = !jobs_is_unwanted(jobs, &lane->slot)) &&
           !jobs_regain_gpu(jobs, &lane->slot))
        nanosleep(&slice, NULL);
    int64_t waited = clock_steady_ms() - since;
    *began += waited;
    lane->since += waited;
    if (wanted)
        log_info("gpu_regained", "job=%s gpu=%d waited_ms=%lld", lane->slot.id,
                 lane->slot.device, (long long)waited);
    return wanted && answer_gpu(lane, false);
}

enum { LIMIT_LOOK_MS = 1000 };

/* Waits for the next message within the limit of a stage, which may change meanwhile:
   *ret_limit is the one that held at last. */
static enum message_got
receive(struct lane *lane, enum message_type type, int stage, int64_t began,
        struct limit *ret_limit, struct message *ret)
{
    enum message_got got;
    bool again;
    do {
        *ret_limit = limit_at(lane, type, stage);
        int left = time_left(*ret_limit, began);
        again = left < 0 || left > LIMIT_LOOK_MS;
        got = message_receive(lane->process.socket, again ? LIMIT_LOOK_MS : left, ret);
    } while (got == MESSAGE_TIMEOUT && again);
    return got;
}

/*
 * Sends the request to the lane's process and follows it to its end: DONE with the text
 * in *ret (the caller frees it), REJECTED with text and problem, FAILED with the problem
 * set, or DIED.
 */
static enum outcome
follow(struct lane *lane, const struct message *request, told_fn told, char **ret,
       struct api_problem *p)
{
    int64_t began = clock_steady_ms();
    int stage = -1;
    lane->process.jobs++;
    process_allow(&lane->process);
    if (!message_send(lane->process.socket, request))
        return DIED;
    for (;;) {
        struct message answer;
        struct limit limit;
        enum message_got got =
            receive(lane, request->type, stage, began, &limit, &answer);
        if (got == MESSAGE_TIMEOUT)
            return took_too_long(lane, limit, stage, p);
        if (got != MESSAGE_GOT)
            return DIED;
        switch (answer.type) {
        case MESSAGE_PROGRESS:
            stage = (int)answer.body.progress.stage;
            told(lane, &answer.body.progress);
            break;
        case MESSAGE_GPU_WANTED:
            if (!answer_gpu(lane, jobs_gpu_is_wanted(lane->service->jobs, &lane->slot)))
                return DIED;
            break;
        case MESSAGE_GPU_LENT:
            if (lane->slot.device == GPUS_NONE || !lend_gpu(lane, &began))
                return DIED;
            break;
        case MESSAGE_RESULT:
            *ret = answer.text ? answer.text : strdup("");
            return *ret ? DONE : DIED;
        case MESSAGE_REJECTED:
            *p = answer.body.failed;
            *ret = answer.text ? answer.text : strdup("");
            return *ret ? REJECTED : DIED;
        case MESSAGE_FAILED:
            *p = answer.body.failed;
            return FAILED;
        default:
            message_fini(&answer);
            return DIED;
        }
    }
}

/* --- jobs ----------------------------------------------------------------- */

/* The lane's job is in another stage now; -1: in none. */
static void
enter_stage(struct lane *lane, int stage)
{
    int64_t now = clock_steady_ms();
    if (stage == lane->stage)
        return;
    if (lane->stage >= 0)
        lane->spent[lane->stage] += now - lane->since + 1;
    lane->stage = stage;
    lane->since = now;
}

static void
count_run(struct lane *lane, int64_t began)
{
    struct metrics *metrics = lane->service->metrics;
    enter_stage(lane, -1);
    metrics_observe(metrics, METRIC_RUN_SECONDS, 0, (clock_steady_ms() - began) * 1000);
    for (size_t i = 0; i < QDQ_N_STAGES; i++) {
        if (lane->spent[i])
            metrics_observe(metrics, METRIC_STAGE_SECONDS, i,
                            (lane->spent[i] - 1) * 1000);
        lane->spent[i] = 0;
    }
}

static void
tell(struct lane *lane, const struct message_progress *progress)
{
    enter_stage(lane, (int)progress->stage);
    jobs_progress(lane->service->jobs, &lane->slot,
                  &(struct qdq_progress){(enum qdq_stage)progress->stage,
                                         progress->done, progress->total,
                                         progress->later});
}

/* The files of one job while it runs. */
struct work {
    struct message request;
    struct model_fds model;
    int dataset; /* -1: none */
    struct spool *output, *report, *frozen, *data;
    struct spool *observed;
    char kept[DIGEST_SIZE]; /* blob of what was observed before; "": none */
};

static void
tell_not_kept(const struct api_problem *problem)
{
    char quoted[LOG_QUOTED];
    log_error("observations_not_kept", "detail=%s", log_quote(quoted, problem->detail));
}

/* Without it the job takes longer, no more. A fresh one asks for that, and what it
   observes takes the place of what is kept. */
static void
open_observations(struct lane *lane, const struct store_job *job, struct work *work)
{
    struct api_problem problem = {0};
    if (lane->service->settings->cache_observations == 0 || !*job->observations)
        return;
    work->request.body.quantize.observe = 1;
    if (job->fresh)
        return;
    if (!library_observations_get(lane->service->library, job->observations,
                                  work->observed, work->kept, &problem))
        tell_not_kept(&problem);
    metrics_add(lane->service->metrics, METRIC_OBSERVATIONS,
                *work->kept ? METRIC_HIT : METRIC_MISS, 1);
}

static bool
open_work(struct lane *lane, const struct store_job *job, struct work *work,
          struct api_problem *p)
{
    struct blobs *blobs = library_blobs(lane->service->library);
    struct message *request = &work->request;
    request->type = MESSAGE_QUANTIZE;
    if (!model_fds_open(lane->service->library, job->model, &work->model, p) ||
        (job->calibration && !blob_read(blobs, job->calibration, &work->dataset, p)))
        return false;
    if (!spool_open(blobs, &work->output, p) || !spool_open(blobs, &work->report, p) ||
        !spool_open(blobs, &work->frozen, p) ||
        !spool_open(blobs, &work->observed, p) || !spool_open(blobs, &work->data, p))
        return false;
    request->fds[MESSAGE_FD_OUTPUT] = spool_fd(work->output);
    request->fds[MESSAGE_FD_REPORT] = spool_fd(work->report);
    request->fds[MESSAGE_FD_FROZEN] = spool_fd(work->frozen);
    request->fds[MESSAGE_FD_OBSERVATIONS] = spool_fd(work->observed);
    request->fds[MESSAGE_FD_DATA] = spool_fd(work->data);
    request->fds[MESSAGE_FD_DATASET] = work->dataset;
    request->n_fds = work->dataset < 0 ? MESSAGE_FD_DATASET : MESSAGE_FD_DATASET + 1;
    model_fds_attach(&work->model, request);
    snprintf(request->body.quantize.model_id, DIGEST_SIZE, "%s", job->model);
    snprintf(request->body.quantize.dataset_id, DIGEST_SIZE, "%s",
             job->calibration ? job->calibration : "");
    request->text = job->effective_spec;
    request->text_len = strlen(job->effective_spec);
    open_observations(lane, job, work);
    return true;
}

static void
close_work(struct work *work)
{
    model_fds_fini(&work->model);
    if (work->dataset >= 0)
        close(work->dataset);
    spool_drop(&work->data);
    spool_drop(&work->output);
    spool_drop(&work->report);
    spool_drop(&work->frozen);
    spool_drop(&work->observed);
}

/* Whose work comes next: another tenant's gets another process. */
static void
set_service(struct lane *lane, const struct service *service)
{
    if (lane->service != service)
        process_end(&lane->process, false, NULL);
    lane->service = service;
}

static enum outcome
run_worker(struct lane *lane, const struct message *request, char **ret,
           struct api_problem *p)
{
    if (!process_start(&lane->process, lane->slot.device, p))
        return FAILED;
    if (jobs_is_unwanted(lane->service->jobs, &lane->slot))
        return DIED;
    return follow(lane, request, tell, ret, p);
}

/* Whether the file is whole: its head is written last. */
static bool
is_whole(const struct spool *spool)
{
    char begin[sizeof QDQ_OBSERVATIONS_MAGIC - 1];
    return pread(spool_fd(spool), begin, sizeof begin, 0) == sizeof begin &&
           memcmp(begin, QDQ_OBSERVATIONS_MAGIC, sizeof begin) == 0;
}

/*
 * Before the job ends: who waits for that may count on it. Also of a job that failed
 * later on: what is missing there may be no matter of calibration.
 */
static void
keep_observations(struct lane *lane, const struct store_job *job, struct work *work)
{
    struct api_problem problem = {0};
    const struct message_quantize *ids = &work->request.body.quantize;
    int64_t most = lane->service->settings->cache_observations;
    struct store_observations row = {.model = ids->model_id,
                                     .calibration =
                                         *ids->dataset_id ? ids->dataset_id : NULL};
    if (!ids->observe || !is_whole(work->observed))
        return;
    memcpy(row.key, job->observations, sizeof row.key);
    bool ok = spool_finish_file(work->observed, &problem);
    /* What could not be used, for it was damaged, may have the very name. */
    spool_replaces(work->observed);
    if (ok && strcmp(spool_id(work->observed), work->kept) != 0)
        ok = library_observations_keep(lane->service->library, &row, &work->observed,
                                       most, &problem);
    if (!ok)
        tell_not_kept(&problem);
}

/* What the worker wrote becomes the job's; FAILED where that cannot be done. */
static enum outcome
keep_result(struct lane *lane, struct work *work, enum outcome outcome,
            const char *summary, struct api_problem *p)
{
    struct jobs *jobs = lane->service->jobs;
    struct api_problem problem = {0};
    struct job_result result = {.model = &work->output,
                                .report = &work->report,
                                .frozen = &work->frozen,
                                .data_path = MESSAGE_DATA_NAME,
                                .summary = summary};
    if (!spool_finish_file(work->output, &problem) ||
        !spool_finish_file(work->data, &problem) ||
        !spool_finish_file(work->report, &problem) ||
        !spool_finish_file(work->frozen, &problem)) {
        *p = problem;
        return FAILED;
    }
    if (spool_size(work->data))
        result.data = &work->data;
    if (outcome == DONE)
        jobs_succeed(jobs, &lane->slot, &result);
    else
        jobs_reject(jobs, &lane->slot, &result, p);
    return outcome;
}

/* The engine knows only that it could not write. */
static void
blame_disk(struct lane *lane, struct api_problem *p)
{
    struct api_problem problem = {0};
    if (!blobs_has_room(library_blobs(lane->service->library), 0, &problem) &&
        problem.code == API_DISK_FULL)
        *p = problem;
}

/* Its worker ends by itself; another one may find the device in order, once. */
static enum outcome
lose_device(struct lane *lane, const struct store_job *job, char how[64])
{
    process_end(&lane->process, false, NULL);
    if (job->attempts > 0 || lane->pool->settings->workers_attempts < 2)
        return FAILED;
    snprintf(how, 64, "lost its GPU");
    return DIED;
}

/* Another lane's process may have it next, and all of its memory. */
static void
leave_device(struct lane *lane)
{
    if (lane->slot.device != GPUS_NONE && lane->pool->n_lanes > 1)
        process_end(&lane->process, false, NULL);
}

static void
run_job(struct lane *lane, const struct store_job *job)
{
    struct jobs *jobs = lane->service->jobs;
    struct work work = {.dataset = -1};
    struct api_problem problem = {0};
    char *summary = NULL, how[64] = "";
    enum outcome outcome = FAILED;
    int64_t began = clock_steady_ms();
    if (open_work(lane, job, &work, &problem))
        outcome = run_worker(lane, &work.request, &summary, &problem);
    count_run(lane, began);
    if (outcome == DIED)
        outcome = end_dead(lane, how, &problem);
    else if (outcome == FAILED && problem.code == API_DEVICE_LOST)
        outcome = lose_device(lane, job, how);
    leave_device(lane);
    if (outcome != DIED)
        keep_observations(lane, job, &work);
    if (outcome == DONE || outcome == REJECTED)
        outcome = keep_result(lane, &work, outcome, summary, &problem);
    if (outcome == FAILED && problem.code == API_IO)
        blame_disk(lane, &problem);
    close_work(&work);
    bool waits = outcome == FAILED && problem.code == API_UNAVAILABLE;
    if (waits || (outcome == DIED && !jobs_is_unwanted(jobs, &lane->slot)))
        count_failure(lane);
    else if (outcome != DIED)
        lane->failures = 0;
    if (waits)
        jobs_put_back(jobs, &lane->slot);
    else if (outcome == FAILED)
        jobs_fail(jobs, &lane->slot, &problem);
    if (outcome == DIED)
        jobs_lost(jobs, &lane->slot, job, how);
    free(summary);
}

static void *
job_lane(void *arg)
{
    struct lane *lane = arg;
    struct store_job job;
    const struct service *service;
    while (tenants_claim(lane->pool->tenants, &lane->slot, &service, &job)) {
        set_service(lane, service);
        run_job(lane, &job);
        store_job_fini(&job);
        rest(lane);
    }
    process_end(&lane->process, false, NULL);
    return NULL;
}

/* --- short work ----------------------------------------------------------- */

static void
ignore(struct lane *lane, const struct message_progress *progress)
{
    (void)lane;
    (void)progress;
}

static bool
run_task(struct lane *lane, struct task *task)
{
    const struct settings *settings = lane->pool->settings;
    char how[64] = "";
    set_service(lane, task->service);
    for (int64_t attempt = 1; attempt <= settings->workers_attempts; attempt++) {
        rest(lane);
        if (!process_start(&lane->process, GPUS_NONE, &task->problem))
            return false;
        enum outcome outcome =
            follow(lane, task->request, ignore, &task->text, &task->problem);
        if (outcome == DIED)
            outcome = end_dead(lane, how, &task->problem);
        if (outcome != DIED) {
            lane->failures = 0;
            return outcome == DONE; /* short work is never rejected */
        }
        count_failure(lane);
    }
    return api_problem_set(&task->problem, API_WORKER_DIED, QDQ_AT_NOTHING, NULL,
                           "the worker process %s, in attempt %lld of %lld", how,
                           (long long)settings->workers_attempts,
                           (long long)settings->workers_attempts);
}

/* Takes off the list the oldest task of the tenant that was served longest ago; there is
   one. With the lock held. */
static struct task *
take_task(struct pool *pool)
{
    struct task **best = &pool->first;
    for (struct task **at = &pool->first; *at; at = &(*at)->next)
        if ((*at)->service->share->served < (*best)->service->share->served)
            best = at;
    struct task *task = *best;
    *best = task->next;
    if (!*best)
        pool->last = best;
    task->service->share->served = ++pool->turn;
    return task;
}

/* Waits for a task; NULL when the pool closes. */
static struct task *
next_task(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (!pool->first && !pool->closing)
        pthread_cond_wait(&pool->asked, &pool->lock);
    struct task *task = pool->first ? take_task(pool) : NULL;
    pthread_mutex_unlock(&pool->lock);
    return task;
}

/* See backends_ask_fn; what dies here may live to do other work. */
static bool
ask_backend(void *arg, int gpu, const struct message *request, char **ret,
            struct api_problem *p)
{
    struct lane *lane = arg;
    char how[64] = "";
    if (!process_start(&lane->process, gpu, p))
        return false;
    enum outcome outcome = follow(lane, request, ignore, ret, p);
    if (outcome == DIED)
        outcome = end_dead(lane, how, p);
    return outcome == DONE ||
           (outcome == DIED && api_problem_set(p, API_WORKER_DIED, QDQ_AT_NOTHING, NULL,
                                               "the worker process %s", how));
}

static void
learn_backends(struct lane *lane)
{
    const struct service *service;
    struct api_problem problem = {0};
    if (!tenants_get(lane->pool->tenants, "", false, &service, &problem))
        return;
    set_service(lane, service);
    backends_learn(service->backends, lane->pool->settings, ask_backend, lane);
}

static void *
short_lane(void *arg)
{
    struct lane *lane = arg;
    struct pool *pool = lane->pool;
    learn_backends(lane);
    for (struct task *task; (task = next_task(pool));) {
        bool ok = run_task(lane, task);
        pthread_mutex_lock(&pool->lock);
        task->ok = ok;
        task->done = true;
        pthread_cond_broadcast(&pool->answered);
        pthread_mutex_unlock(&pool->lock);
    }
    process_end(&lane->process, false, NULL);
    return NULL;
}

bool
pool_ask(const struct service *service, const struct message *request, char **ret,
         struct api_problem *p)
{
    struct pool *pool = service->pool;
    struct task task = {.service = service, .request = request};
    pthread_mutex_lock(&pool->lock);
    *pool->last = &task;
    pool->last = &task.next;
    pthread_cond_signal(&pool->asked);
    while (!task.done)
        pthread_cond_wait(&pool->answered, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    if (task.ok)
        *ret = task.text;
    else if (!p->set)
        *p = task.problem;
    return task.ok;
}

/* --- opening and closing -------------------------------------------------- */

static bool
start_lane(struct pool *pool, struct lane *lane, void *(*run)(void *),
           struct api_problem *p)
{
    lane->pool = pool;
    lane->slot.device = GPUS_NONE;
    process_init(&lane->process, pool->settings, tenants_metrics(pool->tenants));
    lane->stage = -1;
    int rc = pthread_create(&lane->thread, NULL, run, lane);
    lane->started = rc == 0;
    if (rc)
        process_fini(&lane->process);
    return !rc || api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                  "starting a thread: %s", strerror(rc));
}

static void
join_lane(struct lane *lane)
{
    if (!lane->started)
        return;
    pthread_join(lane->thread, NULL);
    process_fini(&lane->process);
    lane->started = false;
}

bool
pool_open(struct tenants *tenants, const struct settings *settings, struct pool **ret,
          struct api_problem *p)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool)
        pool->lanes = calloc((size_t)settings->workers_count, sizeof *pool->lanes);
    if (!pool || !pool->lanes) {
        free(pool);
        return api_problem_set(p, API_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    }
    pool->tenants = tenants;
    pool->settings = settings;
    pool->n_lanes = (size_t)settings->workers_count;
    pool->last = &pool->first;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->asked, NULL);
    pthread_cond_init(&pool->answered, NULL);
    tenants_set_pool(tenants, pool);
    bool ok = start_lane(pool, &pool->short_lane, short_lane, p);
    for (size_t i = 0; ok && i < pool->n_lanes; i++) {
        pool->lanes[i].slot.process = &pool->lanes[i].process;
        ok = start_lane(pool, &pool->lanes[i], job_lane, p);
    }
    if (ok) {
        *ret = pool;
        return true;
    }
    tenants_drain(tenants);
    tenants_stop(tenants);
    pool_close(&pool);
    return false;
}

void
pool_join(struct pool *pool)
{
    for (size_t i = 0; i < pool->n_lanes; i++)
        join_lane(&pool->lanes[i]);
}

void
pool_close(struct pool **pool)
{
    struct pool *old = *pool;
    if (!old)
        return;
    pool_join(old);
    pthread_mutex_lock(&old->lock);
    old->closing = true;
    pthread_cond_signal(&old->asked);
    pthread_mutex_unlock(&old->lock);
    join_lane(&old->short_lane);
    pthread_cond_destroy(&old->asked);
    pthread_cond_destroy(&old->answered);
    pthread_mutex_destroy(&old->lock);
    free(old->lanes);
    free(old);
    *pool = NULL;
}
