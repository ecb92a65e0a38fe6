/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/sweep.h"
#include "base/clock.h"
#include "base/log.h"
#include "settings/settings.h"
#include "tenants/tenants.h"

#include <errno.h>
#include <stdio.h>

#define ROUND 32      /* of each kind: then signals are looked for */
#define MOST_MS 60000 /* between two sweeps */
#define LEAST_MS 100  /* where things are kept for seconds */
#define PARTS_OF_TIME \
    8 /* so much later than its time at most, by its time, things go */

/* What a file is called in the log. */
static const char *const kinds[] = {
    [STORE_MODEL] = "model", [STORE_DATASET] = "dataset", [STORE_BLOB] = "blob"};

static void
tell_failed(struct library *library, const struct api_problem *problem)
{
    char quoted[LOG_QUOTED];
    log_error("sweep_failed", "tenant=%s detail=%s", library_tenant(library),
              log_quote(quoted, problem->detail));
}

/* Somebody else was faster, or has found a use for it meanwhile. */
static bool
is_settled(const struct api_problem *p)
{
    return p->code == API_NOT_FOUND || p->code == API_IN_USE;
}

/* Removes the job that ended first, if it is as old as that. *ret_any: was there one? */
static bool
remove_job(struct library *library, int64_t now, int64_t age, bool *ret_any,
           struct api_problem *p)
{
    struct api_problem problem = {0};
    char id[JOB_ID_SIZE];
    if (!store_oldest_job(library_store(library), now, age, id, ret_any, p))
        return false;
    if (!*ret_any)
        return true;
    if (library_job_remove(library, id, &problem))
        log_info("job_swept", "job=%s tenant=%s reason=%s", id, library_tenant(library),
                 age ? "age" : "room");
    else if (!is_settled(&problem))
        *p = problem;
    return !p->set;
}

/* The same with the file that was not used for longest. */
static bool
remove_file(struct library *library, int64_t now, int64_t age, bool *ret_any,
            struct api_problem *p)
{
    struct api_problem problem = {0};
    enum store_kind kind;
    char id[DIGEST_SIZE];
    if (!store_oldest_file(library_store(library), now, age, &kind, id, ret_any, p))
        return false;
    if (!*ret_any)
        return true;
    if (library_remove(library, kind, id, &problem))
        log_info("file_swept", "kind=%s id=%s tenant=%s reason=%s", kinds[kind], id,
                 library_tenant(library), age ? "age" : "room");
    else if (!is_settled(&problem))
        *p = problem;
    return !p->set;
}

/* --- for want of room ----------------------------------------------------- */

/* What can be had again by calculating goes before what cannot. */
static bool
remove_observations(struct library *library, bool *ret_any, struct api_problem *p)
{
    uint64_t before = blobs_used(library_blobs(library));
    bool ok = library_observations_trim(library, 0, p);
    uint64_t after = blobs_used(library_blobs(library));
    *ret_any = after < before;
    if (*ret_any)
        log_info("observations_swept", "bytes=%llu tenant=%s reason=room",
                 (unsigned long long)(before - after), library_tenant(library));
    return ok;
}

static bool
evict(void *arg)
{
    struct library *library = arg;
    struct api_problem problem = {0};
    bool any = false;
    int64_t now = clock_wall_ms();
    bool ok = remove_observations(library, &any, &problem) &&
              (any || remove_job(library, now, 0, &any, &problem)) &&
              (any || remove_file(library, now, 0, &any, &problem));
    if (!ok)
        tell_failed(library, &problem);
    return ok && any;
}

void
sweep_set_up(struct library *library, const struct settings *settings)
{
    store_set_retention(
        library_store(library),
        &(struct store_retention){.jobs = settings->retention_jobs * 1000,
                                  .files = settings->retention_files * 1000});
    blobs_set_limits(
        library_blobs(library),
        &(struct blobs_limits){.max_bytes = (uint64_t)settings->storage_max_bytes,
                               .min_free = (uint64_t)settings->storage_min_free,
                               .evict = evict,
                               .arg = library});
}

/* --- by age --------------------------------------------------------------- */

bool
sweep_round(struct library *library, const struct settings *settings, int64_t now,
            bool *ret_more, struct api_problem *p)
{
    bool jobs = settings->retention_jobs > 0, files = settings->retention_files > 0;
    bool ok = true;
    for (int i = 0; ok && (jobs || files) && i < ROUND; i++) {
        if (jobs)
            ok = remove_job(library, now, settings->retention_jobs * 1000, &jobs, p);
        if (ok && files)
            ok = remove_file(library, now, settings->retention_files * 1000, &files, p);
    }
    *ret_more = jobs || files;
    return ok;
}

static int64_t
interval(const struct settings *settings)
{
    int64_t times[] = {settings->retention_jobs, settings->retention_files};
    int64_t ms = MOST_MS;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] && times[i] * 1000 / PARTS_OF_TIME < ms)
            ms = times[i] * 1000 / PARTS_OF_TIME;
    return ms < LEAST_MS ? LEAST_MS : ms;
}

/* One round for a tenant, whose failure is logged. *arg: are there more to come? */
static void
sweep(void *arg, const struct service *service)
{
    bool *more = arg, left = false;
    struct api_problem problem = {0};
    if (!sweep_round(service->library, service->settings, clock_wall_ms(), &left,
                     &problem))
        tell_failed(service->library, &problem);
    *more = *more || left;
}

/* Sweeps when it is time to; returns when that is again, steady ms. */
static int64_t
sweep_at(struct tenants *tenants, const struct settings *settings, int64_t due)
{
    bool more = false;
    if (clock_steady_ms() < due)
        return due;
    tenants_each(tenants, sweep, &more);
    return clock_steady_ms() + (more ? 0 : interval(settings));
}

/* Does what is to be done between sweeps; returns when that is again. */
static int64_t
pulse_at(const struct sweep_pulse *pulse, int64_t due)
{
    if (!pulse->ms)
        return INT64_MAX;
    if (clock_steady_ms() < due)
        return due;
    pulse->fn(pulse->arg);
    return clock_steady_ms() + pulse->ms;
}

int
sweep_until(struct tenants *tenants, const struct settings *settings,
            const sigset_t *signals, const struct sweep_pulse *pulse)
{
    int64_t due = 0, beat = 0;
    int got;
    do {
        due = sweep_at(tenants, settings, due);
        beat = pulse_at(pulse, beat);
        int64_t ms = (due < beat ? due : beat) - clock_steady_ms();
        if (ms < 0)
            ms = 0;
        const struct timespec wait = {ms / 1000, ms % 1000 * 1000000};
        got = sigtimedwait(signals, NULL, &wait);
    } while (got < 0);
    return got;
}
