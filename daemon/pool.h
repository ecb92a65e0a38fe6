/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes: threads with one worker process each. workers.count of them run jobs, one
 * does the short work (checking uploads, describing models, plans), so that short work
 * never stands behind long work. Each lane starts its process when it first needs one,
 * keeps it warm and replaces it when it dies or has done workers.max_jobs.
 */
#ifndef QDQD_POOL_H
#define QDQD_POOL_H

#include "job.h"
#include "message.h"

struct pool;

bool pool_open(struct jobs *jobs, struct library *library,
               const struct settings *settings, struct pool **ret,
               struct api_problem *p);
/*
 * Has short work done: blocks the caller until the answer is there. The request and its
 * descriptors are borrowed. On success *ret is the answer's text, which the caller
 * frees.
 */
bool pool_ask(struct pool *pool, const struct message *request, char **ret,
              struct api_problem *p);
/* Waits for the lanes that run jobs, after jobs_drain() (and jobs_stop()). */
void pool_join(struct pool *pool);
/* Nobody may ask any more. */
void pool_close(struct pool **pool);

#endif
