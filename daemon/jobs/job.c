/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "jobs/job.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/inner.h"
#include "settings/settings.h"
#include "watch/metrics.h"
#include "workers/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

METRIC_WORDS(how_labels, "how", [STORE_QUEUED] = "queued",
             [STORE_ANSWERED] = "answered", [STORE_JOINED] = "joined");
METRIC(submitted, COUNTER, "qdqd_jobs_submitted_total", &how_labels, ONE,
       "Jobs that were submitted: put in the queue, answered by the result of an "
       "earlier job, or joined to one on its way.");

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
        return api_problem_no_memory(p);
    jobs->library = library;
    jobs->store = library_store(library);
    jobs->settings = settings;
    jobs->bell = bell;
    jobs->tenant = "-";
    lock_init(&jobs->lock, LOCK_JOBS);
    lock_init(&jobs->leases, LOCK_LEASES);
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
    lock_fini(&(*jobs)->leases);
    lock_fini(&(*jobs)->lock);
    free(*jobs);
    *jobs = NULL;
}

/* --- slots ---------------------------------------------------------------- */

void
jobs_give_up(struct jobs *jobs, struct job_slot *slot)
{
    lock_assert_held(&jobs->lock);
    slot->unwanted = true;
    if (slot->process)
        process_kill(slot->process);
}

/* --- for requests -------------------------------------------------------- */

/* Checks the room for so many jobs. */
static bool
check_room(struct jobs *jobs, size_t n, struct api_problem *p)
{
    lock_assert_held(&jobs->lock);
    int64_t length;
    if (jobs->draining)
        return api_problem_set(p, API_DRAINING, QDQ_AT_NOTHING, NULL,
                               "the daemon is stopping and takes no jobs");
    if (!store_count_queued(jobs->store, &length, p))
        return false;
    return length + (int64_t)n <= jobs->settings->queue_max ||
           api_problem_set(p, API_QUEUE_FULL, QDQ_AT_NOTHING, NULL,
                           "%lld jobs wait already", (long long)length);
}

bool
jobs_check_room(struct jobs *jobs, struct api_problem *p)
{
    lock_acquire(&jobs->lock);
    bool ok = check_room(jobs, 1, p);
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

/* Makes a random id that cannot be guessed and is short enough for a URL. */
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

/* Finds the job that another daemon has added with the same key since this one looked,
   which the database refuses to have twice. */
static bool
find_added_elsewhere(struct jobs *jobs, const struct store_asking *asking,
                     char id[JOB_ID_SIZE], bool *ret_known)
{
    struct api_problem ignored = {0};
    return jobs_find_key(jobs, asking->key, asking->asked, id, ret_known, &ignored) &&
           *ret_known;
}

/* Adds the job, with its targets where it has several, and wakes who may run it. */
static bool
add_job(struct jobs *jobs, const struct store_job *job,
        const struct store_asking *asking, const struct store_target *targets, size_t n,
        enum store_added *ret, struct api_problem *p)
{
    lock_assert_held(&jobs->lock);
    *ret = STORE_QUEUED;
    if (!check_room(jobs, n ? n : 1, p) ||
        !(n ? store_targets_add(jobs->store, job, asking, targets, n, p)
            : store_job_add(jobs->store, job, asking, ret, p)))
        return false;
    if (*ret == STORE_QUEUED)
        bell_ring(jobs->bell);
    /* All targets may have been answered. */
    if (job->fetching || *ret == STORE_ANSWERED || n)
        bell_ring_carriers(jobs->bell);
    return true;
}

/* Gives the targets ids, in a copy that the caller frees. NULL with a problem. */
static struct store_target *
name_targets(const struct store_target *targets, size_t n, int64_t now,
             struct api_problem *p)
{
    struct store_target *named = calloc(n + 1, sizeof *named);
    if (!named) {
        api_problem_no_memory(p);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        named[i] = targets[i];
        named[i].job.created_at = now;
        if (!make_id(named[i].job.id, p)) {
            free(named);
            return NULL;
        }
    }
    return named;
}

bool
jobs_submit_targets(struct jobs *jobs, const struct store_job *request,
                    const struct store_asking *asking,
                    const struct store_target *targets, size_t n, char id[JOB_ID_SIZE],
                    struct api_problem *p)
{
    static const char *const events[] = {[STORE_QUEUED] = "job_queued",
                                         [STORE_ANSWERED] = "job_answered",
                                         [STORE_JOINED] = "job_joined"};
    struct store_job job = *request;
    enum store_added added;
    bool known = false;
    job.created_at = clock_wall_ms();
    struct store_target *named = name_targets(targets, n, job.created_at, p);
    if (!named || !make_id(job.id, p)) {
        free(named);
        return false;
    }
    lock_acquire(&jobs->lock);
    bool ok =
        !asking->key || jobs_find_key(jobs, asking->key, asking->asked, id, &known, p);
    if (ok && !known) {
        ok = add_job(jobs, &job, asking, named, n, &added, p);
        if (!ok && asking->key && store_is_shared(jobs->store))
            ok = find_added_elsewhere(jobs, asking, id, &known);
    }
    lock_release(&jobs->lock);
    free(named);
    /* An earlier job with the same key may not be durable yet either. */
    if (!ok || !store_sync(jobs->store, p))
        return false;
    if (known)
        return true;
    store_hint(jobs->store);
    memcpy(id, job.id, sizeof job.id);
    metrics_add(jobs->metrics, &metric_submitted, added, 1);
    log_info(events[added], "job=%s tenant=%s", id, jobs->tenant);
    return true;
}

bool
jobs_submit(struct jobs *jobs, const struct store_job *request,
            const struct store_asking *asking, char id[JOB_ID_SIZE],
            struct api_problem *p)
{
    return jobs_submit_targets(jobs, request, asking, NULL, 0, id, p);
}

/* --- the end -------------------------------------------------------------- */

void
jobs_drain(struct jobs *jobs)
{
    lock_acquire(&jobs->lock);
    jobs->draining = true;
    jobs_wake(jobs, NULL);
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
        jobs_give_up(jobs, slot);
    lock_release(&jobs->lock);
}
