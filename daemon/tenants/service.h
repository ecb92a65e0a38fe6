/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that serves one tenant. A request gets the service of the tenant that its
 * access token names and cannot reach another; a lane has the service of the tenant
 * whose job it runs. All members live longer than any request or job.
 */
#ifndef QDQD_TENANTS_SERVICE_H
#define QDQD_TENANTS_SERVICE_H

#include "api/digest.h"
#include "workers/scripts.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct backends;
struct jobs;
struct library;
struct metrics;
struct pool;
struct settings;
struct tenants;

/* A tenant's share of the workers. */
struct pool_share {
    /* guarded by the lock of the short work: */
    uint64_t served; /* number of the turn in which it was served last; 0: never */
    int running;     /* pieces of its short work that run now */
    /* any thread: */
    atomic_int deaths; /* of worker processes during its work, in a row */
    /* the time of the steady clock until which none of its work is begun, because of
       these deaths */
    _Atomic int64_t paused_until;
};

/* Returns whether the tenant's work has to wait because its workers died. */
bool pool_share_is_paused(struct pool_share *share);

struct service {
    struct tenants *tenants; /* all tenants */
    struct metrics *metrics;
    struct backends *backends;
    const char *tenant; /* the tenant's name; "": the tenant without a name */
    const struct settings *settings;
    struct library *library;
    struct jobs *jobs;
    struct pool *pool;
    struct pool_share *share;
    char scripts[DIGEST_SIZE];  /* scripts_digest() when the daemon started */
    char runtime[RUNTIME_SIZE]; /* runtime_identity() when the daemon started */
};

#endif
