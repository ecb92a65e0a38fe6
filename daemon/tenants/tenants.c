/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/tenants.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "library/bucket.h"
#include "library/sweep.h"
#include "settings/remotes.h"
#include "store/leader.h"
#include "store/outbox.h"
#include "watch/metrics.h"
#include "workers/backends.h"
#include "workers/scripts.h"
#include "qdq/quantize.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define FOLDER "tenants"

static void
write_build(FILE *out, size_t cell)
{
    (void)cell;
    fprintf(out, "version=\"%s\",engine=\"%s\"", PACKAGE_VERSION, qdq_version());
}

static const struct metric_labels build_labels = {.n = 1, .write = write_build};

METRIC(build_info, GAUGE, "qdqd_build_info", &build_labels, ONE,
       "The versions of daemon and engine; always 1.");
METRIC(start_time, GAUGE, "qdqd_start_time_seconds", &metric_unlabelled, SECONDS,
       "Time of the daemon's start, since 1970.");

struct tenant {
    char name[TENANT_SIZE];
    /* the settings with this tenant's limits; the texts are borrowed */
    struct settings settings;
    struct service service;
    struct pool_share share;
    struct library *library;
    struct jobs *jobs;
    /* guarded by `turns`: */
    uint64_t served; /* number of the turn in which its last job was claimed */
    uint64_t looked; /* number of the last look at its queue */
    struct tenant *next;
};

struct tenants {
    const struct settings *settings;
    const struct bucket *bucket; /* NULL: blobs are files */
    struct metrics *metrics;
    struct backends *backends;
    struct bell bell;
    char scripts[DIGEST_SIZE], runtime[RUNTIME_SIZE];
    struct lock turns;   /* held while a job is claimed; acquired before `lock` */
    uint64_t turn, look; /* guarded by turns */
    struct lock lock;
    /* guarded by lock: */
    struct tenant *first, **last;
    struct pool *pool;
    bool draining;
    struct tenant_own *own; /* the tenants' own limits */
    size_t n_own;
    struct remotes *remotes; /* shared */
};

bool
tenant_is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    size_t len = strlen(name);
    return len > 0 && len < TENANT_SIZE && strspn(name, letters) == len &&
           !strchr("-_.", name[0]);
}

/* --- one tenant ----------------------------------------------------------- */

static void
close_tenant(struct tenant *tenant)
{
    jobs_close(&tenant->jobs);
    library_close(&tenant->library);
    free(tenant);
}

/* Returns the tenant after `tenant`, or the first one for NULL. Tenants are only
   ever added at the end. */
static struct tenant *
after(struct tenants *tenants, const struct tenant *tenant)
{
    lock_acquire(&tenants->lock);
    struct tenant *next = tenant ? tenant->next : tenants->first;
    lock_release(&tenants->lock);
    return next;
}

/* Counts what all tenants have stored on the disk. */
static void
count_sharers(void *arg, uint64_t *ret_used, unsigned *ret_n)
{
    uint64_t used = 0;
    unsigned n = 0;
    for (struct tenant *t = NULL; (t = after(arg, t));) {
        uint64_t own = blobs_used(library_blobs(t->library));
        used += own;
        n += own > 0;
    }
    *ret_used = used;
    *ret_n = n;
}

/* Returns the tenant's own limit, or the common one when it has none. */
static int64_t
of_its_own(int64_t own, int64_t each)
{
    return own ? own : each;
}

/* Sets the limits that hold for a tenant with a name. */
static void
set_limits(struct settings *s, const struct tenant_limits *own)
{
    int64_t queue = of_its_own(own->queue, s->tenants_queue);
    int64_t bytes = of_its_own(own->max_bytes, s->tenants_max_bytes);
    int64_t time = of_its_own(own->job_timeout, s->tenants_job_timeout);
    if (queue)
        s->queue_max = queue;
    if (bytes)
        s->storage_max_bytes = bytes;
    if (time && (!s->workers_job_timeout || time < s->workers_job_timeout))
        s->workers_job_timeout = time;
}

/* Returns the common settings with the limits of a tenant; the texts are borrowed.
   The caller holds the lock. */
static struct settings
settings_of(const struct tenants *tenants, const char *name,
            const struct settings *settings)
{
    lock_assert_held(&tenants->lock);
    static const struct tenant_limits none = {0};
    const struct tenant_limits *limits = &none;
    struct settings ret = *settings;
    for (size_t i = 0; i < tenants->n_own; i++)
        if (!strcmp(tenants->own[i].name, name))
            limits = &tenants->own[i].limits;
    if (*name)
        set_limits(&ret, limits);
    return ret;
}

static bool
make_folder(const char *path, struct api_problem *p)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ||
           api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: making a folder: %s",
                           path, strerror(errno));
}

static bool
open_library(struct tenants *tenants, struct tenant *tenant, struct api_problem *p)
{
    char path[PATH_MAX];
    const char *state = tenants->settings->state_dir;
    int len = *tenant->name ? snprintf(path, sizeof path, "%s/" FOLDER, state)
                            : snprintf(path, sizeof path, "%s", state);
    if (len >= PATH_MAX - TENANT_SIZE - 1)
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                               "state.dir: the path is too long");
    if (*tenant->name && !make_folder(path, p))
        return false;
    if (*tenant->name)
        snprintf(path + len, sizeof path - (size_t)len, "/%s", tenant->name);
    const struct settings *settings = tenants->settings;
    const struct store_place record = {
        .url = settings->store_url,
        .direct_url = *settings->store_direct_url ? settings->store_direct_url : NULL,
        .tenant = tenant->name,
        .lease_ms = settings->cluster_lease * 1000,
    };
    const struct library_place place = {.record = *settings->store_url ? &record : NULL,
                                        .bucket = tenants->bucket,
                                        .tenant = tenant->name};
    return library_open_at(path, &place, &tenant->library, p);
}

/* Tells a tenant's database which webhooks the tenant's jobs are told to. The caller holds
   the lock. */
static void
set_webhooks(const struct tenants *tenants, const struct tenant *tenant)
{
    lock_assert_held(&tenants->lock);
    struct store_webhook list[MOST_WEBHOOKS];
    struct webhook_texts texts[MOST_WEBHOOKS];
    struct api_problem problem = {0};
    char quoted[LOG_QUOTED];
    size_t n = 0;
    for (const struct remote *r = remotes_first(tenants->remotes);
         r && n < MOST_WEBHOOKS; r = remotes_next(r)) {
        if (strcmp(r->kind, "webhook") != 0 || !remote_allows(r, tenant->name, "admin"))
            continue;
        webhook_split(r, &texts[n]);
        list[n] =
            (struct store_webhook){.name = r->section.name, .events = texts[n].events};
        if (*texts[n].key) {
            list[n].label_key = texts[n].key;
            list[n].label_value = texts[n].value;
        }
        n++;
    }
    if (!store_set_webhooks(library_store(tenant->library), list, n, &problem))
        log_error("store_failed", "detail=%s", log_quote(quoted, problem.detail));
}

/* Opens a tenant and adds it to the list. The caller holds the lock. */
static bool
open_tenant(struct tenants *tenants, const char *name, struct tenant **ret,
            struct api_problem *p)
{
    lock_assert_held(&tenants->lock);
    struct tenant *tenant = calloc(1, sizeof *tenant);
    if (!tenant)
        return api_problem_no_memory(p);
    snprintf(tenant->name, sizeof tenant->name, "%s", name);
    tenant->settings = settings_of(tenants, name, tenants->settings);
    bool ok = open_library(tenants, tenant, p);
    if (ok) {
        library_set_tenant(tenant->library, tenant->name);
        library_set_sharers(tenant->library, count_sharers, tenants);
        sweep_configure(tenant->library, &tenant->settings);
        ok = library_observations_trim(tenant->library,
                                       tenant->settings.cache_observations, p) &&
             jobs_open(tenant->library, &tenant->settings, &tenants->bell,
                       &tenant->jobs, p);
    }
    if (!ok) {
        close_tenant(tenant);
        return false;
    }
    jobs_name(tenant->jobs, tenant->name, tenants->metrics);
    tenant->service = (struct service){.tenant = tenant->name,
                                       .tenants = tenants,
                                       .metrics = tenants->metrics,
                                       .backends = tenants->backends,
                                       .settings = &tenant->settings,
                                       .library = tenant->library,
                                       .jobs = tenant->jobs,
                                       .pool = tenants->pool,
                                       .share = &tenant->share};
    memcpy(tenant->service.scripts, tenants->scripts, DIGEST_SIZE);
    memcpy(tenant->service.runtime, tenants->runtime, RUNTIME_SIZE);
    if (tenants->draining)
        jobs_drain(tenant->jobs);
    if (tenants->remotes)
        set_webhooks(tenants, tenant);
    *tenants->last = tenant;
    tenants->last = &tenant->next;
    *ret = tenant;
    return true;
}

/* --- all of them ---------------------------------------------------------- */

/* Opens the tenants that have a folder, because jobs may wait in their queues. */
static bool
open_known(struct tenants *tenants, struct api_problem *p)
{
    char path[PATH_MAX];
    const struct service *service;
    snprintf(path, sizeof path, "%s/" FOLDER, tenants->settings->state_dir);
    DIR *stream = opendir(path);
    if (!stream)
        return errno == ENOENT || api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                                  "%s: %s", path, strerror(errno));
    bool ok = true;
    for (struct dirent *entry; ok && (entry = readdir(stream));)
        ok = !tenant_is_name(entry->d_name) ||
             tenants_get(tenants, entry->d_name, true, &service, p);
    closedir(stream);
    return ok;
}

/* A look at the tenants that have a schema. */
struct schemas {
    struct tenants *tenants;
    struct api_problem *p;
    bool ok;
};

static void
open_schema(void *arg, const char *name)
{
    struct schemas *schemas = arg;
    const struct service *service;
    if (schemas->ok && tenant_is_name(name))
        schemas->ok = tenants_get(schemas->tenants, name, true, &service, schemas->p);
}

bool
tenants_open_stored(struct tenants *tenants, struct api_problem *p)
{
    const struct service *service;
    struct schemas schemas = {tenants, p, true};
    return tenants_get(tenants, "", false, &service, p) &&
           store_each_tenant(library_store(service->library), open_schema, &schemas,
                             p) &&
           schemas.ok;
}

bool
tenants_open(const struct settings *settings, const struct bucket *bucket,
             struct tenants **ret, struct api_problem *p)
{
    const struct service *service;
    struct tenants *tenants = calloc(1, sizeof *tenants);
    if (!tenants)
        return api_problem_no_memory(p);
    tenants->settings = settings;
    tenants->bucket = bucket;
    tenants->last = &tenants->first;
    lock_init(&tenants->turns, LOCK_TURNS);
    lock_init(&tenants->lock, LOCK_TENANTS);
    bell_init(&tenants->bell, settings->gpu_devices);
    runtime_identity(settings->engine_runtime, settings->engine_openvino,
                     tenants->runtime);
    tenants->metrics = metrics_new();
    metrics_set(tenants->metrics, &metric_build_info, 0, 1);
    metrics_set(tenants->metrics, &metric_start_time, 0, clock_wall_ms() * 1000);
    tenants->backends = backends_new();
    if (!tenants->metrics || !tenants->backends)
        api_problem_no_memory(p);
    if (!tenants->metrics || !tenants->backends ||
        !scripts_digest(settings->engine_cases, tenants->scripts, p) ||
        !tenants_get(tenants, "", true, &service, p) || !open_known(tenants, p) ||
        !tenants_open_stored(tenants, p)) {
        tenants_close(&tenants);
        return false;
    }
    *ret = tenants;
    return true;
}

void
tenants_set_pool(struct tenants *tenants, struct pool *pool)
{
    lock_acquire(&tenants->lock);
    tenants->pool = pool;
    for (struct tenant *t = tenants->first; t; t = t->next)
        t->service.pool = pool;
    lock_release(&tenants->lock);
}

void
tenants_set_remotes(struct tenants *tenants, struct remotes *remotes)
{
    lock_acquire(&tenants->lock);
    struct remotes *old = tenants->remotes;
    tenants->remotes = remotes_hold(remotes);
    for (struct tenant *t = tenants->first; t; t = t->next)
        set_webhooks(tenants, t);
    lock_release(&tenants->lock);
    remotes_release(&old);
    bell_ring_carriers(&tenants->bell);
}

struct remotes *
tenants_remotes(struct tenants *tenants)
{
    lock_acquire(&tenants->lock);
    struct remotes *remotes = remotes_hold(tenants->remotes);
    lock_release(&tenants->lock);
    return remotes;
}

const struct bucket *
tenants_bucket(const struct tenants *tenants)
{
    return tenants->bucket;
}

bool
tenants_have_blobs(const struct tenants *tenants)
{
    return !tenants->bucket || tenants->bucket->is_reachable(tenants->bucket->arg);
}

int64_t
tenants_budget(const struct tenants *tenants)
{
    return tenants->settings->storage_max_bytes;
}

struct bell *
tenants_bell(struct tenants *tenants)
{
    return &tenants->bell;
}

struct metrics *
tenants_metrics(struct tenants *tenants)
{
    return tenants->metrics;
}

void
tenants_close(struct tenants **tenants)
{
    struct tenants *old = *tenants;
    if (!old)
        return;
    while (old->first) {
        struct tenant *tenant = old->first;
        old->first = tenant->next;
        close_tenant(tenant);
    }
    free(old->own);
    remotes_release(&old->remotes);
    metrics_free(&old->metrics);
    backends_free(&old->backends);
    bell_fini(&old->bell);
    lock_fini(&old->lock);
    lock_fini(&old->turns);
    free(old);
    *tenants = NULL;
}

bool
tenants_get(struct tenants *tenants, const char *name, bool make,
            const struct service **ret, struct api_problem *p)
{
    lock_acquire(&tenants->lock);
    struct tenant *tenant = tenants->first;
    while (tenant && strcmp(tenant->name, name) != 0)
        tenant = tenant->next;
    bool ok = tenant || (make && open_tenant(tenants, name, &tenant, p));
    lock_release(&tenants->lock);
    if (ok)
        *ret = &tenant->service;
    else if (!make)
        api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                        "there is no such tenant");
    return ok;
}

void
tenants_each(struct tenants *tenants,
             void (*fn)(void *arg, const struct service *service), void *arg)
{
    for (struct tenant *t = NULL; (t = after(tenants, t));)
        fn(arg, &t->service);
}

/* Applies the settings to every tenant. The caller holds the lock. */
static void
refit(struct tenants *tenants, const struct settings *settings)
{
    lock_assert_held(&tenants->lock);
    for (struct tenant *t = tenants->first; t; t = t->next) {
        const struct settings fresh = settings_of(tenants, t->name, settings);
        settings_apply(&t->settings, &fresh, NULL);
        sweep_configure(t->library, &t->settings);
    }
}

/* Holds the lock for both steps, so that a tenant that is opened meanwhile has
   either the old settings or the new ones. */
void
tenants_reload(struct tenants *tenants, struct settings *settings,
               const struct settings *fresh, settings_change_fn on_change)
{
    lock_acquire(&tenants->lock);
    settings_apply(settings, fresh, on_change);
    refit(tenants, fresh);
    lock_release(&tenants->lock);
}

void
tenants_limit(struct tenants *tenants, struct tenant_own *list, size_t n)
{
    lock_acquire(&tenants->lock);
    free(tenants->own);
    tenants->own = list;
    tenants->n_own = n;
    refit(tenants, tenants->settings);
    lock_release(&tenants->lock);
}

/* --- turns ---------------------------------------------------------------- */

/* Returns the tenant that was served longest ago, among those whose queue was not
   looked at in this round. */
static struct tenant *
choose(struct tenants *tenants)
{
    lock_assert_held(&tenants->turns);
    struct tenant *best = NULL;
    for (struct tenant *t = NULL; (t = after(tenants, t));)
        if (t->looked != tenants->look && (!best || t->served < best->served))
            best = t;
    return best;
}

struct hindrance {
    bool failed; /* a queue cannot be read or written (a full disk) */
    bool paused; /* a tenant's workers have died, and its work waits */
};

bool
pool_share_is_paused(struct pool_share *share)
{
    int64_t until = atomic_load(&share->paused_until);
    return until && clock_steady_ms() < until;
}

/*
 * Claims the next job. *ret is NULL when there is none; *ret_why then says whose queue
 * could not be asked: the other tenants are served all the same.
 */
static void
claim(struct tenants *tenants, struct job_slot *slot, const struct service **ret,
      struct store_job *ret_job, struct hindrance *ret_why)
{
    char quoted[LOG_QUOTED];
    bool any = false;
    *ret = NULL;
    *ret_why = (struct hindrance){false, false};
    lock_acquire(&tenants->turns);
    tenants->look++;
    for (struct tenant *t; !any && (t = choose(tenants));) {
        struct api_problem problem = {0};
        t->looked = tenants->look;
        if (pool_share_is_paused(&t->share)) {
            ret_why->paused = true;
            continue;
        }
        if (!jobs_claim(t->jobs, slot, ret_job, &any, &problem)) {
            ret_why->failed = true;
            log_error("store_failed", "detail=%s", log_quote(quoted, problem.detail));
        }
        if (any) {
            t->served = ++tenants->turn;
            *ret = &t->service;
        }
    }
    lock_release(&tenants->turns);
}

static bool
is_draining(struct tenants *tenants)
{
    lock_acquire(&tenants->lock);
    bool draining = tenants->draining;
    lock_release(&tenants->lock);
    return draining;
}

bool
tenants_claim(struct tenants *tenants, struct job_slot *slot,
              const struct service **ret_service, struct store_job *ret)
{
    const struct timespec a_while = {1, 0}, a_moment = {0, 50 * 1000000};
    for (;;) {
        struct hindrance why;
        uint64_t heard = bell_heard(&tenants->bell);
        if (is_draining(tenants))
            return false;
        claim(tenants, slot, ret_service, ret, &why);
        if (*ret_service)
            return true;
        if (why.failed || why.paused)
            nanosleep(why.paused ? &a_moment : &a_while, NULL);
        else
            bell_wait(&tenants->bell, heard);
    }
}

/* --- the end -------------------------------------------------------------- */

static void
drain_one(void *arg, const struct service *service)
{
    (void)arg;
    jobs_drain(service->jobs);
}

void
tenants_drain(struct tenants *tenants)
{
    lock_acquire(&tenants->lock);
    tenants->draining = true;
    lock_release(&tenants->lock);
    tenants_each(tenants, drain_one, NULL);
}

static void
ask_idle(void *arg, const struct service *service)
{
    bool *idle = arg;
    *idle = *idle && jobs_are_idle(service->jobs);
}

bool
tenants_are_idle(struct tenants *tenants)
{
    bool idle = true;
    tenants_each(tenants, ask_idle, &idle);
    return idle;
}

static void
stop_one(void *arg, const struct service *service)
{
    (void)arg;
    jobs_stop(service->jobs);
}

void
tenants_stop(struct tenants *tenants)
{
    tenants_each(tenants, stop_one, NULL);
}
