/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/keeper.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/job.h"
#include "settings/settings.h"
#include "tenants/node.h"
#include "tenants/service.h"
#include "tenants/tenants.h"

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
    atomic_bool closing;
};

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
look(void *arg, const struct service *service)
{
    (void)arg;
    jobs_look(service->jobs);
}

static void
log_failure(const struct api_problem *problem)
{
    char quoted[LOG_QUOTED];
    log_error("store_failed", "detail=%s", log_quote(quoted, problem->detail));
}

/* Renews this daemon's row in the list of nodes. */
static void
tell(const struct keeper *keeper)
{
    struct api_problem problem = {0};
    if (!node_tell(keeper->tenants, LEASES_KEPT * keeper->lease_ms, &problem))
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
            tell(keeper);
        }
        tenants_each(keeper->tenants, look, keeper);
        nanosleep(&tick, NULL);
    }
    return NULL;
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
    int rc = pthread_create(&keeper->thread, NULL, keep, keeper);
    if (rc) {
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
    atomic_store(&(*keeper)->closing, true);
    pthread_join((*keeper)->thread, NULL);
    if (!node_leave((*keeper)->tenants, &problem))
        log_failure(&problem);
    free(*keeper);
    *keeper = NULL;
}
