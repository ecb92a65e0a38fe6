/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/sweeper.h"
#include "base/clock.h"
#include "library/sweep.h"
#include "settings/settings.h"
#include "tenants/tenants.h"

#define MOST_MS 60000 /* longest time between two sweeps */
#define LEAST_MS 100  /* shortest time, for retention of seconds */
#define PARTS_OF_TIME \
    8 /* a removal may be late by this fraction (1/8) of the retention */

static int64_t
interval(const struct settings *settings)
{
    int64_t times[] = {settings->retention_jobs, settings->retention_files};
    int64_t ms = MOST_MS;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] && times[i] * 1000 / PARTS_OF_TIME < ms)
            ms = times[i] * 1000 / PARTS_OF_TIME;
    return ms < LEAST_MS ? LEAST_MS : ms;
}

/* Sweeps one tenant's library for one round and logs a failure. *arg is whether
   there is more to remove. */
static void
sweep(void *arg, const struct service *service)
{
    bool *more = arg, left = false;
    struct api_problem problem = {0};
    if (!sweep_round(service->library, service->settings, clock_wall_ms(), &left,
                     &problem))
        sweep_log_failure(service->library, &problem);
    *more = *more || left;
}

/* Sweeps when it is time to. Returns the time of the next sweep in steady ms. */
static int64_t
sweep_at(struct tenants *tenants, const struct settings *settings, int64_t due)
{
    bool more = false;
    if (clock_steady_ms() < due)
        return due;
    tenants_each(tenants, sweep, &more);
    return clock_steady_ms() + (more ? 0 : interval(settings));
}

/* Calls the function between sweeps when it is time to. Returns the time of the next
   call. */
static int64_t
pulse_at(const struct sweeper_pulse *pulse, int64_t due)
{
    if (!pulse->ms)
        return INT64_MAX;
    if (clock_steady_ms() < due)
        return due;
    pulse->fn(pulse->arg);
    return clock_steady_ms() + pulse->ms;
}

int
sweeper_run(struct tenants *tenants, const struct settings *settings,
            const sigset_t *signals, const struct sweeper_pulse *pulse)
{
    int64_t due = 0, beat = 0;
    int got;
    do {
        due = sweep_at(tenants, settings, due);
        beat = pulse_at(pulse, beat);
        int64_t ms = (due < beat ? due : beat) - clock_steady_ms();
        if (ms < 0)
            ms = 0;
        const struct timespec wait = {ms / 1000, ms % 1000 * 1000000};
        got = sigtimedwait(signals, NULL, &wait);
    } while (got < 0);
    return got;
}
