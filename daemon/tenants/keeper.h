/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that keep the leases of this daemon's jobs and its row in the list of nodes,
   where the record is shared. */
#ifndef QDQD_TENANTS_KEEPER_H
#define QDQD_TENANTS_KEEPER_H

#include "api/problem.h"

struct keeper;
struct settings;
struct tenants;

/* Starts them. *ret is NULL when the record is not shared. */
bool keeper_open(struct tenants *tenants, const struct settings *settings,
                 struct keeper **ret, struct api_problem *p);
/* Ends them. Called when no job runs any more. */
void keeper_close(struct keeper **keeper);

#endif
