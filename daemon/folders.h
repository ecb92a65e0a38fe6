/* SPDX-License-Identifier: Apache-2.0 */
/* The state folders of all tenants, for commands that work on stored data without a daemon. */
#ifndef QDQD_FOLDERS_H
#define QDQD_FOLDERS_H

#include "api/problem.h"

/* Calls `fn` with the state folder, whose tenant is "", and with those of its tenants, until it
   returns false. */
bool folders_each(const char *state,
                  bool (*fn)(void *arg, const char *path, const char *tenant,
                             struct api_problem *p),
                  void *arg, struct api_problem *p);

#endif
