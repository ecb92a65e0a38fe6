/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes for short work: checking uploads, describing models, making plans. Requests
 * wait in a queue, which serves the tenants in turns. At most two lanes work for one tenant,
 * and the last free lane is kept for tenants for whom none works. So one tenant's slow work
 * does not delay another's while fewer than workers.short_count tenants have slow work.
 * Work of a tenant whose workers died, one after the other, waits a while.
 */
#ifndef QDQD_POOL_SHORT_WORK_H
#define QDQD_POOL_SHORT_WORK_H

#include "workers/message.h"

struct service;
struct settings;
struct short_work;
struct tenants;

/* Any thread may call these functions. */
bool short_work_open(struct tenants *tenants, const struct settings *settings,
                     struct short_work **ret, struct api_problem *p);
/* Has a worker do one request of the service's tenant; see pool_ask(). */
bool short_work_ask(struct short_work *work, const struct service *service,
                    const struct message *request, char **ret, struct api_problem *p);
bool short_work_is_failing(const struct short_work *work);
/* Returns whether no short work waits or runs. */
bool short_work_is_idle(struct short_work *work);
/* Ends all short work, and refuses any more: UNAVAILABLE. */
void short_work_stop(struct short_work *work);
/* Frees the lanes. No thread may call short_work_ask() any more. */
void short_work_close(struct short_work **work);

#endif
