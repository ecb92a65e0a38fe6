/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/carriers.h"
#include "base/clock.h"
#include "carriers/pieces.h"
#include "tenants/tenants.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_THREADS = 16,
    /* pieces of one kind that a tenant may have at the same time */
    MOST_OF_A_KIND = 3,
    /* threads that only tenants get which have no piece of work yet */
    FOR_OTHERS = 6,
    MOST_WAIT_MS = 60000,
    PAUSE_MS = 1000
};

enum piece { NOTHING, FETCH, DELIVERY, POLL };

struct carriers {
    struct tenants *tenants;
    struct bell *bell;
    struct polls *polls;
    atomic_bool closing;
    struct lock look; /* held by the thread that looks, or waits, for work */
    /* guarded by look: */
    unsigned turn; /* the tenant that is asked first, so that all have their turn */
    size_t n;      /* threads that were started; for the main thread */
    struct thread {
        struct carriers *carriers;
        struct carrier_work work;
        struct store_job job;           /* of a FETCH */
        struct store_delivery delivery; /* of a DELIVERY */
        struct poll poll;               /* of a POLL */
        /* The thread sets both while it looks for work, and sets them back when the work has
           ended. */
        _Atomic(enum piece) piece;
        _Atomic(const struct service *) service;
        pthread_t id;
    } threads[N_THREADS];
};

/* A search through all tenants for a piece of work. */
struct look {
    struct thread *thread;
    unsigned at, first; /* the tenant looked at, the first of this turn */
    int round;          /* 0: counts, 1: from the first one on, 2: those before it */
    bool found, failed;
    int64_t wait; /* ms until the next piece of work is due; -1: there is none */
};

/* --- what there is to do ---------------------------------------------------- */

/*
 * Returns whether a tenant may have one more piece of work of this kind now. A remote can be
 * slow for as long as it likes, and its tenant's work with it. The other tenants' must not wait
 * for that: a tenant that has some gets more only while there are threads left for those that
 * have none.
 */
static bool
may_have(const struct carriers *carriers, const struct service *service,
         enum piece piece)
{
    size_t busy = 0, own = 0, same = 0;
    for (size_t i = 0; i < N_THREADS; i++) {
        const struct thread *thread = &carriers->threads[i];
        enum piece does = atomic_load(&thread->piece);
        bool is_own = does != POLL && atomic_load(&thread->service) == service;
        busy += does != NOTHING;
        own += does != NOTHING && is_own;
        same += does == piece && is_own;
    }
    return same < MOST_OF_A_KIND && (!own || N_THREADS - busy > FOR_OTHERS);
}

static void
set_piece(struct thread *thread, enum piece piece, const struct service *service)
{
    atomic_store(&thread->service, service);
    atomic_store(&thread->piece, piece);
}

static void
log_failure(struct look *look, const struct api_problem *problem)
{
    look->failed = true;
    store_log_failure(problem);
}

static bool
claim_fetch(struct look *look, const struct service *service)
{
    struct thread *thread = look->thread;
    struct api_problem problem = {0};
    bool any;
    if (!jobs_fetch_claim(service->jobs, &thread->work.slot, &thread->job, &any,
                          &problem))
        log_failure(look, &problem);
    else if (any)
        set_piece(thread, FETCH, service);
    return atomic_load(&thread->piece) == FETCH;
}

static bool
claim_delivery(struct look *look, const struct service *service)
{
    struct thread *thread = look->thread;
    struct api_problem problem = {0};
    bool any;
    if (!jobs_delivery_claim(service->jobs, &thread->work.delivery, &thread->delivery,
                             &any, &problem))
        log_failure(look, &problem);
    else if (any)
        set_piece(thread, DELIVERY, service);
    return atomic_load(&thread->piece) == DELIVERY;
}

static void
look_at(void *arg, const struct service *service)
{
    struct look *look = arg;
    const struct carriers *carriers = look->thread->carriers;
    struct api_problem problem = {0};
    unsigned at = look->at++;
    int64_t wait;
    if (look->round == 0 || look->found || atomic_load(&carriers->closing) ||
        (look->round == 1) != (at >= look->first))
        return;
    bool fetches = may_have(carriers, service, FETCH);
    bool deliveries = may_have(carriers, service, DELIVERY);
    look->thread->work.service = service;
    look->found = (fetches && claim_fetch(look, service)) ||
                  (deliveries && claim_delivery(look, service));
    /* The end of another piece lets a thread look again at what the tenant may not have. */
    if (look->found || (!fetches && !deliveries))
        return;
    if (!store_outbox_wait(library_store(service->library), clock_wall_ms(), fetches,
                           deliveries, &wait, &problem))
        log_failure(look, &problem);
    else if (wait >= 0 && (look->wait < 0 || wait < look->wait))
        look->wait = wait;
}

/* Claims the next piece of work: a poll, or one of the tenant whose turn it is. Returns how long
   to wait where there is none, in ms. */
static int64_t
claim_next(struct thread *thread)
{
    struct carriers *carriers = thread->carriers;
    struct look look = {.thread = thread, .wait = -1};
    int64_t poll_ms;
    if (poll_claim(carriers->polls, carriers->tenants, &thread->poll, &poll_ms)) {
        set_piece(thread, POLL, NULL);
        return 0;
    }
    tenants_each(carriers->tenants, look_at, &look);
    look.first = look.at ? carriers->turn++ % look.at : 0;
    for (look.round = 1; look.round <= 2; look.round++) {
        look.at = 0;
        tenants_each(carriers->tenants, look_at, &look);
    }
    int64_t ms = look.wait < 0 ? MOST_WAIT_MS : look.wait;
    if (poll_ms >= 0 && poll_ms < ms)
        ms = poll_ms;
    if (look.failed && ms < PAUSE_MS)
        ms = PAUSE_MS;
    return ms < MOST_WAIT_MS ? ms : MOST_WAIT_MS;
}

/* --- threads ---------------------------------------------------------------- */

/* Waits for a piece of work and claims it. One thread does so at a time, and the others that
   are idle wait for it. Returns false when the carriers close. */
static bool
find_work(struct thread *thread)
{
    struct carriers *carriers = thread->carriers;
    bool found = false;
    lock_acquire(&carriers->look);
    while (!found && !atomic_load(&carriers->closing)) {
        uint64_t heard = bell_heard_carriers(carriers->bell);
        int64_t ms = claim_next(thread);
        found = atomic_load(&thread->piece) != NOTHING;
        if (!found && ms > 0 && !atomic_load(&carriers->closing))
            bell_wait_carriers(carriers->bell, heard, clock_steady_ms() + ms);
    }
    lock_release(&carriers->look);
    return found;
}

static void
do_work(struct thread *thread)
{
    struct carriers *carriers = thread->carriers;
    struct carrier_work *work = &thread->work;
    switch (atomic_load(&thread->piece)) {
    case FETCH:
        fetch_inputs(work, &thread->job);
        store_job_fini(&thread->job);
        break;
    case DELIVERY:
        deliver_one(work, &thread->delivery);
        jobs_delivery_leave(work->service->jobs, &work->delivery);
        store_delivery_fini(&thread->delivery);
        break;
    case POLL:
        poll_hook(carriers->polls, carriers->tenants, work, &thread->poll);
        break;
    case NOTHING:
        break;
    }
    set_piece(thread, NOTHING, NULL);
    /* The tenant, or the remote of the poll, may have another piece now. */
    bell_ring_carriers(carriers->bell);
}

static void *
run(void *arg)
{
    while (find_work(arg))
        do_work(arg);
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
    lock_init(&carriers->look, LOCK_CARRIERS);
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
    return api_fail(p, API_IO, "starting a thread: %s", strerror(rc));
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
    lock_fini(&old->look);
    free(old);
    *carriers = NULL;
}
