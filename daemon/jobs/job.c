/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "jobs/job.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/errno_code.h"
#include "base/lock.h"
#include "base/log.h"
#include "jobs/paces.h"
#include "settings/settings.h"
#include "watch/metrics.h"
#include "workers/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

METRIC_WORDS(how_labels, "how", [STORE_QUEUED] = "queued",
             [STORE_ANSWERED] = "answered", [STORE_JOINED] = "joined");
METRIC(submitted, COUNTER, "qdqd_jobs_submitted_total", &how_labels, ONE,
       "Jobs that were submitted: put in the queue, answered by the result of an "
       "earlier job, or joined to one on its way.");
METRIC(ended, COUNTER, "qdqd_jobs_ended_total", &metric_states, ONE,
       "Jobs that ended, without those that were answered or had joined.");
METRIC(failed, COUNTER, "qdqd_job_errors_total", &metric_codes, ONE,
       "Jobs that ended as failed.");
METRIC(requeued, COUNTER, "qdqd_jobs_requeued_total", &metric_unlabelled, ONE,
       "Jobs that went back to the queue because their worker ended.");

/* One who waits for a job's end, and lives on that thread's stack, or one who watches
   it. */
struct waiter {
    const char *id;
    pthread_cond_t cond;
    bool woken;
    int event; /* of one who watches: an eventfd; else -1 */
    struct waiter *next;
};

struct job_watch {
    struct waiter waiter;
    char id[JOB_ID_SIZE];
};

struct jobs {
    struct library *library;
    struct store *store;
    const struct settings *settings;
    const char *tenant;      /* as the log has it */
    struct metrics *metrics; /* NULL: nothing is counted */
    struct bell *bell;       /* a job was queued, or draining began */
    struct lock lock;
    /* guarded by lock: */
    struct job_slot *slots;
    struct waiter *waiters;
    bool draining, stopping;
    struct paces paces;
};

/* --- opening and closing -------------------------------------------------- */

bool
jobs_open(struct library *library, const struct settings *settings, struct bell *bell,
          struct jobs **ret, struct api_problem *p)
{
    int64_t recovered;
    if (!store_recover(library_store(library), &recovered, p))
        return false;
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs)
        return api_problem_set(p, API_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    jobs->library = library;
    jobs->store = library_store(library);
    jobs->settings = settings;
    jobs->bell = bell;
    jobs->tenant = "-";
    lock_init(&jobs->lock, LOCK_JOBS);
    if (recovered)
        log_info("jobs_recovered", "n=%lld", (long long)recovered);
    *ret = jobs;
    return true;
}

void
jobs_name(struct jobs *jobs, const char *tenant, struct metrics *metrics)
{
    jobs->tenant = *tenant ? tenant : "-";
    jobs->metrics = metrics;
}

void
jobs_close(struct jobs **jobs)
{
    if (!*jobs)
        return;
    lock_fini(&(*jobs)->lock);
    free(*jobs);
    *jobs = NULL;
}

/* --- helpers whose caller holds the lock ---------------------------------- */

static struct job_slot *
find_slot(struct jobs *jobs, const char *id)
{
    lock_assert_held(&jobs->lock);
    struct job_slot *slot = jobs->slots;
    while (slot && strcmp(slot->id, id) != 0)
        slot = slot->next;
    return slot;
}

static void
remove_slot(struct jobs *jobs, struct job_slot *slot)
{
    lock_assert_held(&jobs->lock);
    struct job_slot **at = &jobs->slots;
    while (*at != slot) {
        QDQD_CHECK(*at);
        at = &(*at)->next;
    }
    *at = slot->next;
}

static bool
concerns(const struct waiter *waiter, const char *id)
{
    return !id || strcmp(waiter->id, id) == 0;
}

/* Tells those who watch `id` that its state has changed; NULL: all. */
static void
tell(struct jobs *jobs, const char *id)
{
    lock_assert_held(&jobs->lock);
    for (struct waiter *w = jobs->waiters; w; w = w->next)
        if (w->event >= 0 && concerns(w, id))
            eventfd_write(w->event, 1);
}

/* The same, and wakes those who wait. */
static void
wake(struct jobs *jobs, const char *id)
{
    tell(jobs, id);
    for (struct waiter *w = jobs->waiters; w; w = w->next) {
        if (w->event >= 0 || !concerns(w, id))
            continue;
        w->woken = true;
        pthread_cond_signal(&w->cond);
    }
}

/* A job has ended, and with it those who joined it; or one of those may run now. */
static void
tell_ended(struct jobs *jobs, const char *id, const struct store_ended *ended)
{
    lock_assert_held(&jobs->lock);
    wake(jobs, ended->joined ? NULL : id);
    if (ended->joined)
        bell_ring(jobs->bell);
}

static void
give_up(struct job_slot *slot)
{
    slot->unwanted = true;
    process_kill(slot->process);
}

static bool
check_room(struct jobs *jobs, struct api_problem *p)
{
    lock_assert_held(&jobs->lock);
    int64_t length;
    if (jobs->draining)
        return api_problem_set(p, API_DRAINING, QDQ_AT_NOTHING, NULL,
                               "the daemon is stopping and takes no jobs");
    if (!store_queue_length(jobs->store, &length, p))
        return false;
    return length < jobs->settings->queue_max ||
           api_problem_set(p, API_QUEUE_FULL, QDQ_AT_NOTHING, NULL,
                           "%lld jobs wait already", (long long)length);
}

/* --- for those who ask ---------------------------------------------------- */

bool
jobs_check_room(struct jobs *jobs, struct api_problem *p)
{
    lock_acquire(&jobs->lock);
    bool ok = check_room(jobs, p);
    lock_release(&jobs->lock);
    return ok;
}

bool
jobs_is_draining(struct jobs *jobs)
{
    lock_acquire(&jobs->lock);
    bool draining = jobs->draining;
    lock_release(&jobs->lock);
    return draining;
}

/* Not to be guessed, and short enough for a URL. */
static bool
make_id(char id[JOB_ID_SIZE], struct api_problem *p)
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return api_problem_set(p, API_INTERNAL, QDQ_AT_NOTHING, NULL,
                               "no random bytes: %s", strerror(errno));
    id[0] = 'j';
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 1 + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

bool
jobs_find_key(struct jobs *jobs, const char *key, const char *asked,
              char id[JOB_ID_SIZE], bool *ret_any, struct api_problem *p)
{
    char before[DIGEST_SIZE];
    return store_job_of_key(jobs->store, key, id, before, ret_any, p) &&
           (!*ret_any || !asked || !strcmp(asked, before) ||
            api_problem_set(p, API_IDEMPOTENCY_MISMATCH, QDQ_AT_NOTHING, NULL,
                            "the Idempotency-Key belongs to %s, of which something "
                            "else was asked",
                            id));
}

bool
jobs_submit(struct jobs *jobs, const struct store_job *request,
            const struct store_asking *asking, char id[JOB_ID_SIZE],
            struct api_problem *p)
{
    static const char *const events[] = {[STORE_QUEUED] = "job_queued",
                                         [STORE_ANSWERED] = "job_answered",
                                         [STORE_JOINED] = "job_joined"};
    struct store_job job = *request;
    enum store_added added;
    bool known = false;
    job.created_at = clock_wall_ms();
    if (!make_id(job.id, p))
        return false;
    lock_acquire(&jobs->lock);
    bool ok =
        !asking->key || jobs_find_key(jobs, asking->key, asking->asked, id, &known, p);
    if (ok && !known) {
        ok = check_room(jobs, p) && store_job_add(jobs->store, &job, asking, &added, p);
        if (ok && added == STORE_QUEUED)
            bell_ring(jobs->bell);
    }
    lock_release(&jobs->lock);
    /* A known one may be on its way to the disk, too. */
    if (!ok || !store_sync(jobs->store, p))
        return false;
    if (known)
        return true;
    memcpy(id, job.id, sizeof job.id);
    metrics_add(jobs->metrics, &metric_submitted, added, 1);
    log_info(events[added], "job=%s tenant=%s", id, jobs->tenant);
    return true;
}

void
jobs_view_progress(struct jobs *jobs, const char *id, struct job_view *ret)
{
    lock_acquire(&jobs->lock);
    const struct job_slot *slot = find_slot(jobs, id);
    if (slot) {
        ret->stage = slot->stage;
        ret->done = slot->done;
        ret->total = slot->total;
        ret->eta_s = api_eta_left(&slot->eta, clock_steady_ms());
        ret->waits_for_gpu = slot->lends;
    }
    lock_release(&jobs->lock);
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
                         gpus_are_taken(&jobs->bell->gpus) && row->wants_gpu;
    if (row->state == API_JOB_RUNNING)
        jobs_view_progress(jobs, row->id, &view);
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

static void
add_waiter(struct jobs *jobs, struct waiter *waiter)
{
    lock_acquire(&jobs->lock);
    waiter->next = jobs->waiters;
    jobs->waiters = waiter;
    lock_release(&jobs->lock);
}

static void
remove_waiter(struct jobs *jobs, struct waiter *waiter)
{
    lock_acquire(&jobs->lock);
    struct waiter **at = &jobs->waiters;
    while (*at != waiter) {
        QDQD_CHECK(*at);
        at = &(*at)->next;
    }
    *at = waiter->next;
    lock_release(&jobs->lock);
}

/* May the job of `id` still change? While draining only one that runs. The caller holds
   the lock. */
static bool
may_change(struct jobs *jobs, const char *id)
{
    lock_assert_held(&jobs->lock);
    return !jobs->draining || find_slot(jobs, id);
}

/* Waits until somebody wakes this waiter. False: there is no use in waiting longer. */
static bool
wait_for_wake(struct jobs *jobs, struct waiter *waiter, int64_t deadline)
{
    bool useful = true;
    lock_acquire(&jobs->lock);
    while (useful && !waiter->woken)
        useful = may_change(jobs, waiter->id) &&
                 lock_wait_until(&jobs->lock, &waiter->cond, deadline);
    waiter->woken = false;
    lock_release(&jobs->lock);
    return useful;
}

/*
 * The waiter is in the list before the store is asked, so an end that comes in between
 * is not missed.
 */
bool
jobs_wait(struct jobs *jobs, const char *id, int seconds, struct job_view *ret,
          struct api_problem *p)
{
    if (seconds <= 0)
        return jobs_get(jobs, id, ret, p);
    int64_t deadline = clock_steady_ms() + (int64_t)seconds * 1000;
    struct waiter waiter = {.id = id, .event = -1};
    lock_cond_init(&waiter.cond);
    add_waiter(jobs, &waiter);
    bool ok, useful = true;
    while ((ok = jobs_get(jobs, id, ret, p)) && useful &&
           !api_job_state_ended(ret->row.state)) {
        job_view_fini(ret);
        useful = wait_for_wake(jobs, &waiter, deadline);
    }
    remove_waiter(jobs, &waiter);
    pthread_cond_destroy(&waiter.cond);
    return ok;
}

/* --- for those who watch -------------------------------------------------- */

bool
jobs_watch(struct jobs *jobs, const char *id, struct job_watch **ret,
           struct api_problem *p)
{
    struct job_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return api_problem_set(p, API_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    snprintf(watch->id, sizeof watch->id, "%s", id);
    watch->waiter.id = watch->id;
    watch->waiter.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->waiter.event < 0) {
        int saved = errno;
        free(watch);
        return api_problem_set(p, errno_code(saved), QDQ_AT_NOTHING, NULL,
                               "watching a job: %s", strerror(saved));
    }
    add_waiter(jobs, &watch->waiter);
    *ret = watch;
    return true;
}

int
job_watch_fd(const struct job_watch *watch)
{
    return watch->waiter.event;
}

bool
job_watch_clear(struct jobs *jobs, struct job_watch *watch)
{
    eventfd_t told;
    (void)eventfd_read(watch->waiter.event, &told);
    lock_acquire(&jobs->lock);
    bool useful = may_change(jobs, watch->id);
    lock_release(&jobs->lock);
    return useful;
}

void
jobs_unwatch(struct jobs *jobs, struct job_watch **watch)
{
    if (!*watch)
        return;
    remove_waiter(jobs, &(*watch)->waiter);
    close((*watch)->waiter.event);
    free(*watch);
    *watch = NULL;
}

/* --- ending from outside -------------------------------------------------- */

/*
 * First the record, then the process: a lane that takes the job in between has put it
 * into its slot under the lock, so it is found here.
 */
bool
jobs_cancel(struct jobs *jobs, const char *id, struct api_problem *p)
{
    const struct store_end end = {.state = API_JOB_CANCELLED};
    struct store_job row;
    struct store_ended ended = {0};
    if (!store_job_get(jobs->store, id, &row, p))
        return false;
    enum api_job_state state = row.state;
    store_job_fini(&row);
    lock_acquire(&jobs->lock);
    bool ok = store_job_end(jobs->store, id, API_JOB_QUEUED, &end, clock_wall_ms(),
                            &ended, p);
    if (ok && !ended.was)
        ok = store_job_end(jobs->store, id, API_JOB_RUNNING, &end, clock_wall_ms(),
                           &ended, p);
    struct job_slot *slot = find_slot(jobs, id);
    if (ok && ended.was && slot)
        give_up(slot);
    if (ok && ended.was)
        tell_ended(jobs, id, &ended);
    lock_release(&jobs->lock);
    ok = ok && store_sync(jobs->store, p);
    if (ok && ended.was) {
        metrics_add(jobs->metrics, &metric_ended, API_JOB_CANCELLED, 1);
        log_info("job_cancelled", "job=%s tenant=%s", id, jobs->tenant);
    }
    if (!ok || ended.was || state == API_JOB_CANCELLED)
        return ok;
    return api_problem_set(p, API_ENDED, QDQ_AT_NOTHING, NULL,
                           "the job has ended already");
}

void
job_view_fini(struct job_view *view)
{
    store_job_fini(&view->row);
}

/* --- for the lanes -------------------------------------------------------- */

/*
 * A store that cannot be written (a full disk) is tried again after a while. False: the
 * daemon is stopping, and the next one will find the job as it stands in the store.
 */
static bool
rest(struct jobs *jobs, const struct api_problem *problem)
{
    const struct timespec a_while = {1, 0};
    char quoted[LOG_QUOTED];
    log_error("store_failed", "detail=%s", log_quote(quoted, problem->detail));
    nanosleep(&a_while, NULL);
    return !jobs_is_draining(jobs);
}

/* A lane is idle, and no job can run without a GPU: what waits all the same wants one. */
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
    int device = gpus_take(gpus);
    *ret_any = false;
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
        memcpy(slot->id, ret->id, sizeof slot->id);
        slot->next = jobs->slots;
        jobs->slots = slot;
        snprintf(slot->model, sizeof slot->model, "%s", ret->model);
        api_eta_start(&slot->eta, paces_of(&jobs->paces, slot->model));
        tell(jobs, slot->id);
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
    api_eta_tell(&slot->eta, progress, clock_steady_ms());
    lock_release(&jobs->lock);
}

bool
jobs_is_unwanted(struct jobs *jobs, const struct job_slot *slot)
{
    lock_acquire(&jobs->lock);
    bool unwanted = slot->unwanted;
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

/*
 * The slot's job has left it: tells who waits, when that is sure to last, and the other
 * lanes.
 */
static void
leave(struct jobs *jobs, struct job_slot *slot, const struct store_ended *ended)
{
    struct api_problem problem = {0};
    char id[JOB_ID_SIZE], quoted[LOG_QUOTED];
    if (!store_sync(jobs->store, &problem))
        log_error("store_failed", "detail=%s", log_quote(quoted, problem.detail));
    lock_acquire(&jobs->lock);
    memcpy(id, slot->id, sizeof id);
    paces_add(&jobs->paces, slot->model, &slot->eta.pace);
    if (slot->device != GPUS_NONE) {
        gpus_give_back(&jobs->bell->gpus, slot->device);
        bell_ring(jobs->bell);
    }
    slot->device = GPUS_NONE;
    if (slot->lends)
        gpus_forgo(&jobs->bell->gpus, &slot->turn);
    slot->lends = false;
    slot->id[0] = '\0';
    slot->unwanted = false;
    slot->stage = NULL;
    slot->done = slot->total = 0;
    remove_slot(jobs, slot);
    tell_ended(jobs, id, ended);
    lock_release(&jobs->lock);
}

/* What was made cannot be kept. Where that may pass, it is made once more. */
static void
not_kept(struct jobs *jobs, struct job_slot *slot, const struct api_problem *problem)
{
    if (problem->code == API_UNAVAILABLE)
        jobs_put_back(jobs, slot);
    else
        jobs_fail(jobs, slot, problem);
}

void
jobs_succeed(struct jobs *jobs, struct job_slot *slot, const struct job_result *result)
{
    struct store_ended ended;
    struct api_problem problem = {0};
    if (!library_job_end(jobs->library, slot->id, result, NULL, &ended, &problem)) {
        not_kept(jobs, slot, &problem);
        return;
    }
    if (ended.was) {
        metrics_add(jobs->metrics, &metric_ended, API_JOB_SUCCEEDED, 1);
        log_info("job_succeeded", "job=%s tenant=%s", slot->id, jobs->tenant);
    }
    leave(jobs, slot, &ended);
}

static void
count_failed(struct jobs *jobs, const struct api_problem *problem)
{
    metrics_add(jobs->metrics, &metric_ended, API_JOB_FAILED, 1);
    metrics_add(jobs->metrics, &metric_failed, problem->code, 1);
}

void
jobs_reject(struct jobs *jobs, struct job_slot *slot, const struct job_result *result,
            const struct api_problem *problem)
{
    struct store_ended ended;
    char quoted[LOG_QUOTED];
    struct api_problem store_problem = {0};
    if (!library_job_end(jobs->library, slot->id, result, problem, &ended,
                         &store_problem)) {
        not_kept(jobs, slot, &store_problem);
        return;
    }
    if (ended.was) {
        count_failed(jobs, problem);
        log_info("job_rejected", "job=%s tenant=%s detail=%s", slot->id, jobs->tenant,
                 log_quote(quoted, problem->detail));
    }
    leave(jobs, slot, &ended);
}

void
jobs_fail(struct jobs *jobs, struct job_slot *slot, const struct api_problem *problem)
{
    const struct store_end end = {.state = API_JOB_FAILED, .error = problem};
    struct api_problem store_problem = {0};
    struct store_ended ended = {0};
    char quoted[LOG_QUOTED];
    while (!store_job_end(jobs->store, slot->id, API_JOB_RUNNING, &end, clock_wall_ms(),
                          &ended, &store_problem) &&
           rest(jobs, &store_problem))
        store_problem = (struct api_problem){0};
    if (ended.was) {
        count_failed(jobs, problem);
        log_info("job_failed", "job=%s tenant=%s code=%s detail=%s", slot->id,
                 jobs->tenant, api_problem_slug(problem->code),
                 log_quote(quoted, problem->detail));
    }
    leave(jobs, slot, &ended);
}

/* Back to the queue, unless it was cancelled meanwhile. */
static void
requeue(struct jobs *jobs, struct job_slot *slot, int charge)
{
    struct api_problem store_problem = {0};
    bool was = false;
    while (!store_job_requeue(jobs->store, slot->id, charge, &was, &store_problem) &&
           rest(jobs, &store_problem))
        store_problem = (struct api_problem){0};
    if (was) {
        metrics_add(jobs->metrics, &metric_requeued, 0, 1);
        log_info("job_requeued", "job=%s tenant=%s", slot->id, jobs->tenant);
    }
    leave(jobs, slot, &(struct store_ended){0});
}

void
jobs_put_back(struct jobs *jobs, struct job_slot *slot)
{
    requeue(jobs, slot, 0);
}

void
jobs_lost(struct jobs *jobs, struct job_slot *slot, const struct store_job *job,
          const char *how)
{
    lock_acquire(&jobs->lock);
    bool stopping = jobs->stopping;
    lock_release(&jobs->lock);
    if (stopping) {
        requeue(jobs, slot, 0);
    } else if (job->attempts + 1 < jobs->settings->workers_attempts) {
        requeue(jobs, slot, 1);
    } else {
        struct api_problem problem = {0};
        api_problem_set(&problem, API_WORKER_DIED, QDQ_AT_NOTHING, NULL,
                        "the worker process %s, in attempt %lld of %lld", how,
                        (long long)job->attempts + 1,
                        (long long)jobs->settings->workers_attempts);
        jobs_fail(jobs, slot, &problem);
    }
}

/* --- the end -------------------------------------------------------------- */

void
jobs_drain(struct jobs *jobs)
{
    lock_acquire(&jobs->lock);
    jobs->draining = true;
    wake(jobs, NULL);
    bell_ring(jobs->bell);
    lock_release(&jobs->lock);
}

bool
jobs_are_idle(struct jobs *jobs)
{
    lock_acquire(&jobs->lock);
    bool idle = !jobs->slots;
    lock_release(&jobs->lock);
    return idle;
}

void
jobs_stop(struct jobs *jobs)
{
    lock_acquire(&jobs->lock);
    jobs->stopping = true;
    for (struct job_slot *slot = jobs->slots; slot; slot = slot->next)
        give_up(slot);
    lock_release(&jobs->lock);
}
