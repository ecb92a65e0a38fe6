/* SPDX-License-Identifier: Apache-2.0 */
/* This daemon as one of several that may share a record. */
#ifndef QDQD_TENANTS_NODE_H
#define QDQD_TENANTS_NODE_H

#include "api/job.h"
#include "api/problem.h"

struct tenants;

/* Gives the daemon its id. Called once, before there are other threads. */
bool node_begin(struct api_problem *p);
/* Returns that id. */
const char *node_id(void);
/* Renews this daemon's row in a record that is shared; it is kept for `keep_ms`. */
bool node_renew(struct tenants *tenants, int64_t keep_ms, struct api_problem *p);
/* Removes this daemon's row from a record that is shared. */
bool node_leave(struct tenants *tenants, struct api_problem *p);
/* Lists the daemons that share the record; this one alone where none can. free() frees the
   list. */
bool node_list(struct tenants *tenants, struct api_node **ret, size_t *ret_n,
               struct api_problem *p);

#endif
