/* SPDX-License-Identifier: Apache-2.0 */
/* A record that does not answer: for how long a thread waits for it, and the log, which has a line
   when an outage begins, and one when it ends. */
#include "config.h"
#include "base/log.h"
#include "store/inner.h"

#include <stdatomic.h>

static _Thread_local int64_t longest_wait;
static atomic_bool is_away; /* for all tenants, which have one database */

void
store_log_failure(const struct api_problem *problem)
{
    char quoted[LOG_QUOTED];
    bool passes = problem->code == API_UNAVAILABLE;
    if (!passes || !atomic_exchange(&is_away, true))
        log_error("store_failed", "detail=%s", log_quote(quoted, problem->detail));
}

void
db_answered(void)
{
    if (atomic_load_explicit(&is_away, memory_order_relaxed) &&
        atomic_exchange(&is_away, false))
        log_info("store_answers", "%s", "detail=\"the database answers again\"");
}

void
store_wait_at_most(int64_t ms)
{
    longest_wait = ms;
}

int64_t
db_longest_wait(void)
{
    return longest_wait;
}
