/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `struct library` that library.c and leftovers.c share. No other file
   includes this header. */
#ifndef QDQD_LIBRARY_LIBRARY_INNER_H
#define QDQD_LIBRARY_LIBRARY_INNER_H

#include "base/lock.h"
#include "library/library.h"

struct library {
    int dir, ballast;
    const char *tenant; /* name for the log; NULL: not set */
    struct blobs *blobs;
    struct store *store;
    int64_t opened_at;         /* steady clock, in ms */
    int64_t scrub_at;          /* time of the next scrub by that clock */
    bool has_leftovers;        /* only the thread that sweeps uses it */
    struct lock lock;          /* held while rows and blobs change together */
    struct incoming *incoming; /* guarded by lock */
};

/* Opens the library; with `adopt` also when its database is not that of its blobs. */
bool library_open_as(const char *path, bool adopt, struct library **ret,
                     struct api_problem *p);
/* Returns whether a thread is publishing the blob. The caller holds the lock. */
bool library_is_incoming(const struct library *library, const char *id);

#endif
