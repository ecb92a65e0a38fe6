/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes: threads with one worker process each. workers.count of them run jobs, one
 * does the short work (checking uploads, describing models, plans), so that short work
 * never stands behind long work. Each lane starts its process when it first needs one,
 * keeps it warm and replaces it when it dies or has done workers.max_jobs. No process
 * works for two tenants: what one has done to it is no matter of another's.
 */
#ifndef QDQD_POOL_POOL_H
#define QDQD_POOL_POOL_H

#include "jobs/job.h"
#include "workers/message.h"

struct pool;
struct service;
struct tenants;

/* Runs the jobs of all tenants, whose services have it from then on. */
bool pool_open(struct tenants *tenants, const struct settings *settings,
               struct pool **ret, struct api_problem *p);
/*
 * Has short work done by the service's pool: blocks the caller until the answer is there.
 * The request and its descriptors are borrowed. On success *ret is the answer's text,
 * which the caller frees.
 */
bool pool_ask(const struct service *service, const struct message *request, char **ret,
              struct api_problem *p);
/* Does one worker process after the other die, so that nothing is done at present? */
bool pool_is_failing(struct pool *pool);
/* Waits for the lanes that run jobs, after tenants_drain() (and tenants_stop()). */
void pool_join(struct pool *pool);
/* Nobody may ask any more. */
void pool_close(struct pool **pool);

#endif
