/* SPDX-License-Identifier: Apache-2.0 */
/* The lane for short work: checking uploads, describing models, making plans.
   Requests wait for it in a queue, which serves tenants in turns. */
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
/* Frees the lane. No thread may call short_work_ask() any more. */
void short_work_close(struct short_work **work);

#endif
