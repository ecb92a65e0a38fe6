/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/sweeper.h"
#include "base/clock.h"
#include "library/library.h"
#include "settings/settings.h"
#include "tenants/tenants.h"

#define MOST_MS 60000 /* longest time between two sweeps */
#define SCRUB_MS 250  /* time between two parts of the check of all blobs */
#define LEAST_MS 100  /* shortest time, for retention of seconds */
#define PARTS_OF_TIME \
    8 /* a removal may be late by this fraction (1/8) of the retention */

static int64_t
interval(const struct settings *settings)
{
    int64_t times[] = {settings->retention_jobs, settings->retention_files,
                       settings->retention_leftovers};
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

/* A part of the check of all blobs. */
struct scrub {
    uint64_t n_tenants, bytes; /* bytes for each tenant */
    bool more;
};

static void
count_tenant(void *arg, const struct service *service)
{
    struct scrub *scrub = arg;
    (void)service;
    scrub->n_tenants++;
}

static void
scrub_tenant(void *arg, const struct service *service)
{
    struct scrub *scrub = arg;
    scrub->more |= sweep_scrub(service->library, scrub->bytes, clock_steady_ms());
}

/* Checks some bytes of the blobs when it is time to. Returns the time of the next
   check. */
static int64_t
scrub_at(struct tenants *tenants, const struct settings *settings, int64_t due)
{
    struct scrub scrub = {0};
    if (clock_steady_ms() < due)
        return due;
    if (settings->storage_scrub_rate == 0)
        return clock_steady_ms() + MOST_MS;
    tenants_each(tenants, count_tenant, &scrub);
    scrub.bytes = (uint64_t)settings->storage_scrub_rate * SCRUB_MS / 1000 /
                      (scrub.n_tenants ? scrub.n_tenants : 1) +
                  1;
    tenants_each(tenants, scrub_tenant, &scrub);
    return clock_steady_ms() + (scrub.more ? SCRUB_MS : MOST_MS);
}

int
sweeper_run(struct tenants *tenants, const struct settings *settings,
            const sigset_t *signals, const struct sweeper_pulse *pulse)
{
    int64_t due = 0, beat = 0, scrub = 0;
    int got;
    do {
        due = sweep_at(tenants, settings, due);
        scrub = scrub_at(tenants, settings, scrub);
        beat = pulse_at(pulse, beat);
        int64_t next = due < scrub ? due : scrub;
        int64_t ms = (next < beat ? next : beat) - clock_steady_ms();
        if (ms < 0)
            ms = 0;
        const struct timespec wait = {ms / 1000, ms % 1000 * 1000000};
        got = sigtimedwait(signals, NULL, &wait);
    } while (got < 0);
    return got;
}
