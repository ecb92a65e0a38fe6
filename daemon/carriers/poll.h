/* SPDX-License-Identifier: Apache-2.0 */
/* Asking remotes for new versions of models, where no message tells of them. */
#ifndef QDQD_CARRIERS_POLL_H
#define QDQD_CARRIERS_POLL_H

#include "carriers/ask.h"

struct polls; /* when each hook asks next */
struct tenants;

/* Returns NULL when out of memory. */
struct polls *polls_new(void);
void polls_free(struct polls **polls);
/*
 * Asks for the hook that is due first and submits jobs for what is new. One thread at a time
 * does so. Returns whether a hook was due; if none was, *ret_ms is the time until one is, -1:
 * never.
 */
bool poll_one(struct polls *polls, struct tenants *tenants, struct carrier_work *work,
              int64_t *ret_ms);

#endif
