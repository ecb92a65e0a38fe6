/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The carriers: a few threads that do what the record asks for with remotes, for all
 * tenants: they fetch the inputs of jobs, deliver results and events, and ask for new versions
 * of models (pieces.h). Each piece of work has a process of its own (carrier.h): the daemon
 * itself opens no connection. They hold no lane, and no lane waits for them.
 */
#ifndef QDQD_CARRIERS_CARRIERS_H
#define QDQD_CARRIERS_CARRIERS_H

#include "api/problem.h"

struct bell;
struct carriers;
struct settings;
struct tenants;

/* Starts the threads. Borrows all arguments. */
bool carriers_open(struct tenants *tenants, const struct settings *settings,
                   struct carriers **ret, struct api_problem *p);
/* Gives up what they do, which the next start begins again, and waits for the threads. */
void carriers_close(struct carriers **carriers);

#endif
