/* SPDX-License-Identifier: Apache-2.0 */
/* A lane that runs the jobs of all tenants in turns. */
#ifndef QDQD_POOL_JOB_LANE_H
#define QDQD_POOL_JOB_LANE_H

#include "pool/ending.h"

struct tenants;

struct job_lane {
    struct lane lane;
    struct tenants *tenants;
    struct endings endings;
    struct ending *ending; /* of the job that the worker runs */
    /* The time that the job has spent in each stage, for the metrics: */
    int stage;     /* the current stage; -1: none yet */
    int64_t since; /* when that stage began, steady clock in ms */
    /* in ms, plus 1 for each time that the stage was entered */
    int64_t spent[QDQ_N_STAGES];
};

/* Starts the lane, which claims and runs jobs until tenants_claim() returns false. */
bool job_lane_start(struct job_lane *job_lane, struct tenants *tenants,
                    const struct settings *settings, struct api_problem *p);

#endif
