/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that serves one tenant. A request gets the service of the tenant that its
 * access token names and knows no other; a lane has that of the tenant whose job it runs.
 * All that it points to lives longer than any request or job.
 */
#ifndef QDQD_TENANTS_SERVICE_H
#define QDQD_TENANTS_SERVICE_H

#include "base/digest.h"
#include "workers/scripts.h"

#include <stdint.h>

struct backends;
struct jobs;
struct library;
struct metrics;
struct pool;
struct settings;
struct tenants;

/* The turns that a tenant has had of the short work; guarded by the pool's lock. */
struct pool_share {
    uint64_t served; /* the turn of the last one, 0: none yet */
};

struct service {
    struct tenants *tenants; /* all */
    struct metrics *metrics;
    struct backends *backends;
    const char *tenant; /* "": without a name */
    const struct settings *settings;
    struct library *library;
    struct jobs *jobs;
    struct pool *pool;
    struct pool_share *share;
    char scripts[DIGEST_SIZE];  /* scripts_digest() at the start */
    char runtime[RUNTIME_SIZE]; /* runtime_identity(), likewise */
};

#endif
