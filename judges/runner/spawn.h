/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a runner's program: its descriptors, its environment and its walls. */
#ifndef JUDGES_RUNNER_SPAWN_H
#define JUDGES_RUNNER_SPAWN_H

#include "judges/runner.h"
#include "judges/walls.h"

#include <sys/types.h>

struct spawned {
    pid_t pid; /* the leader of its own process group */
    int in, out,
        log; /* the other ends of its descriptors 0, 1 and 2; they do not block */
};

/* Starts the program in the folder. Returns false, and says in `why` why, when a wall cannot be had or the
   program cannot be executed. */
bool spawn_program(const struct runner_config *runner, const char *folder,
                   struct spawned *ret, char why[WALL_TEXT]);

/* Ends the processes that programs have left behind: they become children of this process, which
   has no others but programs whose numbers spawn_program() returned. */
void spawn_sweep(void);

#endif
