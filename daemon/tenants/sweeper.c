/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/sweeper.h"
#include "base/clock.h"
#include "library/sweep.h"
#include "settings/settings.h"
#include "tenants/tenants.h"

#define MOST_MS 60000 /* between two sweeps */
#define LEAST_MS 100  /* where things are kept for seconds */
#define PARTS_OF_TIME \
    8 /* so much later than its time at most, by its time, things go */

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

/* One round for a tenant, whose failure is logged. *arg: are there more to come? */
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

/* Sweeps when it is time to; returns when that is again, steady ms. */
static int64_t
sweep_at(struct tenants *tenants, const struct settings *settings, int64_t due)
{
    bool more = false;
    if (clock_steady_ms() < due)
        return due;
    tenants_each(tenants, sweep, &more);
    return clock_steady_ms() + (more ? 0 : interval(settings));
}

/* Does what is to be done between sweeps; returns when that is again. */
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
