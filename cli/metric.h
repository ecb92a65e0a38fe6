/* SPDX-License-Identifier: Apache-2.0 */
/* The graph that judges a result by the spec's task: its file, and the bounds within which it runs. */
#ifndef CLI_METRIC_H
#define CLI_METRIC_H

#include "api/digest.h"
#include "api/spec.h"

/* Opens the file that task.model names and writes its id in the place of the path into the spec, so
   that the spec is the same as a service's. *ret_fd stays as it is where the spec has no
   metric. */
bool metric_open(struct api_spec *spec, int *ret_fd, struct api_problem *problem);

/* Is a qdq_judging.bound: lets the command end when the time is over, and keeps its memory within
   2 GiB more than it has. `arg` is not used. */
void metric_bound(void *arg, unsigned seconds);

#endif
