/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/lane.h"
#include "pool/judging.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/job.h"
#include "settings/settings.h"
#include "tenants/service.h"
#include "watch/metrics.h"
#include "qdq/quantize.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

METRIC(workers_died, COUNTER, "qdqd_workers_died_total", &metric_unlabelled, ONE,
       "Worker processes that ended during work, or could not be started.");

/* --- the lane's thread ---------------------------------------------------- */

bool
lane_start(struct lane *lane, const struct settings *settings, struct metrics *metrics,
           void *(*run)(void *arg), void *arg, struct api_problem *p)
{
    lane->settings = settings;
    process_init(&lane->process, settings, metrics);
    process_init(&lane->judge, settings, metrics);
    lane->judge.role = "judge";
    int rc = pthread_create(&lane->thread, NULL, run, arg);
    lane->started = rc == 0;
    if (rc) {
        process_fini(&lane->process);
        process_fini(&lane->judge);
    }
    return !rc || api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                  "starting a thread: %s", strerror(rc));
}

void
lane_join(struct lane *lane)
{
    if (!lane->started)
        return;
    pthread_join(lane->thread, NULL);
    process_fini(&lane->process);
    process_fini(&lane->judge);
    lane->started = false;
}

void
lane_end(struct lane *lane)
{
    process_end(&lane->process, false, NULL);
    process_end(&lane->judge, false, NULL);
}

void
lane_set_service(struct lane *lane, const struct service *service)
{
    if (lane->service != service)
        lane_end(lane);
    lane->service = service;
}

/* --- back-off after failures ---------------------------------------------- */

/*
 * Limits of the back-off. A process that dies during work is mostly the fault of that work,
 * so the next process is started at once after the first few. After more deaths in a row
 * the tenant's further work waits longer and longer; other tenants' work does not. A
 * process that does not reach its first work is a fault of the machine (a broken library,
 * no memory, no descriptors): then the lane waits, whose work it may be.
 */
enum {
    FAILURES_WITHOUT_WAIT = 4,
    FIRST_WAIT_MS = 250,
    MOST_WAIT_MS = 5000,
    SLICE_MS = 50
};

static int64_t
wait_after(int failures)
{
    int64_t ms = FIRST_WAIT_MS;
    for (int i = FAILURES_WITHOUT_WAIT; i < failures && ms < MOST_WAIT_MS; i++)
        ms *= 2;
    return failures < FAILURES_WITHOUT_WAIT ? 0 : ms < MOST_WAIT_MS ? ms : MOST_WAIT_MS;
}

bool
lane_is_failing(const struct lane *lane)
{
    return atomic_load(&lane->failures) >= FAILURES_WITHOUT_WAIT;
}

static void
count_death(const struct service *service)
{
    struct pool_share *share = service->share;
    int n = atomic_fetch_add(&share->deaths, 1) + 1;
    int64_t ms = wait_after(n);
    if (!ms)
        return;
    atomic_store(&share->paused_until, clock_steady_ms() + ms);
    log_error("tenant_paused", "tenant=\"%s\" in_a_row=%d ms=%lld", service->tenant, n,
              (long long)ms);
}

void
lane_count_failure(struct lane *lane)
{
    metrics_add(lane->process.metrics, &metric_workers_died, 0, 1);
    if (lane->process.ready) {
        count_death(lane->service);
        return;
    }
    int n = atomic_fetch_add(&lane->failures, 1) + 1;
    if (lane_is_failing(lane))
        log_error("workers_fail", "in_a_row=%d", n);
}

void
lane_count_success(struct lane *lane)
{
    atomic_store(&lane->failures, 0);
    lane_count_finished(lane->service);
}

void
lane_count_unfinished(const struct service *service)
{
    count_death(service);
}

void
lane_count_finished(const struct service *service)
{
    atomic_store(&service->share->deaths, 0);
    atomic_store(&service->share->paused_until, 0);
}

static bool
must_end(struct lane *lane)
{
    return atomic_load(&lane->closing) || jobs_is_draining(lane->service->jobs);
}

void
lane_back_off(struct lane *lane)
{
    const struct timespec slice = {0, SLICE_MS * 1000000};
    int64_t until = clock_steady_ms() + wait_after(atomic_load(&lane->failures));
    while (clock_steady_ms() < until && !must_end(lane))
        nanosleep(&slice, NULL);
}

/* --- one request and its answers ------------------------------------------ */

/* A time limit, counted from the start of the work, and the setting that it comes
   from. */
struct limit {
    const char *setting;
    int64_t seconds; /* 0: no limit */
};

static struct limit
short_limit(const struct lane *lane)
{
    return (struct limit){"workers.short_timeout",
                          lane->service->settings->workers_short_timeout};
}

/* Returns how long a message may take from its first byte to its last, in ms. */
static int
message_time(const struct lane *lane)
{
    return (int)short_limit(lane).seconds * 1000;
}

/*
 * Returns the limit that applies to the work. Until a job first runs its model on samples
 * it has the limit of short work, so that a model or a script that hangs before is ended
 * early.
 */
static struct limit
limit_of_work(const struct lane *lane, enum message_type type, bool runs_model)
{
    const struct settings *s = lane->service->settings;
    int64_t each = lane->settings->workers_job_timeout;
    const struct limit brief = short_limit(lane);
    const struct limit whole = {s->workers_job_timeout == each
                                    ? "workers.job_timeout"
                                    : "the tenant's job_timeout",
                                s->workers_job_timeout};
    if (type != MESSAGE_QUANTIZE)
        return brief;
    if (runs_model || (whole.seconds && whole.seconds < brief.seconds))
        return whole;
    return brief;
}

/* Returns the milliseconds that are left; -1: there is no limit. */
static int
time_left(struct limit limit, int64_t began)
{
    int64_t left = began + limit.seconds * 1000 - clock_steady_ms();
    return !limit.seconds ? -1 : left < 0 ? 0 : (int)left;
}

/* Ends the worker at once, and the process that judges for it. */
static void
end_both(struct lane *lane, char how[64])
{
    process_end(&lane->process, true, how);
    process_end(&lane->judge, true, NULL);
}

static enum outcome
fail_timeout(struct lane *lane, struct limit limit, int stage, struct api_problem *p)
{
    api_problem_set(p, API_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                    "this took longer than %lld s (%s)%s%s", (long long)limit.seconds,
                    limit.setting, stage < 0 ? "" : ", in stage ",
                    stage < 0 ? "" : qdq_stage_name((enum qdq_stage)stage));
    end_both(lane, NULL);
    return OUTCOME_FAILED;
}

enum outcome
lane_end_dead(struct lane *lane, char how[64], struct api_problem *p)
{
    end_both(lane, how);
    if (!lane->process.spent)
        return OUTCOME_DIED;
    api_problem_set(p, API_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                    "this took more than %lld s of processor time (workers.cpu_time)",
                    (long long)lane->settings->workers_cpu_time);
    return OUTCOME_FAILED;
}

enum { CHECK_LIMIT_MS = 1000 };

/* The state of one request. */
struct asking {
    struct lane *lane;
    enum message_type type;
    const struct lane_events *events;
    int stage;       /* -1: before the first */
    bool runs_model; /* a stage has begun to run the model on samples */
    int64_t began;   /* steady clock in ms */
    /* when the process, and the one that judges for it, were first seen stopped; 0: they run */
    int64_t stopped_since, judge_stopped_since;
};

/* Returns whether somebody has stopped a process for longer than short work may take: it would
   tell neither progress nor an end. */
static bool
is_stuck(const struct lane *lane, const struct process *process, int64_t *since)
{
    int64_t now = clock_steady_ms();
    if (!process_is_stopped(process))
        *since = 0;
    else if (!*since)
        *since = now;
    return *since && now - *since >= message_time(lane);
}

/* Kills a judge that is stuck. Its own timer would end it only when it runs again, and the
   worker waits for its answer; the worker gets another one. */
static void
end_stuck_judge(struct asking *asking)
{
    struct lane *lane = asking->lane;
    if (is_stuck(lane, &lane->judge, &asking->judge_stopped_since))
        process_kill(&lane->judge);
}

/* Waits for the next message within the limit of the work. The settings may change
   meanwhile: *ret_limit is the limit that applied at last. */
static enum message_got
receive(struct asking *asking, struct limit *ret_limit, struct message *ret)
{
    struct lane *lane = asking->lane;
    enum message_got got;
    bool again;
    do {
        *ret_limit = limit_of_work(lane, asking->type, asking->runs_model);
        int left = time_left(*ret_limit, asking->began);
        again = left < 0 || left > CHECK_LIMIT_MS;
        got = message_receive(lane->process.socket, again ? CHECK_LIMIT_MS : left,
                              message_time(lane), ret);
        process_relay(&lane->process);
        if (got == MESSAGE_TIMEOUT && atomic_load(&lane->closing))
            return MESSAGE_EOF;
        end_stuck_judge(asking);
        if (got == MESSAGE_TIMEOUT &&
            is_stuck(lane, &lane->process, &asking->stopped_since)) {
            *ret_limit = short_limit(lane);
            again = false;
        }
    } while (got == MESSAGE_TIMEOUT && again);
    if (got == MESSAGE_OVERDUE)
        *ret_limit = short_limit(lane);
    return got;
}

/* Sends a message to the process within the time of a message. */
static bool
send_within(struct lane *lane, const struct message *message)
{
    return message_send(lane->process.socket, message_time(lane), message);
}

static bool
answer_gpu(struct lane *lane, bool wanted)
{
    const struct message message = {.type = MESSAGE_GPU, .body.gpu.wanted = wanted};
    return send_within(lane, &message);
}

/* Lends the GPU. The time until it is back does not count as time of the work. */
static bool
lend_gpu(struct asking *asking)
{
    int64_t waited = 0;
    bool back = asking->events->lend_gpu(asking->events->arg, &waited);
    asking->began += waited;
    return back && answer_gpu(asking->lane, false);
}

static bool
answer_file(struct lane *lane)
{
    int fd = process_open_temporary(&lane->process);
    const struct message message = {
        .type = MESSAGE_FILE, .fds = {fd}, .n_fds = fd >= 0 ? 1 : 0};
    bool sent = send_within(lane, &message);
    if (fd >= 0)
        close(fd);
    return sent;
}

/* Returns whether the work runs the model on samples from this stage on. Smoothing does so
   where it has something to do, and then counts the samples. */
static bool
runs_model(const struct message_progress *progress)
{
    return progress->stage >= QDQ_STAGE_CALIBRATE ||
           (progress->stage == QDQ_STAGE_SMOOTH && progress->total > 0);
}

/* Handles a message that does not end the work. Returns false when the process broke
   the protocol or is gone, or when its work must be given up. */
static bool
handle_event(struct asking *asking, const struct message *message)
{
    struct lane *lane = asking->lane;
    const struct lane_events *events = asking->events;
    switch (message->type) {
    case MESSAGE_PROGRESS:
        asking->stage = (int)message->body.progress.stage;
        asking->runs_model |= runs_model(&message->body.progress);
        if (events)
            events->on_progress(events->arg, &message->body.progress);
        return true;
    case MESSAGE_NOTE:
        process_note(&lane->process, message);
        return true;
    case MESSAGE_FILE_WANTED:
        return answer_file(lane);
    case MESSAGE_JUDGE_WANTED:
        return judging_answer(lane, message->text ? message->text : "",
                              message->body.judge_wanted.again, message_time(lane));
    case MESSAGE_GPU_WANTED:
        return answer_gpu(lane, events && events->gpu_is_wanted(events->arg));
    case MESSAGE_GPU_LENT:
        return events && lend_gpu(asking);
    default:
        return false;
    }
}

enum outcome
lane_start_process(struct lane *lane, int gpu, struct api_problem *p)
{
    if (!judging_tell_worker(lane)) {
        api_problem_no_memory(p);
        return OUTCOME_FAILED;
    }
    enum process_started started = process_start(&lane->process, gpu, p);
    return started == PROCESS_RUNS   ? OUTCOME_DONE
           : started == PROCESS_DIED ? OUTCOME_DIED
                                     : OUTCOME_FAILED;
}

/* Takes the last answer to a request; its text, if any, becomes *ret. */
static enum outcome
take_answer(const struct message *last, char **ret, struct api_problem *p)
{
    if (last->type != MESSAGE_RESULT)
        *p = last->body.failed;
    if (last->type == MESSAGE_FAILED)
        return OUTCOME_FAILED;
    *ret = last->text ? last->text : strdup("");
    if (!*ret)
        return OUTCOME_DIED;
    return last->type == MESSAGE_RESULT ? OUTCOME_DONE : OUTCOME_REJECTED;
}

enum outcome
lane_ask(struct lane *lane, const struct message *request,
         const struct lane_events *events, char **ret, struct api_problem *p)
{
    struct asking asking = {.lane = lane,
                            .type = request->type,
                            .events = events,
                            .stage = -1,
                            .began = clock_steady_ms()};
    lane->process.jobs++;
    process_allow(&lane->process);
    if (!send_within(lane, request))
        return errno == ETIMEDOUT ? fail_timeout(lane, short_limit(lane), -1, p)
                                  : OUTCOME_DIED;
    for (;;) {
        struct message message;
        struct limit limit;
        enum message_got got = receive(&asking, &limit, &message);
        if (got == MESSAGE_TIMEOUT || got == MESSAGE_OVERDUE)
            return fail_timeout(lane, limit, asking.stage, p);
        if (got != MESSAGE_GOT)
            return OUTCOME_DIED;
        if (message.type == MESSAGE_RESULT || message.type == MESSAGE_REJECTED ||
            message.type == MESSAGE_FAILED)
            return take_answer(&message, ret, p);
        bool goes_on = handle_event(&asking, &message);
        message_fini(&message);
        if (!goes_on)
            return OUTCOME_DIED;
    }
}
