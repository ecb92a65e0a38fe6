/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/short_work.h"
#include "base/lock.h"
#include "pool/lane.h"
#include "settings/gpu_list.h"
#include "settings/settings.h"
#include "tenants/tenants.h"
#include "workers/backends.h"

#include <stdlib.h>

/* A request that waits or is done. It is on the stack of the thread that waits for
   it. */
struct task {
    const struct service *service;
    const struct message *request;
    bool done, ok;
    char *text;
    struct api_problem problem;
    struct task *next;
};

struct short_work {
    struct lane lane;
    struct tenants *tenants;
    struct lock lock;
    pthread_cond_t asked, answered;
    /* The lock guards these members: */
    struct task *first, **last; /* the waiting tasks, oldest first */
    uint64_t turn;
    bool closing;
};

/* --- one task ------------------------------------------------------------- */

static bool
run_task(struct lane *lane, struct task *task)
{
    const struct settings *settings = lane->settings;
    char how[64] = "";
    lane_set_service(lane, task->service);
    for (int64_t attempt = 1; attempt <= settings->workers_attempts; attempt++) {
        lane_back_off(lane);
        if (!process_start(&lane->process, GPUS_NONE, &task->problem))
            return false;
        enum outcome outcome =
            lane_ask(lane, task->request, NULL, &task->text, &task->problem);
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

/* Removes from the queue the oldest task of the tenant that was served longest ago.
   The queue must not be empty. The caller holds the lock. */
static struct task *
pop_task(struct short_work *work)
{
    lock_assert_held(&work->lock);
    struct task **best = &work->first;
    for (struct task **at = &work->first; *at; at = &(*at)->next)
        if ((*at)->service->share->served < (*best)->service->share->served)
            best = at;
    struct task *task = *best;
    *best = task->next;
    if (!*best)
        work->last = best;
    task->service->share->served = ++work->turn;
    return task;
}

/* Waits for a task; returns NULL when the lane must end. */
static struct task *
wait_for_task(struct short_work *work)
{
    lock_acquire(&work->lock);
    while (!work->first && !work->closing)
        lock_wait(&work->lock, &work->asked);
    struct task *task = work->first ? pop_task(work) : NULL;
    lock_release(&work->lock);
    return task;
}

/* --- probing the backends ------------------------------------------------- */

/* Implements backends_ask_fn. A process that dies here is not counted as a failure,
   because other work may still succeed. */
static bool
probe_backend(void *arg, int gpu, const struct message *request, char **ret,
              struct api_problem *p)
{
    struct lane *lane = arg;
    char how[64] = "";
    if (!process_start(&lane->process, gpu, p))
        return false;
    enum outcome outcome = lane_ask(lane, request, NULL, ret, p);
    if (outcome == OUTCOME_DIED)
        outcome = lane_end_dead(lane, how, p);
    return outcome == OUTCOME_DONE ||
           (outcome == OUTCOME_DIED &&
            api_problem_set(p, API_WORKER_DIED, QDQ_AT_NOTHING, NULL,
                            "the worker process %s", how));
}

static void
probe_backends(struct short_work *work)
{
    struct lane *lane = &work->lane;
    const struct service *service;
    struct api_problem problem = {0};
    if (!tenants_get(work->tenants, "", false, &service, &problem))
        return;
    lane_set_service(lane, service);
    backends_learn(service->backends, lane->settings, probe_backend, lane);
}

/* --- the lane's thread ---------------------------------------------------- */

static void *
run_tasks(void *arg)
{
    struct short_work *work = arg;
    probe_backends(work);
    for (struct task *task; (task = wait_for_task(work));) {
        bool ok = run_task(&work->lane, task);
        lock_acquire(&work->lock);
        task->ok = ok;
        task->done = true;
        pthread_cond_broadcast(&work->answered);
        lock_release(&work->lock);
    }
    process_end(&work->lane.process, false, NULL);
    return NULL;
}

bool
short_work_ask(struct short_work *work, const struct service *service,
               const struct message *request, char **ret, struct api_problem *p)
{
    struct task task = {.service = service, .request = request};
    lock_acquire(&work->lock);
    *work->last = &task;
    work->last = &task.next;
    pthread_cond_signal(&work->asked);
    while (!task.done)
        lock_wait(&work->lock, &work->answered);
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
    return lane_is_failing(&work->lane);
}

static void
free_work(struct short_work *work)
{
    pthread_cond_destroy(&work->asked);
    pthread_cond_destroy(&work->answered);
    lock_fini(&work->lock);
    free(work);
}

bool
short_work_open(struct tenants *tenants, const struct settings *settings,
                struct short_work **ret, struct api_problem *p)
{
    struct short_work *work = calloc(1, sizeof *work);
    if (!work)
        return api_problem_no_memory(p);
    work->tenants = tenants;
    work->last = &work->first;
    lock_init(&work->lock, LOCK_SHORT_WORK);
    pthread_cond_init(&work->asked, NULL);
    pthread_cond_init(&work->answered, NULL);
    if (!lane_start(&work->lane, settings, tenants_metrics(tenants), run_tasks, work,
                    p)) {
        free_work(work);
        return false;
    }
    *ret = work;
    return true;
}

void
short_work_close(struct short_work **work)
{
    struct short_work *old = *work;
    if (!old)
        return;
    atomic_store(&old->lane.closing, true);
    lock_acquire(&old->lock);
    old->closing = true;
    pthread_cond_signal(&old->asked);
    lock_release(&old->lock);
    lane_join(&old->lane);
    free_work(old);
    *work = NULL;
}
