/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: workers.count lanes run jobs, and up to workers.short_count lanes do the short
 * work (checking uploads, describing models, plans), so that short work never waits behind
 * long work.
 */
#ifndef QDQD_POOL_POOL_H
#define QDQD_POOL_POOL_H

#include "jobs/job.h"
#include "workers/message.h"

struct pool;
struct service;
struct tenants;

/* Opens the pool, which runs the jobs of all tenants. Their services refer to it
   from then on. */
bool pool_open(struct tenants *tenants, const struct settings *settings,
               struct pool **ret, struct api_problem *p);
/*
 * Has a worker do short work for a service: blocks until the answer arrives. The
 * request and its descriptors are borrowed. On success *ret is the text of the answer,
 * which the caller frees.
 */
bool pool_ask(const struct service *service, const struct message *request, char **ret,
              struct api_problem *p);
/* Returns whether worker processes cannot be started, so that no work is done at
   present. */
bool pool_is_failing(struct pool *pool);
/* Returns whether no short work waits or runs. */
bool pool_is_idle(struct pool *pool);
/* Waits for the lanes that run jobs, after tenants_drain() (and tenants_stop()), and ends
   all short work. */
void pool_join(struct pool *pool);
/* Frees the pool. No thread may call pool_ask() any more. */
void pool_close(struct pool **pool);

#endif
