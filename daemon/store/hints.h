/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints between the daemons that share a record: one that has changed something says so, and
 * the others look at once. Nothing depends on a hint, because each daemon also looks now and
 * then. There are none where store.direct_url is empty: a pooler does not pass them on.
 */
#ifndef QDQD_STORE_HINTS_H
#define QDQD_STORE_HINTS_H

#include "store/store.h"

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
