/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a worker or carrier process that hold from its first moment, before it loads anything.
   The cage (cage.h) follows when everything is loaded. */
#ifndef QDQD_WORKERS_CONFINE_H
#define QDQD_WORKERS_CONFINE_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/*
 * Makes the process end with the daemon, which is `parent`; gives it no new privileges, no
 * core file, at most `memory` bytes of data (0: no limit), and no descriptor but the
 * standard ones and its socket. The kernel prefers it when memory runs out. Returns false
 * when one of the limits cannot be set. `name` is shown for the process.
 */
bool confine_process(pid_t parent, rlim_t memory, const char *name);

#endif
