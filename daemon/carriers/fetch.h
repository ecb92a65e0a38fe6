/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching the inputs of a job from remotes. */
#ifndef QDQD_CARRIERS_FETCH_H
#define QDQD_CARRIERS_FETCH_H

#include "carriers/ask.h"

/* Fetches the inputs that the job in the slot of `work` lacks, checks them like an
   upload, and stores them; then ends the fetch in one of the ways of jobs/job.h. */
void fetch_inputs(struct carrier_work *work, const struct store_job *job);

#endif
