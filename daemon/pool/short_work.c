/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/short_work.h"
#include "base/lock.h"
#include "pool/judging.h"
#include "pool/lane.h"
#include "settings/gpu_list.h"
#include "settings/settings.h"
#include "tenants/tenants.h"
#include "workers/backends.h"

#include <stdlib.h>

/* Lanes that keep their process when there is nothing to do. */
enum { WARM_LANES = 2 };
/* Pieces of one tenant's short work at the same time. */
enum { MOST_OF_TENANT = 2 };

/* A request that waits, runs or is done; lives on the asker's stack. */
struct task {
    const struct service *service;
    const struct message *request;
    bool done, ok;
    char *text;
    struct api_problem problem;
    struct task *next;
};

struct short_lane {
    struct lane lane;
    struct short_work *work;
    /* guarded by the lock: */
    struct task *task;          /* the task that runs, or is to run; NULL: none */
    const struct service *last; /* the tenant of the lane's process; NULL: none */
};

struct short_work {
    const struct settings *settings;
    struct tenants *tenants;
    struct lock lock;
    pthread_cond_t
        changed; /* a lane got a task, the lanes are to end, or time passed */
    pthread_cond_t answered; /* a task is done */
    /* guarded by lock: */
    struct task *first, **last; /* the tasks that wait, oldest first */
    uint64_t turn;
    bool stopping;            /* no task is begun any more */
    size_t n;                 /* lanes that were started */
    struct short_lane *lanes; /* workers.short_count */
};

/* --- whose turn it is ------------------------------------------------------ */

static bool
is_idle(const struct short_lane *lane)
{
    return !lane->task;
}

/* Returns how many lanes are idle or can still be started. */
static size_t
count_free(const struct short_work *work)
{
    lock_assert_held(&work->lock);
    size_t n = (size_t)work->settings->workers_short_count - work->n;
    for (size_t i = 0; i < work->n; i++)
        n += is_idle(&work->lanes[i]);
    return n;
}

/* Returns whether a task may begin. The last free lane is kept for tenants for whom none
   works. */
static bool
may_begin(const struct short_work *work, const struct task *task)
{
    const struct pool_share *share = task->service->share;
    return !pool_share_is_paused(task->service->share) &&
           (share->running == 0 ||
            (share->running < MOST_OF_TENANT && count_free(work) > 1));
}

/* Returns whether the first of two tasks comes before the second one: its tenant has less
   that runs, or was served longer ago. */
static bool
comes_before(const struct task *a, const struct task *b)
{
    const struct pool_share *one = a->service->share, *other = b->service->share;
    return one->running != other->running ? one->running < other->running
                                          : one->served < other->served;
}

/* Removes the next task from the queue; NULL when none may begin. */
static struct task *
pop_task(struct short_work *work)
{
    lock_assert_held(&work->lock);
    struct task **best = NULL;
    for (struct task **at = &work->first; *at; at = &(*at)->next)
        if (may_begin(work, *at) && (!best || comes_before(*at, *best)))
            best = at;
    if (!best)
        return NULL;
    struct task *task = *best;
    *best = task->next;
    if (!*best)
        work->last = best;
    task->next = NULL;
    task->service->share->served = ++work->turn;
    task->service->share->running++;
    return task;
}

/* --- one task ------------------------------------------------------------- */

static bool
is_stopping(struct short_work *work)
{
    lock_acquire(&work->lock);
    bool stopping = work->stopping;
    lock_release(&work->lock);
    return stopping;
}

static bool
fail_stopping(struct api_problem *p)
{
    return api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "the daemon is stopping");
}

/* Waits until the tenant's pause after deaths is over. */
static void
wait_for_pause(struct short_work *work, const struct service *service)
{
    lock_acquire(&work->lock);
    while (!work->stopping && pool_share_is_paused(service->share))
        lock_wait_until(&work->lock, &work->changed,
                        atomic_load(&service->share->paused_until));
    lock_release(&work->lock);
}

static bool
run_task(struct short_lane *short_lane, struct task *task)
{
    struct lane *lane = &short_lane->lane;
    const struct settings *settings = lane->settings;
    char how[64] = "";
    lane_set_service(lane, task->service);
    for (int64_t attempt = 1; attempt <= settings->workers_attempts; attempt++) {
        wait_for_pause(short_lane->work, task->service);
        lane_back_off(lane);
        if (is_stopping(short_lane->work))
            return fail_stopping(&task->problem);
        enum outcome outcome = lane_start_process(lane, GPUS_NONE, &task->problem);
        if (outcome == OUTCOME_DONE)
            outcome = lane_ask(lane, task->request, NULL, &task->text, &task->problem);
        else if (outcome == OUTCOME_FAILED)
            return false;
        if (outcome == OUTCOME_DIED)
            outcome = lane_end_dead(lane, how, &task->problem);
        if (outcome != OUTCOME_DIED) {
            lane_count_success(lane);
            return outcome == OUTCOME_DONE; /* short work is never rejected */
        }
        lane_count_failure(lane);
    }
    return api_problem_set(&task->problem, API_WORKER_DIED, QDQ_AT_NOTHING, NULL,
                           "the worker process %s, in attempt %lld of %lld", how,
                           (long long)settings->workers_attempts,
                           (long long)settings->workers_attempts);
}

/* --- finding out which backends models can run with ----------------------- */

/* See backends_ask_fn. A process that dies here is not started again: later processes
   may still be able to do other work. */
static bool
probe_backend(void *arg, int gpu, const struct message *request, char **ret,
              struct api_problem *p)
{
    struct lane *lane = arg;
    char how[64] = "";
    enum outcome outcome = lane_start_process(lane, gpu, p);
    if (outcome == OUTCOME_DONE)
        outcome = lane_ask(lane, request, NULL, ret, p);
    if (outcome == OUTCOME_DIED)
        outcome = lane_end_dead(lane, how, p);
    return outcome == OUTCOME_DONE ||
           (outcome == OUTCOME_DIED &&
            api_problem_set(p, API_WORKER_DIED, QDQ_AT_NOTHING, NULL,
                            "the worker process %s", how));
}

/* See backends_judge_fn. */
static char *
probe_judge(void *arg, const struct qdq_runtime_row *row, char why[JUDGES_WHY])
{
    return judging_describe(arg, row, why);
}

static void
probe_backends(struct short_work *work)
{
    struct lane *lane = &work->lanes[0].lane;
    const struct service *service;
    struct api_problem problem = {0};
    if (tenants_get(work->tenants, "", false, &service, &problem)) {
        lane_set_service(lane, service);
        backends_learn(service->backends, lane->settings, probe_backend, probe_judge,
                       lane);
    }
    lock_acquire(&work->lock);
    if (is_idle(&work->lanes[0]))
        work->lanes[0].last = lane->service;
    lock_release(&work->lock);
}

/* --- the lanes ------------------------------------------------------------- */

/* Ends the process of a lane that is needed only when there is much to do. */
static void
end_if_spare(struct short_lane *lane)
{
    struct short_work *work = lane->work;
    lock_release(&work->lock);
    lane_end(&lane->lane);
    lock_acquire(&work->lock);
}

/* Waits for a task; NULL when the lane is to end. */
static struct task *
wait_for_task(struct short_lane *lane)
{
    struct short_work *work = lane->work;
    bool spare = lane >= work->lanes + WARM_LANES;
    lock_acquire(&work->lock);
    while (!lane->task && !work->stopping) {
        if (spare && lane->last) {
            lane->last = NULL;
            end_if_spare(lane);
            continue;
        }
        lock_wait(&work->lock, &work->changed);
    }
    struct task *task = lane->task;
    lock_release(&work->lock);
    return task;
}

/* Returns an idle lane for a tenant: one whose process is the tenant's, or else the first;
   NULL when none is idle. */
static struct short_lane *
find_idle(struct short_work *work, const struct service *service)
{
    lock_assert_held(&work->lock);
    struct short_lane *idle = NULL;
    for (size_t i = work->n; i-- > 0;) {
        struct short_lane *lane = &work->lanes[i];
        if (is_idle(lane) && lane->last == service)
            return lane;
        if (is_idle(lane))
            idle = lane;
    }
    return idle;
}

static void *run_tasks(void *arg);

/* Starts one more lane; NULL when there are enough. */
static struct short_lane *
add_lane(struct short_work *work, struct api_problem *p)
{
    lock_assert_held(&work->lock);
    if (work->n == (size_t)work->settings->workers_short_count)
        return NULL;
    struct short_lane *lane = &work->lanes[work->n];
    lane->work = work;
    if (!lane_start(&lane->lane, work->settings, tenants_metrics(work->tenants),
                    run_tasks, lane, p))
        return NULL;
    work->n++;
    return lane;
}

/* Gives the waiting tasks to lanes. The caller holds the lock. */
static void
dispatch(struct short_work *work)
{
    lock_assert_held(&work->lock);
    struct api_problem ignored = {0};
    for (struct task *task;
         !work->stopping && count_free(work) && (task = pop_task(work));) {
        struct short_lane *lane = find_idle(work, task->service);
        if (!lane && !(lane = add_lane(work, &ignored))) {
            /* No thread could be started: the task waits for a lane that exists. */
            task->service->share->running--;
            task->next = work->first;
            if (!work->first)
                work->last = &task->next;
            work->first = task;
            return;
        }
        lane->task = task;
        lane->last = task->service;
        pthread_cond_broadcast(&work->changed);
    }
}

static void *
run_tasks(void *arg)
{
    struct short_lane *lane = arg;
    struct short_work *work = lane->work;
    if (lane == work->lanes)
        probe_backends(work);
    for (struct task *task; (task = wait_for_task(lane));) {
        bool ok = run_task(lane, task);
        lock_acquire(&work->lock);
        task->ok = ok;
        task->done = true;
        task->service->share->running--;
        lane->task = NULL;
        dispatch(work);
        pthread_cond_broadcast(&work->answered);
        lock_release(&work->lock);
    }
    lane_end(&lane->lane);
    return NULL;
}

/* --- asking ---------------------------------------------------------------- */

/* Removes a task that has not begun from the queue. */
static void
withdraw(struct short_work *work, struct task *task)
{
    lock_assert_held(&work->lock);
    for (struct task **at = &work->first; *at; at = &(*at)->next)
        if (*at == task) {
            *at = task->next;
            if (!*at)
                work->last = at;
            break;
        }
    task->done = true;
    task->ok = fail_stopping(&task->problem);
}

/* Returns whether the task waits in the queue. */
static bool
is_waiting(const struct short_work *work, const struct task *task)
{
    lock_assert_held(&work->lock);
    const struct task *at = work->first;
    while (at && at != task)
        at = at->next;
    return at != NULL;
}

/* Waits for a task. One whose tenant is paused is given to a lane when that is over. */
static void
wait_for_answer(struct short_work *work, struct task *task)
{
    lock_assert_held(&work->lock);
    while (!task->done) {
        bool waits = is_waiting(work, task);
        if (waits && work->stopping)
            withdraw(work, task);
        else if (waits && pool_share_is_paused(task->service->share)) {
            lock_wait_until(&work->lock, &work->answered,
                            atomic_load(&task->service->share->paused_until));
            dispatch(work);
        } else
            lock_wait(&work->lock, &work->answered);
    }
}

bool
short_work_ask(struct short_work *work, const struct service *service,
               const struct message *request, char **ret, struct api_problem *p)
{
    struct task task = {.service = service, .request = request};
    lock_acquire(&work->lock);
    *work->last = &task;
    work->last = &task.next;
    dispatch(work);
    wait_for_answer(work, &task);
    lock_release(&work->lock);
    if (task.ok)
        *ret = task.text;
    else if (!p->set)
        *p = task.problem;
    return task.ok;
}

bool
short_work_is_failing(const struct short_work *work)
{
    return lane_is_failing(&work->lanes[0].lane);
}

bool
short_work_is_idle(struct short_work *work)
{
    lock_acquire(&work->lock);
    bool idle = !work->first;
    for (size_t i = 0; i < work->n; i++)
        idle = idle && !work->lanes[i].task;
    lock_release(&work->lock);
    return idle;
}

/* --- begin and end ---------------------------------------------------------- */

static void
free_work(struct short_work *work)
{
    pthread_cond_destroy(&work->changed);
    pthread_cond_destroy(&work->answered);
    lock_fini(&work->lock);
    free(work->lanes);
    free(work);
}

bool
short_work_open(struct tenants *tenants, const struct settings *settings,
                struct short_work **ret, struct api_problem *p)
{
    struct short_work *work = calloc(1, sizeof *work);
    if (work)
        work->lanes =
            calloc((size_t)settings->workers_short_count, sizeof *work->lanes);
    if (!work || !work->lanes) {
        free(work);
        return api_problem_no_memory(p);
    }
    work->settings = settings;
    work->tenants = tenants;
    work->last = &work->first;
    lock_init(&work->lock, LOCK_SHORT_WORK);
    lock_cond_init(&work->changed);
    lock_cond_init(&work->answered);
    lock_acquire(&work->lock);
    bool ok = add_lane(work, p) != NULL;
    lock_release(&work->lock);
    if (!ok) {
        free_work(work);
        return false;
    }
    *ret = work;
    return true;
}

/* The processes of idle lanes end with their lanes. */
void
short_work_stop(struct short_work *work)
{
    lock_acquire(&work->lock);
    work->stopping = true;
    for (size_t i = 0; i < work->n; i++)
        atomic_store(&work->lanes[i].lane.closing, true);
    pthread_cond_broadcast(&work->changed);
    pthread_cond_broadcast(&work->answered);
    size_t n = work->n;
    lock_release(&work->lock);
    for (size_t i = 0; i < n; i++)
        process_kill(&work->lanes[i].lane.process);
}

void
short_work_close(struct short_work **work)
{
    struct short_work *old = *work;
    if (!old)
        return;
    short_work_stop(old);
    for (size_t i = 0; i < old->n; i++)
        lane_join(&old->lanes[i].lane);
    free_work(old);
    *work = NULL;
}
