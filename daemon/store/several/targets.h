/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job with several targets: a row of its own, which no lane claims, and one for each target, its
 * `parent`'s, which is a job like any other. A trigger has the first follow the others (store/steps.h).
 * Lists, counts and removals of jobs deal with the first one alone; the rules of store/store.h hold.
 */
#ifndef QDQD_STORE_SEVERAL_TARGETS_H
#define QDQD_STORE_SEVERAL_TARGETS_H

#include "store/store.h"

/* The rows of the targets, with `target`, and the identity of each or NULL. Borrowed. */
struct store_target {
    struct store_job job;
    const char *identity;
};

/*
 * Adds a job and its targets, all or none, as store_job_add() adds one; the key and the digest of
 * `asking` are the job's. Targets are answered by earlier jobs or join them; where all are, the job
 * has ended. NOT_FOUND.
 */
bool store_targets_add(struct store *store, const struct store_job *job,
                       const struct store_asking *asking,
                       const struct store_target *targets, size_t n,
                       struct api_problem *p);

/* Finds the row of a target. NOT_FOUND: there is no such job, or it has no such target. */
bool store_target_get(struct store *store, const char *job, const char *target,
                      struct store_job *ret, struct api_problem *p);

/* Lists the ids of the targets, in their order; *ret_n is 0 where the job has none. The caller frees
   *ret. */
bool store_target_ids(struct store *store, const char *job, char (**ret)[JOB_ID_SIZE],
                      size_t *ret_n, struct api_problem *p);

#endif
