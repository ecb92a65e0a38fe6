/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a job's end, and watching the changes of its state. */
#include "config.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/errno_code.h"
#include "jobs/inner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct job_watch {
    struct waiter waiter;
    char id[JOB_ID_SIZE];
};

static bool
concerns(const struct waiter *waiter, const char *id)
{
    return !id || strcmp(waiter->id, id) == 0;
}

void
jobs_notify(struct jobs *jobs, const char *id)
{
    lock_assert_held(&jobs->lock);
    for (struct waiter *w = jobs->waiters; w; w = w->next)
        if (w->event >= 0 && concerns(w, id))
            eventfd_write(w->event, 1);
}

void
jobs_wake(struct jobs *jobs, const char *id)
{
    jobs_notify(jobs, id);
    for (struct waiter *w = jobs->waiters; w; w = w->next) {
        if (w->event >= 0 || !concerns(w, id))
            continue;
        w->woken = true;
        pthread_cond_signal(&w->cond);
    }
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

/* Returns whether the state of `id` can still change. While the daemon drains only
   running jobs change. The caller holds the lock. */
static bool
may_change(struct jobs *jobs, const char *id)
{
    lock_assert_held(&jobs->lock);
    return !jobs->draining || jobs_find_slot(jobs, id);
}

/* Waits until this waiter is woken. Returns false when waiting longer is of no use. */
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

/* The waiter is added to the list before the store is read, so an end in between is
   not missed. */
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

/* --- for watchers -------------------------------------------------------- */

bool
jobs_watch(struct jobs *jobs, const char *id, struct job_watch **ret,
           struct api_problem *p)
{
    struct job_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return api_problem_no_memory(p);
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
