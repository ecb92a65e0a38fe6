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

/* Notifies a watcher, or wakes a thread that waits. */
static void
wake(struct waiter *waiter)
{
    if (waiter->event >= 0)
        eventfd_write(waiter->event, 1);
    waiter->woken = true;
    if (waiter->event < 0)
        pthread_cond_signal(&waiter->cond);
}

void
jobs_wake(struct jobs *jobs, const char *id)
{
    lock_assert_held(&jobs->lock);
    for (struct waiter *w = jobs->waiters; w; w = w->next)
        if (concerns(w, id))
            wake(w);
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
    enum api_job_state state;
    bool useful = true;
    bool ok = store_job_state(jobs->store, id, &state, p);
    if (ok && !api_job_state_ended(state))
        useful = wait_for_wake(jobs, &waiter, deadline);
    while (ok && (ok = jobs_get(jobs, id, ret, p)) && useful &&
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

/* --- where daemons share a record ----------------------------------------- */

/* Returns whether a job could have this id, which a client has sent. */
static bool
may_be_id(const char *id)
{
    return id[strspn(id, "j0123456789abcdef")] == '\0';
}

/* Lists the ids of all jobs that are waited for, separated by commas. free() frees the list; NULL:
   out of memory. */
static char *
list_waited(struct jobs *jobs)
{
    size_t room = 1, at = 0;
    lock_acquire(&jobs->lock);
    for (const struct waiter *w = jobs->waiters; w; w = w->next)
        room += strlen(w->id) + 1;
    char *ids = calloc(room, 1);
    for (struct waiter *w = jobs->waiters; ids && w; w = w->next) {
        w->looked_at = may_be_id(w->id);
        if (!w->looked_at)
            continue;
        at += (size_t)snprintf(ids + at, room - at, "%s%s", at ? "," : "", w->id);
    }
    lock_release(&jobs->lock);
    return ids;
}

static int
compare_with_glance(const void *id, const void *glance)
{
    return strcmp(id, ((const struct store_glance *)glance)->id);
}

/* Returns whether a job has changed since the last look, for a thread that waits for its end only
   in its state, which is the version's first word. */
static bool
has_changed(const struct waiter *waiter, const char *version)
{
    size_t len = waiter->event < 0 ? strcspn(version, " ") + 1 : sizeof waiter->version;
    return strncmp(waiter->version, version, len) != 0;
}

/* Wakes who waits for a job that has changed since the last look at it, or that has gone. A waiter
   that came during this look waits for the next one: its job may have been read before or after. */
static void
wake_changed(struct jobs *jobs, const struct store_glance *seen, size_t n)
{
    lock_acquire(&jobs->lock);
    for (struct waiter *w = jobs->waiters; w; w = w->next) {
        if (!w->looked_at)
            continue;
        w->looked_at = false;
        const struct store_glance *now =
            n ? bsearch(w->id, seen, n, sizeof *seen, compare_with_glance) : NULL;
        const char *version = now ? now->version : "gone";
        if (!has_changed(w, version))
            continue;
        snprintf(w->version, sizeof w->version, "%s", version);
        wake(w);
    }
    lock_release(&jobs->lock);
}

/* Wakes everybody, who learns why the record does not answer. */
static void
wake_all(struct jobs *jobs)
{
    lock_acquire(&jobs->lock);
    jobs_wake(jobs, NULL);
    lock_release(&jobs->lock);
}

void
jobs_look(struct jobs *jobs)
{
    struct api_problem ignored = {0};
    struct store_glance *seen = NULL;
    size_t n = 0;
    bool queued = false;
    char *ids = list_waited(jobs);
    if (ids && store_look(jobs->store, ids, &queued, &seen, &n, &ignored))
        wake_changed(jobs, seen, n);
    else
        wake_all(jobs);
    free(seen);
    free(ids);
    if (queued)
        bell_ring(jobs->bell);
}
