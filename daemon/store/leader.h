/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where daemons share a record, one of them leads: it alone removes what is too old, and
 * blobs that no row names. The leader is a row with a lease and a fence, and each removal
 * makes sure, in its own transaction, that this daemon still leads. A record in SQLite has
 * one daemon, which leads.
 */
#ifndef QDQD_STORE_LEADER_H
#define QDQD_STORE_LEADER_H

#include "store/store.h"

/* Renews this daemon's lease as the leader, or makes it the leader when nobody else is. */
bool store_lead(struct store *store, const char *node, struct api_problem *p);
/* Lets another daemon lead at once. */
bool store_lead_end(struct store *store, struct api_problem *p);
/* Returns whether this daemon was the leader when store_lead() returned. */
bool store_leads(struct store *store);
/* Asks the record whether this daemon leads now. CANCELLED: it does not. */
bool store_still_leads(struct store *store, struct api_problem *p);

/* How blobs without a row are removed where they are files in a folder: one gets a mark
   first, and is removed when the mark is old and there is still no row. */
struct store_blob_sweep {
    int64_t now, grace; /* ms */
    /* Takes the blob's name away, so that it can be given back. Called within the
       transaction that takes the mark away. */
    void (*set_aside)(void *arg, const char *id);
    void *arg;
};
/* Marks or removes a blob. *ret_gone: it was set aside; where the call fails, it has to be
   given back. CANCELLED: this daemon does not lead. */
bool store_sweep_blob(struct store *store, const char *id,
                      const struct store_blob_sweep *sweep, bool *ret_gone,
                      struct api_problem *p);
/* Keeps blobs that are about to be stored, and waits for their removal if that is under
   way. Only where the record is shared. */
bool store_unmark_blobs(struct store *store, char (*ids)[DIGEST_SIZE], size_t n,
                        struct api_problem *p);

/* Calls `fn` with the name of each tenant that has a schema. Nothing where the record is not
   shared. */
bool store_each_tenant(struct store *store, void (*fn)(void *arg, const char *name),
                       void *arg, struct api_problem *p);

/* Adds up what connections have counted of the bytes of jobs, so that their rows stay few. */
bool store_fold_counts(struct store *store, struct api_problem *p);

#endif
