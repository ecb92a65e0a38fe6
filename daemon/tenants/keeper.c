/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/keeper.h"
#include "base/clock.h"
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
enum { N_THREADS = 3 };

struct keeper {
    struct tenants *tenants;
    int64_t lease_ms;
    struct {
        pthread_t id;
        bool runs;
    } threads[N_THREADS];
    struct hint_listener *listener; /* NULL: there are no hints */
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
    bool *answers = arg;
    if (!jobs_renew(service->jobs))
        *answers = false;
}

/* Leads, or stays the leader, where no other daemon does. */
static void
lead(void *arg, const struct service *service)
{
    struct api_problem problem = {0};
    (void)arg;
    if (!store_lead(library_store(service->library), node_id(), &problem))
        store_log_failure(&problem);
}

static void
end_lead(void *arg, const struct service *service)
{
    struct api_problem problem = {0};
    (void)arg;
    if (!store_lead_end(library_store(service->library), &problem))
        store_log_failure(&problem);
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
        store_log_failure(&problem);
}

/* Finds the tenants that other daemons have made. */
static void
find_tenants(const struct keeper *keeper)
{
    struct api_problem problem = {0};
    if (!tenants_open_stored(keeper->tenants, &problem))
        store_log_failure(&problem);
}

static void
wait_a_tick(void)
{
    const struct timespec tick = {0, TICK_MS * 1000000};
    nanosleep(&tick, NULL);
}

/* Ends what has no lease any more. This thread never waits for the record. */
static void *
check(void *arg)
{
    struct keeper *keeper = arg;
    while (!atomic_load(&keeper->closing)) {
        tenants_each(keeper->tenants, check_leases, keeper);
        wait_a_tick();
    }
    return NULL;
}

/* Renews at a third of the lease, and soon again where the record did not answer. That one keeps
   the other tenants waiting, each statement for a part of the lease at most; connecting to it is left
   to the thread that looks. */
static void *
keep(void *arg)
{
    struct keeper *keeper = arg;
    int64_t due = 0;
    bool answers = true;
    store_wait_at_most(keeper->lease_ms / 5);
    while (!atomic_load(&keeper->closing)) {
        bool is_due = clock_steady_ms() >= due;
        if (is_due)
            due = clock_steady_ms() + keeper->lease_ms / 3;
        if (is_due || !answers) {
            answers = true;
            tenants_each(keeper->tenants, renew_leases, &answers);
        }
        if (is_due) {
            tenants_each(keeper->tenants, lead, keeper);
            renew_node(keeper);
        }
        wait_a_tick();
    }
    return NULL;
}

/* Finds tenants, and looks for what other daemons have changed, as soon as there is a hint. */
static void *
watch(void *arg)
{
    struct keeper *keeper = arg;
    int64_t due = 0;
    while (!atomic_load(&keeper->closing)) {
        if (clock_steady_ms() >= due) {
            due = clock_steady_ms() + keeper->lease_ms / 3;
            find_tenants(keeper);
        }
        tenants_each(keeper->tenants, look, keeper);
        if (!keeper->listener)
            wait_a_tick();
        else if (hint_listener_wait(keeper->listener, TICK_MS))
            metrics_add(tenants_metrics(keeper->tenants), &metric_hints, 0, 1);
    }
    return NULL;
}

static void
end_threads(struct keeper *keeper)
{
    atomic_store(&keeper->closing, true);
    for (int i = 0; i < N_THREADS; i++)
        if (keeper->threads[i].runs)
            pthread_join(keeper->threads[i].id, NULL);
    hint_listener_free(&keeper->listener);
}

static bool
start_threads(struct keeper *keeper, struct api_problem *p)
{
    static void *(*const run[N_THREADS])(void *) = {check, keep, watch};
    int rc = 0;
    for (int i = 0; !rc && i < N_THREADS; i++) {
        rc = pthread_create(&keeper->threads[i].id, NULL, run[i], keeper);
        keeper->threads[i].runs = !rc;
    }
    if (rc)
        end_threads(keeper);
    return !rc || api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                  "starting a thread: %s", strerror(rc));
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
    if (!start_threads(keeper, p)) {
        free(keeper);
        return false;
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
        store_log_failure(&problem);
    free(*keeper);
    *keeper = NULL;
}
