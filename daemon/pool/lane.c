/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/lane.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/job.h"
#include "settings/settings.h"
#include "tenants/service.h"
#include "watch/metrics.h"
#include "qdq/quantize.h"

#include <string.h>

METRIC(workers_died, COUNTER, "qdqd_workers_died_total", &metric_unlabelled, ONE,
       "Worker processes that ended during work, or could not be started.");

/* --- the lane's thread ---------------------------------------------------- */

bool
lane_start(struct lane *lane, const struct settings *settings, struct metrics *metrics,
           void *(*run)(void *arg), void *arg, struct api_problem *p)
{
    lane->settings = settings;
    process_init(&lane->process, settings, metrics);
    int rc = pthread_create(&lane->thread, NULL, run, arg);
    lane->started = rc == 0;
    if (rc)
        process_fini(&lane->process);
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
    lane->started = false;
}

void
lane_set_service(struct lane *lane, const struct service *service)
{
    if (lane->service != service)
        process_end(&lane->process, false, NULL);
    lane->service = service;
}

/* --- back-off after failures ---------------------------------------------- */

/*
 * Limits of the back-off. A process that dies is mostly the fault of its job, so the
 * next process is started at once after the first few. More deaths in a row point to a
 * fault of the machine (a broken library, no memory, no descriptors). The lane then
 * waits longer and longer before it starts another process, so that these attempts do
 * not keep the machine busy.
 */
enum { FEW = 4, FIRST_WAIT_MS = 250, MOST_WAIT_MS = 5000, SLICE_MS = 50 };

bool
lane_is_failing(const struct lane *lane)
{
    return atomic_load(&lane->failures) >= FEW;
}

void
lane_count_failure(struct lane *lane)
{
    int n = atomic_fetch_add(&lane->failures, 1) + 1;
    metrics_add(lane->process.metrics, &metric_workers_died, 0, 1);
    if (lane_is_failing(lane))
        log_error("workers_fail", "in_a_row=%d", n);
}

void
lane_count_success(struct lane *lane)
{
    atomic_store(&lane->failures, 0);
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
    int64_t ms = FIRST_WAIT_MS;
    for (int i = FEW; i < atomic_load(&lane->failures) && ms < MOST_WAIT_MS; i++)
        ms *= 2;
    int64_t until = clock_steady_ms() + (ms < MOST_WAIT_MS ? ms : MOST_WAIT_MS);
    while (lane_is_failing(lane) && clock_steady_ms() < until && !must_end(lane))
        nanosleep(&slice, NULL);
}

/* --- one request and its answers ------------------------------------------ */

/* A time limit, counted from the start of the work, and the setting that it comes
   from. */
struct limit {
    const char *setting;
    int64_t seconds; /* 0: no limit */
};

/*
 * Returns the limit that applies in a stage (-1: before the first). A job's stages
 * before calibration have the limit of short work, so that a model or a script that
 * hangs there is ended early.
 */
static struct limit
limit_of_stage(const struct lane *lane, enum message_type type, int stage)
{
    const struct settings *s = lane->service->settings;
    int64_t each = lane->settings->workers_job_timeout;
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

/* Returns the milliseconds that are left; -1: there is no limit. */
static int
time_left(struct limit limit, int64_t began)
{
    int64_t left = began + limit.seconds * 1000 - clock_steady_ms();
    return !limit.seconds ? -1 : left < 0 ? 0 : (int)left;
}

static enum outcome
fail_timeout(struct lane *lane, struct limit limit, int stage, struct api_problem *p)
{
    api_problem_set(p, API_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                    "this took longer than %lld s (%s)%s%s", (long long)limit.seconds,
                    limit.setting, stage < 0 ? "" : ", in stage ",
                    stage < 0 ? "" : qdq_stage_name((enum qdq_stage)stage));
    process_end(&lane->process, true, NULL);
    return OUTCOME_FAILED;
}

enum outcome
lane_end_dead(struct lane *lane, char how[64], struct api_problem *p)
{
    process_end(&lane->process, true, how);
    if (!lane->process.spent)
        return OUTCOME_DIED;
    api_problem_set(p, API_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                    "this took more than %lld s of processor time (workers.cpu_time)",
                    (long long)lane->settings->workers_cpu_time);
    return OUTCOME_FAILED;
}

enum { CHECK_LIMIT_MS = 1000 };

/* Waits for the next message within the limit of a stage. The settings may change
   meanwhile; *ret_limit is the limit that applied last. */
static enum message_got
receive(struct lane *lane, enum message_type type, int stage, int64_t began,
        struct limit *ret_limit, struct message *ret)
{
    enum message_got got;
    bool again;
    do {
        *ret_limit = limit_of_stage(lane, type, stage);
        int left = time_left(*ret_limit, began);
        again = left < 0 || left > CHECK_LIMIT_MS;
        got = message_receive(lane->process.socket, again ? CHECK_LIMIT_MS : left, ret);
    } while (got == MESSAGE_TIMEOUT && again);
    return got;
}

static bool
answer_gpu(struct lane *lane, bool wanted)
{
    const struct message answer = {.type = MESSAGE_GPU, .body.gpu.wanted = wanted};
    return message_send(lane->process.socket, &answer);
}

/* Lends the GPU. The time until it is back does not count as time of the work. */
static bool
lend_gpu(struct lane *lane, const struct lane_events *events, int64_t *began)
{
    int64_t waited = 0;
    bool back = events->lend_gpu(events->arg, &waited);
    *began += waited;
    return back && answer_gpu(lane, false);
}

/* Handles a message that does not end the work. Returns false when the process broke
   the protocol or has ended, or when the work must be given up. */
static bool
handle_event(struct lane *lane, const struct message *message,
             const struct lane_events *events, int *stage, int64_t *began)
{
    switch (message->type) {
    case MESSAGE_PROGRESS:
        *stage = (int)message->body.progress.stage;
        if (events)
            events->on_progress(events->arg, &message->body.progress);
        return true;
    case MESSAGE_GPU_WANTED:
        return answer_gpu(lane, events && events->gpu_is_wanted(events->arg));
    case MESSAGE_GPU_LENT:
        return events && lend_gpu(lane, events, began);
    default:
        return false;
    }
}

enum outcome
lane_ask(struct lane *lane, const struct message *request,
         const struct lane_events *events, char **ret, struct api_problem *p)
{
    int64_t began = clock_steady_ms();
    int stage = -1;
    lane->process.jobs++;
    process_allow(&lane->process);
    if (!message_send(lane->process.socket, request))
        return OUTCOME_DIED;
    for (;;) {
        struct message answer;
        struct limit limit;
        enum message_got got =
            receive(lane, request->type, stage, began, &limit, &answer);
        if (got == MESSAGE_TIMEOUT)
            return fail_timeout(lane, limit, stage, p);
        if (got != MESSAGE_GOT)
            return OUTCOME_DIED;
        switch (answer.type) {
        case MESSAGE_RESULT:
            *ret = answer.text ? answer.text : strdup("");
            return *ret ? OUTCOME_DONE : OUTCOME_DIED;
        case MESSAGE_REJECTED:
            *p = answer.body.failed;
            *ret = answer.text ? answer.text : strdup("");
            return *ret ? OUTCOME_REJECTED : OUTCOME_DIED;
        case MESSAGE_FAILED:
            *p = answer.body.failed;
            return OUTCOME_FAILED;
        default:
            if (handle_event(lane, &answer, events, &stage, &began))
                break;
            message_fini(&answer);
            return OUTCOME_DIED;
        }
    }
}
