/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching the inputs of a job from remotes. */
#ifndef QDQD_CARRIERS_FETCH_H
#define QDQD_CARRIERS_FETCH_H

#include "carriers/ask.h"

/* Fetches what the job that was claimed into the hand's slot lacks, checks it like an
   upload, and stores it; then ends the fetch in one of the ways of jobs/job.h. */
void fetch_inputs(struct hand *hand, const struct store_job *job);

#endif
