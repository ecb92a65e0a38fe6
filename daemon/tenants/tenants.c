/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/inner.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/lock.h"
#include "library/bucket/bucket.h"
#include "library/library.h"
#include "settings/remotes.h"
#include "settings/runners.h"
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

static struct tenant *
find(struct tenants *tenants, const char *name)
{
    struct tenant *tenant = NULL;
    while ((tenant = tenants_after(tenants, tenant)) && strcmp(tenant->name, name) != 0)
        continue;
    return tenant;
}

/* Counts what all tenants have stored on the disk. */
static void
count_sharers(void *arg, uint64_t *ret_used, unsigned *ret_n)
{
    uint64_t used = 0;
    unsigned n = 0;
    for (struct tenant *t = NULL; (t = tenants_after(arg, t));) {
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
open_library(struct tenants *tenants, struct tenant *tenant, bool brief,
             struct api_problem *p)
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
        .brief = brief,
    };
    const struct library_place place = {
        .record = *settings->store_url ? &record : NULL,
        .bucket = tenants->bucket,
        .bucket_url = *settings->blobs_url ? settings->blobs_url : NULL,
        .tenant = tenant->name};
    return library_open_at(path, &place, &tenant->library, p);
}

/* Tells a tenant's database which webhooks the tenant's jobs are told to. */
static void
set_webhooks(const struct remotes *remotes, const struct tenant *tenant)
{
    struct store_webhook list[MOST_WEBHOOKS];
    struct webhook_texts texts[MOST_WEBHOOKS];
    struct api_problem problem = {0};
    size_t n = 0;
    for (const struct remote *r = remotes_first(remotes); r && n < MOST_WEBHOOKS;
         r = remotes_next(r)) {
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
        store_log_failure(&problem);
}

/* Tells it the newest webhooks, whichever thread tells it others at the same time. */
static void
update_webhooks(struct tenants *tenants, struct tenant *tenant)
{
    struct remotes *told = NULL, *newest;
    while ((newest = tenants_remotes(tenants)) != told) {
        set_webhooks(newest, tenant);
        remotes_release(&told);
        told = newest;
    }
    remotes_release(&newest);
    remotes_release(&told);
}

/* Opens a tenant's library and its jobs. */
static bool
open_parts(struct tenants *tenants, struct tenant *tenant, bool brief,
           struct api_problem *p)
{
    if (!open_library(tenants, tenant, brief, p))
        return false;
    library_set_tenant(tenant->library, tenant->name);
    library_set_sharers(tenant->library, count_sharers, tenants);
    sweep_configure(tenant->library, &tenant->settings);
    if (!library_observations_trim(tenant->library, tenant->settings.cache_observations,
                                   p) ||
        !jobs_open(tenant->library, &tenant->settings, &tenants->bell, &tenant->jobs,
                   p))
        return false;
    jobs_name(tenant->jobs, tenant->name, tenants->metrics);
    tenant->service = (struct service){.tenant = tenant->name,
                                       .tenants = tenants,
                                       .metrics = tenants->metrics,
                                       .backends = tenants->backends,
                                       .settings = &tenant->settings,
                                       .library = tenant->library,
                                       .jobs = tenant->jobs,
                                       .share = &tenant->share};
    memcpy(tenant->service.scripts, tenants->scripts, DIGEST_SIZE);
    memcpy(tenant->service.runtime, tenants->runtime, RUNTIME_SIZE);
    return true;
}

/* Adds a tenant to the list, with what was set while it was opened. */
static void
add(struct tenants *tenants, struct tenant *tenant)
{
    lock_acquire(&tenants->lock);
    tenant->settings = settings_of(tenants, tenant->name, tenants->settings);
    sweep_configure(tenant->library, &tenant->settings);
    tenant->service.pool = tenants->pool;
    if (tenants->draining)
        jobs_drain(tenant->jobs);
    *tenants->last = tenant;
    tenants->last = &tenant->next;
    lock_release(&tenants->lock);
}

/* Opens a tenant and adds it to the list. The lock is not held meanwhile: a database may let
   wait. */
static bool
open_tenant(struct tenants *tenants, const char *name, bool brief, struct tenant **ret,
            struct api_problem *p)
{
    struct tenant *tenant = calloc(1, sizeof *tenant);
    if (!tenant)
        return api_problem_no_memory(p);
    snprintf(tenant->name, sizeof tenant->name, "%s", name);
    lock_acquire(&tenants->lock);
    tenant->settings = settings_of(tenants, name, tenants->settings);
    lock_release(&tenants->lock);
    if (!open_parts(tenants, tenant, brief, p)) {
        close_tenant(tenant);
        return false;
    }
    update_webhooks(tenants, tenant);
    add(tenants, tenant);
    update_webhooks(tenants, tenant); /* others may have been set meanwhile */
    *ret = tenant;
    return true;
}

static bool
is_opening(struct tenants *tenants, const char *name)
{
    lock_assert_held(&tenants->lock);
    for (const struct opening *one = tenants->opening; one; one = one->next)
        if (!strcmp(one->name, name))
            return true;
    return false;
}

/* Finds a tenant that another thread is opening, once that has opened it. */
static bool
wait_until_opened(struct tenants *tenants, const char *name, struct tenant **ret,
                  struct api_problem *p)
{
    lock_assert_held(&tenants->lock);
    while (is_opening(tenants, name))
        lock_wait(&tenants->lock, &tenants->opened);
    *ret = find(tenants, name);
    return *ret || api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                                   "the tenant's record cannot be opened");
}

static void
end_opening(struct tenants *tenants, const struct opening *opening)
{
    lock_acquire(&tenants->lock);
    struct opening **at = &tenants->opening;
    while (*at != opening) {
        QDQD_CHECK(*at);
        at = &(*at)->next;
    }
    *at = opening->next;
    pthread_cond_broadcast(&tenants->opened);
    lock_release(&tenants->lock);
}

/* Opens a tenant that is not in the list; one thread does so for each name. */
static bool
open_once(struct tenants *tenants, const char *name, struct tenant **ret,
          struct api_problem *p)
{
    struct opening opening = {.name = name};
    lock_acquire(&tenants->lock);
    bool waits = is_opening(tenants, name), brief = tenants->serves;
    bool ok = !waits || wait_until_opened(tenants, name, ret, p);
    bool opens = !waits && !(*ret = find(tenants, name));
    if (opens) {
        opening.next = tenants->opening;
        tenants->opening = &opening;
    }
    lock_release(&tenants->lock);
    if (opens) {
        ok = open_tenant(tenants, name, brief, ret, p);
        end_opening(tenants, &opening);
    }
    return ok;
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
    pthread_cond_init(&tenants->opened, NULL);
    bell_init(&tenants->bell, settings->gpu_devices);
    runtime_identity(settings, tenants->runtime);
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
    tenants->serves = true;
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
    lock_release(&tenants->lock);
    remotes_release(&old);
    for (struct tenant *t = NULL; (t = tenants_after(tenants, t));)
        update_webhooks(tenants, t);
    bell_ring_carriers(&tenants->bell);
}

char *
tenants_runtime(const struct service *service)
{
    char digest[DIGEST_SIZE], *ret;
    struct remotes *set = tenants_remotes(service->tenants);
    bool ok = runners_digest(set, service->settings, digest);
    remotes_release(&set);
    int n = ok ? asprintf(&ret, "%s%s%s", service->runtime, *digest ? "; runners " : "",
                          digest)
               : -1;
    return n < 0 ? NULL : ret;
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
    pthread_cond_destroy(&old->opened);
    lock_fini(&old->lock);
    lock_fini(&old->turns);
    free(old);
    *tenants = NULL;
}

bool
tenants_get(struct tenants *tenants, const char *name, bool make,
            const struct service **ret, struct api_problem *p)
{
    struct tenant *tenant = find(tenants, name);
    bool ok = tenant || (make && open_once(tenants, name, &tenant, p));
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
    for (struct tenant *t = NULL; (t = tenants_after(tenants, t));)
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
