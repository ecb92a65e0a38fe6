/* SPDX-License-Identifier: Apache-2.0 */
/* A runner: a lane that runs the jobs of all tenants in turns. */
#ifndef QDQD_POOL_RUNNER_H
#define QDQD_POOL_RUNNER_H

#include "pool/ending.h"

struct tenants;

struct runner {
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

/* Starts the runner, which claims and runs jobs until tenants_claim() returns false. */
bool runner_start(struct runner *runner, struct tenants *tenants,
                  const struct settings *settings, struct api_problem *p);

#endif
