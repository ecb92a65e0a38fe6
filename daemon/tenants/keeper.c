/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/keeper.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/job.h"
#include "settings/settings.h"
#include "store/hints.h"
#include "store/leader.h"
#include "tenants/node.h"
#include "tenants/service.h"
#include "tenants/tenants.h"
#include "watch/metrics.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TICK_MS = 250, LEASES_KEPT = 4 /* before a silent node's row is removed */ };

struct keeper {
    struct tenants *tenants;
    int64_t lease_ms;
    pthread_t thread;
    /* listens for hints and finds tenants, which may take long */
    pthread_t watching;
    struct hint_listener *listener; /* NULL: there are no hints */
    bool watches;
    atomic_bool closing;
};

METRIC(hints, COUNTER, "qdqd_hints_total", &metric_unlabelled, ONE,
       "Hints of the database that a daemon has changed something (store.direct_url).");

static void
check_leases(void *arg, const struct service *service)
{
    const struct keeper *keeper = arg;
    jobs_check_leases(service->jobs, keeper->lease_ms);
}

static void
renew_leases(void *arg, const struct service *service)
{
    const struct keeper *keeper = arg;
    jobs_renew(service->jobs);
    jobs_check_leases(service->jobs, keeper->lease_ms);
}

static void
log_failure(const struct api_problem *problem)
{
    char quoted[LOG_QUOTED];
    log_error("store_failed", "detail=%s", log_quote(quoted, problem->detail));
}

/* Leads, or stays the leader, where no other daemon does. */
static void
lead(void *arg, const struct service *service)
{
    struct api_problem problem = {0};
    (void)arg;
    if (!store_lead(library_store(service->library), node_id(), &problem))
        log_failure(&problem);
}

static void
end_lead(void *arg, const struct service *service)
{
    struct api_problem problem = {0};
    (void)arg;
    if (!store_lead_end(library_store(service->library), &problem))
        log_failure(&problem);
}

static void
look(void *arg, const struct service *service)
{
    (void)arg;
    jobs_look(service->jobs);
}

/* Renews this daemon's row in the list of nodes. */
static void
renew_node(const struct keeper *keeper)
{
    struct api_problem problem = {0};
    if (!node_renew(keeper->tenants, LEASES_KEPT * keeper->lease_ms, &problem))
        log_failure(&problem);
}

/* Finds the tenants that other daemons have made. */
static void
find_tenants(const struct keeper *keeper)
{
    struct api_problem problem = {0};
    if (!tenants_open_stored(keeper->tenants, &problem))
        log_failure(&problem);
}

/* Renews at a third of the lease; between, looks for what other daemons have changed. */
static void *
keep(void *arg)
{
    const struct timespec tick = {0, TICK_MS * 1000000};
    struct keeper *keeper = arg;
    int64_t due = 0;
    while (!atomic_load(&keeper->closing)) {
        tenants_each(keeper->tenants, check_leases, keeper);
        if (clock_steady_ms() >= due) {
            due = clock_steady_ms() + keeper->lease_ms / 3;
            tenants_each(keeper->tenants, renew_leases, keeper);
            tenants_each(keeper->tenants, lead, keeper);
            renew_node(keeper);
        }
        tenants_each(keeper->tenants, look, keeper);
        nanosleep(&tick, NULL);
    }
    return NULL;
}

/* Looks as soon as there is a hint. */
static void *
watch(void *arg)
{
    const struct timespec tick = {0, TICK_MS * 1000000};
    struct keeper *keeper = arg;
    int64_t due = 0;
    while (!atomic_load(&keeper->closing)) {
        if (clock_steady_ms() >= due) {
            due = clock_steady_ms() + keeper->lease_ms / 3;
            find_tenants(keeper);
        }
        if (!keeper->listener) {
            nanosleep(&tick, NULL);
        } else if (hint_listener_wait(keeper->listener, TICK_MS)) {
            metrics_add(tenants_metrics(keeper->tenants), &metric_hints, 0, 1);
            tenants_each(keeper->tenants, look, keeper);
        }
    }
    return NULL;
}

static void
end_threads(struct keeper *keeper)
{
    atomic_store(&keeper->closing, true);
    pthread_join(keeper->thread, NULL);
    if (keeper->watches)
        pthread_join(keeper->watching, NULL);
    hint_listener_free(&keeper->listener);
}

bool
keeper_open(struct tenants *tenants, const struct settings *settings,
            struct keeper **ret, struct api_problem *p)
{
    *ret = NULL;
    if (!*settings->store_url)
        return true;
    struct keeper *keeper = calloc(1, sizeof *keeper);
    if (!keeper)
        return api_problem_no_memory(p);
    keeper->tenants = tenants;
    keeper->lease_ms = settings->cluster_lease * 1000;
    if (*settings->store_direct_url)
        keeper->listener = hint_listener_new(settings->store_direct_url);
    int rc = pthread_create(&keeper->thread, NULL, keep, keeper);
    if (!rc) {
        rc = pthread_create(&keeper->watching, NULL, watch, keeper);
        keeper->watches = !rc;
        if (rc)
            end_threads(keeper);
    }
    if (rc) {
        hint_listener_free(&keeper->listener);
        free(keeper);
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "starting a thread: %s",
                               strerror(rc));
    }
    *ret = keeper;
    return true;
}

void
keeper_close(struct keeper **keeper)
{
    struct api_problem problem = {0};
    if (!*keeper)
        return;
    end_threads(*keeper);
    tenants_each((*keeper)->tenants, end_lead, NULL);
    if (!node_leave((*keeper)->tenants, &problem))
        log_failure(&problem);
    free(*keeper);
    *keeper = NULL;
}
