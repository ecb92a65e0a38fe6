/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `struct tenants` that its own files share. No other file includes this header. */
#ifndef QDQD_TENANTS_INNER_H
#define QDQD_TENANTS_INNER_H

#include "base/lock.h"
#include "tenants/tenants.h"

struct tenant {
    char name[TENANT_SIZE];
    /* the settings with this tenant's limits; the texts are borrowed */
    struct settings settings;
    struct service service;
    struct pool_share share;
    struct library *library;
    struct jobs *jobs;
    /* guarded by `turns`: */
    uint64_t served; /* number of the turn in which its last job was claimed */
    /* The time for which it has had lanes, without that of the jobs that run: there are so many
       of those, and the times of their claims have that sum. turns.c says what it is for. */
    int64_t spent_ms, claimed_ms;
    size_t running;
    uint64_t looked; /* number of the last look at its queue */
    _Atomic(struct tenant *) next;
};

/* A tenant that a thread is opening, on that thread's stack. */
struct opening {
    const char *name;
    struct opening *next;
};

struct tenants {
    const struct settings *settings;
    const struct bucket *bucket; /* NULL: blobs are files */
    struct metrics *metrics;
    struct backends *backends;
    struct bell bell;
    char scripts[DIGEST_SIZE], runtime[RUNTIME_SIZE];
    struct lock turns; /* held while a job is claimed; acquired before `lock` */
    /* guarded by turns: */
    uint64_t turn, look;
    int64_t last_spent_ms; /* of the tenant of the last turn */
    /* Tenants are only added, and a reader of the list needs no lock. */
    _Atomic(struct tenant *) first;
    pthread_cond_t opened;
    struct lock lock; /* held by no thread that waits for a database */
    /* guarded by lock: */
    _Atomic(struct tenant *) *last;
    struct opening *opening;
    bool serves; /* requests are served */
    struct pool *pool;
    bool draining;
    struct tenant_own *own; /* the tenants' own limits */
    size_t n_own;
    struct remotes *remotes; /* shared */
};

/* Returns the tenant after `tenant`, or the first one for NULL. */
static inline struct tenant *
tenants_after(struct tenants *tenants, const struct tenant *tenant)
{
    return tenant ? tenant->next : tenants->first;
}

#endif
