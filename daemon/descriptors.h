/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors are shared out before there is need of them: lanes get what a job takes, and
 * as many connections are taken as the rest is enough for. So a client that finds none
 * left waits in front of the door, and what was accepted is done.
 */
#ifndef QDQD_DESCRIPTORS_H
#define QDQD_DESCRIPTORS_H

#include "settings/settings.h"
#include "api/problem.h"

/*
 * Raises the process's limit as far as it is needed and may be, and lowers
 * http.connections to what it is enough for. UNAVAILABLE when that is too few.
 */
bool descriptors_share(struct settings *settings, struct api_problem *p);

#endif
