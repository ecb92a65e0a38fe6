/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/inner.h"
#include "base/clock.h"
#include "base/log.h"
#include "settings/settings.h"
#include "store/leader.h"

/* files of each kind in one round; signals are checked between rounds */
#define ROUND 32
#define COUNT_EVERY_MS 1000
#define SCRUB_EVERY_MS INT64_C(86400000)

/* The name of each kind of file in the log. */
static const char *const kinds[] = {
    [STORE_MODEL] = "model", [STORE_DATASET] = "dataset", [STORE_BLOB] = "blob"};

void
sweep_log_failure(struct library *library, const struct api_problem *problem)
{
    char quoted[LOG_QUOTED];
    log_error("sweep_failed", "tenant=%s detail=%s", library_tenant(library),
              log_quote(quoted, problem->detail));
}

/* Returns whether another thread has removed the file, or uses it now. */
static bool
is_obsolete(const struct api_problem *p)
{
    return p->code == API_NOT_FOUND || p->code == API_IN_USE;
}

/* Returns who removes something of that age; at age 0 there is no room. */
static enum store_remover
remover(int64_t age)
{
    return age ? STORE_SWEEP : STORE_REQUEST;
}

/* Removes the job that ended first, if it is old enough. *ret_any is false when
   there is none. */
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
    if (library_job_remove(library, id, remover(age), &problem))
        log_info("job_swept", "job=%s tenant=%s reason=%s", id, library_tenant(library),
                 age ? "age" : "room");
    else if (!is_obsolete(&problem))
        *p = problem;
    return !p->set;
}

/* Does the same with the file that was not used for longest. */
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
    if (library_remove(library, kind, id, remover(age), &problem))
        log_info("file_swept", "kind=%s id=%s tenant=%s reason=%s", kinds[kind], id,
                 library_tenant(library), age ? "age" : "room");
    else if (!is_obsolete(&problem))
        *p = problem;
    return !p->set;
}

int64_t
library_next_look(int64_t grace)
{
    int64_t between = grace / PARTS_OF_GRACE;
    return clock_steady_ms() + (between < MOST_BETWEEN_MS ? between : MOST_BETWEEN_MS);
}

/* --- eviction when space is short ---------------------------------------- */

/* Removes observations first, because they can be computed again. */
static bool
remove_observations(struct library *library, bool *ret_any, struct api_problem *p)
{
    uint64_t before = blobs_counted(library_blobs(library));
    bool ok = library_observations_trim(library, 0, p);
    library->stored_at = 0;
    uint64_t after = blobs_counted(library_blobs(library));
    *ret_any = after < before;
    if (*ret_any)
        log_info("observations_swept", "bytes=%llu tenant=%s reason=room",
                 (unsigned long long)(before - after), library_tenant(library));
    return ok;
}

static bool
evict(void *arg, bool computed)
{
    struct library *library = arg;
    struct api_problem problem = {0};
    bool any = false;
    int64_t now = clock_wall_ms();
    bool ok = remove_observations(library, &any, &problem) &&
              (any || computed || remove_job(library, now, 0, &any, &problem)) &&
              (any || computed || remove_file(library, now, 0, &any, &problem));
    library->stored_at = library->record_at = 0; /* both have to be counted */
    if (!ok)
        sweep_log_failure(library, &problem);
    return ok && any;
}

/* Returns the bytes of the blobs that rows name. */
static int64_t
bytes_of_blobs(const struct store_counts *counts)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < STORE_ROWS_BYTES; i++)
        bytes += counts->bytes[i];
    return bytes;
}

uint64_t
sweep_counted(const struct library *library, const struct store_counts *counts)
{
    uint64_t blobs = library->blobs->ops->counts_rows(library)
                         ? (uint64_t)bytes_of_blobs(counts)
                         : blobs_used(library->blobs);
    return blobs + (uint64_t)counts->bytes[STORE_ROWS_BYTES];
}

/* Returns the bytes of the blobs, as the rows say them, where those alone count. Counting takes
   some milliseconds, so the number may be a second old. */
static uint64_t
count_stored(void *arg)
{
    struct library *library = arg;
    struct api_problem ignored = {0};
    struct store_counts counts;
    int64_t now = clock_steady_ms();
    if (library->stored_at && now - library->stored_at < COUNT_EVERY_MS)
        return (uint64_t)library->stored_bytes;
    if (!store_count(library->store, &counts, &ignored))
        return (uint64_t)library->stored_bytes;
    library->stored_bytes = bytes_of_blobs(&counts);
    library->stored_at = now;
    return (uint64_t)library->stored_bytes;
}

/* Returns the bytes of the rows. A record that is shared is asked at most once a second,
   because each piece of an upload asks. */
static uint64_t
count_record(void *arg)
{
    struct library *library = arg;
    int64_t now = clock_steady_ms();
    if (!store_is_shared(library->store))
        return store_record_bytes(library->store);
    if (!library->record_at || now - library->record_at >= COUNT_EVERY_MS) {
        library->record_bytes = (int64_t)store_record_bytes(library->store);
        library->record_at = now;
    }
    return (uint64_t)library->record_bytes;
}

static void
count_sharers(void *arg, uint64_t *ret_used, unsigned *ret_n)
{
    const struct library *library = arg;
    if (library->sharers)
        library->sharers(library->sharers_arg, ret_used, ret_n);
}

void
sweep_configure(struct library *library, const struct settings *settings)
{
    const struct blob_store_ops *ops = library->blobs->ops;
    store_set_retention(
        library_store(library),
        &(struct store_retention){.jobs = settings->retention_jobs * 1000,
                                  .files = settings->retention_files * 1000});
    blobs_set_limits(
        library_blobs(library),
        &(struct blobs_limits){.max_bytes = (uint64_t)settings->storage_max_bytes,
                               .min_free = (uint64_t)settings->storage_min_free,
                               .grace_ms = settings->retention_leftovers * 1000,
                               .evict = evict,
                               .rows = ops->counts_rows(library) ? count_stored : NULL,
                               .beside = count_record,
                               .sharers = count_sharers,
                               .arg = library});
}

/* --- by age --------------------------------------------------------------- */

/* Removes what is too old, as the leader. */
static bool
sweep_led(struct library *library, const struct settings *settings, int64_t now,
          bool *ret_more, struct api_problem *p)
{
    bool pages = false, ok = true;
    bool jobs = settings->retention_jobs > 0, files = settings->retention_files > 0;
    int64_t grace = settings->retention_leftovers * 1000;
    for (int i = 0; ok && (jobs || files) && i < ROUND; i++) {
        if (jobs)
            ok = remove_job(library, now, settings->retention_jobs * 1000, &jobs, p);
        if (ok && files)
            ok = remove_file(library, now, settings->retention_files * 1000, &files, p);
    }
    ok = ok && store_fold_counts(library->store, p) &&
         library->blobs->ops->sweep(library, grace, &pages, p);
    *ret_more = ok && (jobs || files || pages);
    return ok;
}

bool
sweep_round(struct library *library, const struct settings *settings, int64_t now,
            bool *ret_more, struct api_problem *p)
{
    struct api_problem problem = {0};
    *ret_more = false;
    /* The bytes of a job that was removed do not stay in the record. */
    library_sync_deferred(library);
    library_journals_sweep(library);
    bool ok =
        library->blobs->ops->tidy(library, settings->retention_leftovers * 1000, p);
    if (!ok || !store_leads(library_store(library)) ||
        sweep_led(library, settings, now, ret_more, &problem))
        return ok;
    if (problem.code == API_CANCELLED)
        log_info("sweep_refused", "tenant=%s", library_tenant(library));
    else
        *p = problem;
    return problem.code == API_CANCELLED;
}

/* --- damage --------------------------------------------------------------- */

bool
sweep_scrub(struct library *library, uint64_t bytes, int64_t now_ms)
{
    struct api_problem problem = {0};
    bool done = true;
    if (now_ms < library->scrub_at)
        return false;
    if (!blobs_scrub(library->blobs, bytes, &done, &problem)) {
        sweep_log_failure(library, &problem);
        done = true;
    }
    if (done)
        library->scrub_at = now_ms + SCRUB_EVERY_MS;
    return !done;
}
