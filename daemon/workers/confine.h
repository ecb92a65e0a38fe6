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

/* Makes the kernel prefer the daemon's threads, which clients wait for, to this process where
   both want a processor. On a machine with nothing else to do the process is as fast. */
void confine_yield(void);

/*
 * confine_open_peak() opens, before the cage, the file by which confine_reset_peak() makes the kernel
 * forget how much memory the process had at most, so that a job does not report the peak of an
 * earlier one. It returns -1 where there is no such file; confine_reset_peak(-1) does nothing.
 */
int confine_open_peak(void);
void confine_reset_peak(int fd);

#endif
