/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `struct library` that library.c and leftovers.c share. No other file
   includes this header. */
#ifndef QDQD_LIBRARY_LIBRARY_INNER_H
#define QDQD_LIBRARY_LIBRARY_INNER_H

#include "base/lock.h"
#include "library/bucket.h"
#include "library/library.h"

#include <stdatomic.h>

struct library {
    int dir, ballast;
    const char *tenant;         /* name for the log; NULL: not set */
    library_sharers_fn sharers; /* who shares the disk; NULL: nobody */
    void *sharers_arg;
    struct blobs *blobs;
    struct store *store;
    const struct bucket *bucket; /* where the blobs are; NULL: in the folder */
    int64_t opened_at;           /* steady clock, in ms */
    int64_t scrub_at;            /* time of the next scrub by that clock */
    /* The next page of the bucket's list, and when it is looked at; only the thread that sweeps
       uses them. */
    char bucket_token[BUCKET_TOKEN];
    int64_t bucket_at;
    bool owns_prefix; /* the objects are known to be this record's */
    /* The bytes of the blobs that rows name, where those alone count, and since when they are
       known, by steady clock; 0: they have to be counted. */
    _Atomic int64_t stored_bytes, stored_at;
    /* Likewise the bytes of the rows, where a database elsewhere has to be asked for them. */
    _Atomic int64_t record_bytes, record_at;
    /* steady clock of the next look at the folder and of its next count, for the same thread */
    int64_t folder_at, count_at;
    bool has_leftovers;        /* only the thread that sweeps uses it */
    struct lock lock;          /* held while rows and blobs change together */
    struct incoming *incoming; /* guarded by lock */
    atomic_int unsynced;       /* files that are synced later (late_sync.h) */
    atomic_bool late_busy;     /* a thread is syncing them */
};

/* Returns whether a thread is publishing the blob. The caller holds the lock. */
bool library_is_incoming(const struct library *library, const char *id);

/* Keeps blobs that are about to be stored in a folder that daemons share (shared_folder.c). */
bool library_unmark(struct library *library, char (*ids)[DIGEST_SIZE], size_t n,
                    struct api_problem *p);

#endif
