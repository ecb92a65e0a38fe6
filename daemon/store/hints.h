/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons that share a record notice each other's changes. Each looks now and then, with one
 * statement. One that has changed something may also give a hint, so that the others look at
 * once. Nothing depends on hints, and there are none where store.direct_url is empty: a pooler does
 * not pass them on.
 */
#ifndef QDQD_STORE_HINTS_H
#define QDQD_STORE_HINTS_H

#include "store/store.h"

/* A job that was looked at, and all of it that others change: the number of its changes of state,
   and then its progress. */
struct store_glance {
    char id[JOB_ID_SIZE];
    char version[96];
};

/* Looks whether a job waits for a lane, and at the jobs of `ids`, which are separated by commas.
   *ret has a glance at each that is there, in the order of their ids; free() frees it. */
bool store_look(struct store *store, const char *ids, bool *ret_queued,
                struct store_glance **ret, size_t *ret_n, struct api_problem *p);

/* Tells the daemons that something changed. A failure is ignored. */
void store_hint(struct store *store);

struct hint_listener;

/* Makes a listener on a database; NULL: out of memory. The URL is borrowed. One thread uses
   it. */
struct hint_listener *hint_listener_new(const char *url);
void hint_listener_free(struct hint_listener **listener);
/* Waits for a hint, for `ms` milliseconds at most. Connects when it is not connected. Returns
   whether there was a hint. */
bool hint_listener_wait(struct hint_listener *listener, int64_t ms);

#endif
