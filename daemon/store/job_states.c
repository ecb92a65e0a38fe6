/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/inner.h"
#include "base/check.h"

bool
store_job_may_change(enum api_job_state from, enum api_job_state to)
{
    static const bool may[API_N_JOB_STATES][API_N_JOB_STATES] = {
        [API_JOB_QUEUED] = {[API_JOB_RUNNING] = true,
                            [API_JOB_SUCCEEDED] = true,
                            [API_JOB_FAILED] = true,
                            [API_JOB_CANCELLED] = true},
        [API_JOB_RUNNING] = {[API_JOB_QUEUED] = true,
                             [API_JOB_SUCCEEDED] = true,
                             [API_JOB_FAILED] = true,
                             [API_JOB_CANCELLED] = true},
    };
    return from < API_N_JOB_STATES && to < API_N_JOB_STATES && may[from][to];
}

void
store_bind_change(struct stmt *stmt, int i, enum api_job_state from,
                  enum api_job_state to)
{
    QDQD_CHECK(store_job_may_change(from, to));
    bind_text(stmt, i, api_job_state_name(from));
    bind_text(stmt, i + 1, api_job_state_name(to));
}
