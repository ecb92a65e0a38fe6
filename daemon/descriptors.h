/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget of file descriptors, divided when the daemon starts: each lane gets the
 * number that a job needs, and the rest limits the number of connections. So a client
 * that finds none left waits in the listen queue, and accepted work can always be
 * finished.
 */
#ifndef QDQD_DESCRIPTORS_H
#define QDQD_DESCRIPTORS_H

#include "settings/settings.h"
#include "api/problem.h"

/*
 * Raises the process's limit as far as needed and permitted, and lowers
 * http.connections to the number that the limit suffices for. UNAVAILABLE when that is
 * too few.
 */
bool descriptors_share(struct settings *settings, struct api_problem *p);

#endif
