/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/pool.h"
#include "pool/job_lane.h"
#include "pool/short_work.h"
#include "settings/settings.h"
#include "tenants/tenants.h"

#include <stdlib.h>

struct pool {
    struct short_work *short_work;
    size_t n_job_lanes;
    struct job_lane *job_lanes;
};

bool
pool_ask(const struct service *service, const struct message *request, char **ret,
         struct api_problem *p)
{
    return short_work_ask(service->pool->short_work, service, request, ret, p);
}

bool
pool_is_failing(struct pool *pool)
{
    size_t n = 0;
    for (size_t i = 0; i < pool->n_job_lanes; i++)
        n += lane_is_failing(&pool->job_lanes[i].lane);
    return n == pool->n_job_lanes || short_work_is_failing(pool->short_work);
}

bool
pool_open(struct tenants *tenants, const struct settings *settings, struct pool **ret,
          struct api_problem *p)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool)
        pool->job_lanes =
            calloc((size_t)settings->workers_count, sizeof *pool->job_lanes);
    if (!pool || !pool->job_lanes) {
        free(pool);
        return api_problem_no_memory(p);
    }
    pool->n_job_lanes = (size_t)settings->workers_count;
    tenants_set_pool(tenants, pool);
    bool ok = short_work_open(tenants, settings, &pool->short_work, p);
    for (size_t i = 0; ok && i < pool->n_job_lanes; i++)
        ok = job_lane_start(&pool->job_lanes[i], tenants, settings, p);
    if (ok) {
        *ret = pool;
        return true;
    }
    tenants_drain(tenants);
    tenants_stop(tenants);
    pool_close(&pool);
    return false;
}

bool
pool_is_idle(struct pool *pool)
{
    return short_work_is_idle(pool->short_work);
}

void
pool_join(struct pool *pool)
{
    if (pool->short_work)
        short_work_stop(pool->short_work);
    for (size_t i = 0; i < pool->n_job_lanes; i++)
        lane_join(&pool->job_lanes[i].lane);
}

void
pool_close(struct pool **pool)
{
    struct pool *old = *pool;
    if (!old)
        return;
    pool_join(old);
    short_work_close(&old->short_work);
    free(old->job_lanes);
    free(old);
    *pool = NULL;
}
