/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/carriers.h"
#include "base/clock.h"
#include "base/log.h"
#include "carriers/deliver.h"
#include "carriers/fetch.h"
#include "carriers/poll.h"
#include "store/outbox.h"
#include "tenants/tenants.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { N_THREADS = 3, MOST_WAIT_MS = 60000, PAUSE_MS = 1000 };

struct carriers {
    struct tenants *tenants;
    struct bell *bell;
    struct polls *polls;
    atomic_bool closing;
    atomic_uint turn; /* the tenant that is asked first, so that all have their turn */
    size_t n;
    struct thread {
        struct carriers *carriers;
        struct carrier_work work;
        pthread_t id;
    } threads[N_THREADS];
};

/* A search through all tenants for a piece of work. */
struct look {
    struct thread *thread;
    unsigned at, first,
        n;     /* the tenant looked at, the first of this turn, their number */
    int round; /* 0: counts, 1: from the first one on, 2: those before it */
    bool did, failed;
    int64_t wait; /* ms until the next piece of work is due; -1: there is none */
};

static void
log_failure(struct look *look, const struct api_problem *problem)
{
    char quoted[LOG_QUOTED];
    look->failed = true;
    log_error("store_failed", "detail=%s", log_quote(quoted, problem->detail));
}

static bool
fetch(struct look *look, const struct service *service)
{
    struct carrier_work *work = &look->thread->work;
    struct store_job job;
    struct api_problem problem = {0};
    bool any;
    if (!jobs_fetch_claim(service->jobs, &work->slot, &job, &any, &problem))
        log_failure(look, &problem);
    else if (any) {
        fetch_inputs(work, &job);
        store_job_fini(&job);
        return true;
    }
    return false;
}

static bool
deliver(struct look *look, const struct service *service)
{
    struct store_delivery delivery;
    struct api_problem problem = {0};
    bool any;
    struct carrier_work *work = &look->thread->work;
    if (!jobs_delivery_claim(service->jobs, &work->delivery, &delivery, &any, &problem))
        log_failure(look, &problem);
    else if (any) {
        deliver_one(work, &delivery);
        jobs_delivery_leave(service->jobs, &work->delivery);
        store_delivery_fini(&delivery);
        return true;
    }
    return false;
}

static void
look_at(void *arg, const struct service *service)
{
    struct look *look = arg;
    struct api_problem problem = {0};
    unsigned at = look->at++;
    int64_t wait;
    if (look->round == 0 || look->did ||
        atomic_load(&look->thread->carriers->closing) ||
        (look->round == 1) != (at >= look->first))
        return;
    look->thread->work.service = service;
    look->did = fetch(look, service) || deliver(look, service);
    if (look->did)
        return;
    if (!store_outbox_wait(library_store(service->library), clock_wall_ms(), &wait,
                           &problem))
        log_failure(look, &problem);
    else if (wait >= 0 && (look->wait < 0 || wait < look->wait))
        look->wait = wait;
}

/* Does one piece of work, of the tenant whose turn it is. Returns how long to wait, in ms. */
static int64_t
run_next(struct thread *thread)
{
    struct carriers *carriers = thread->carriers;
    struct look look = {.thread = thread, .wait = -1};
    int64_t poll_ms;
    if (poll_one(carriers->polls, carriers->tenants, &thread->work, &poll_ms))
        return 0;
    tenants_each(carriers->tenants, look_at, &look);
    look.first = look.at ? atomic_fetch_add(&carriers->turn, 1) % look.at : 0;
    for (look.round = 1; look.round <= 2; look.round++) {
        look.at = 0;
        tenants_each(carriers->tenants, look_at, &look);
    }
    if (look.did)
        return 0;
    int64_t ms = look.wait < 0 ? MOST_WAIT_MS : look.wait;
    if (poll_ms >= 0 && poll_ms < ms)
        ms = poll_ms;
    if (look.failed && ms < PAUSE_MS)
        ms = PAUSE_MS;
    return ms < 0 ? 0 : ms < MOST_WAIT_MS ? ms : MOST_WAIT_MS;
}

static void *
run(void *arg)
{
    struct thread *thread = arg;
    struct bell *bell = thread->carriers->bell;
    while (!atomic_load(&thread->carriers->closing)) {
        uint64_t heard = bell_heard_carriers(bell);
        int64_t ms = run_next(thread);
        if (ms > 0 && !atomic_load(&thread->carriers->closing))
            bell_wait_carriers(bell, heard, clock_steady_ms() + ms);
    }
    return NULL;
}

bool
carriers_open(struct tenants *tenants, const struct settings *settings,
              struct carriers **ret, struct api_problem *p)
{
    struct carriers *carriers = calloc(1, sizeof *carriers);
    if (!carriers)
        return api_problem_no_memory(p);
    carriers->tenants = tenants;
    carriers->bell = tenants_bell(tenants);
    carriers->polls = polls_new();
    if (!carriers->polls) {
        free(carriers);
        return api_problem_no_memory(p);
    }
    int rc = 0;
    while (!rc && carriers->n < N_THREADS) {
        struct thread *thread = &carriers->threads[carriers->n];
        thread->carriers = carriers;
        ask_init(&thread->work, settings, tenants_metrics(tenants));
        rc = pthread_create(&thread->id, NULL, run, thread);
        if (rc)
            ask_fini(&thread->work);
        else
            carriers->n++;
    }
    if (!rc) {
        *ret = carriers;
        return true;
    }
    carriers_close(&carriers);
    return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "starting a thread: %s",
                           strerror(rc));
}

void
carriers_close(struct carriers **carriers)
{
    struct carriers *old = *carriers;
    if (!old)
        return;
    atomic_store(&old->closing, true);
    bell_ring_carriers(old->bell);
    for (size_t i = 0; i < old->n; i++) {
        /* A process that is started after this is killed by the next turn. */
        const struct timespec a_moment = {0, 20 * 1000000};
        struct thread *thread = &old->threads[i];
        struct timespec until;
        do {
            process_kill(&thread->work.process);
            nanosleep(&a_moment, NULL);
            clock_gettime(CLOCK_REALTIME, &until);
        } while (pthread_timedjoin_np(thread->id, NULL, &until) != 0);
        ask_fini(&thread->work);
    }
    polls_free(&old->polls);
    free(old);
    *carriers = NULL;
}
