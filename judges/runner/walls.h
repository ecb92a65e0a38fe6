/* SPDX-License-Identifier: Apache-2.0 */
/* The walls of a runner's program, which reads models of strangers in foreign code. */
#ifndef JUDGES_RUNNER_WALLS_H
#define JUDGES_RUNNER_WALLS_H

#include "judges/runner.h"
#include "judges/walls.h"

/*
 * Puts the calling process, which will execute the runner's program, behind its walls: no
 * privileges, limits of memory, files and descriptors, the files of docs/runners.md alone, and no
 * call of filter.h. `folder` is the one that it may write. Returns false and says in `lacking` why a wall
 * cannot be had; with RUNNER_WALLS_AUTO that is true for what the kernel does not offer, and
 * `lacking` names it ("": all walls stand).
 */
bool walls_enter(const struct runner_config *runner, const char *folder,
                 char lacking[WALL_TEXT]);

/* Puts the process that starts programs in folders of `folder` behind the same walls, but it may start processes,
   signal its own, and read procfs. */
bool walls_enter_around(const struct runner_config *runner, const char *folder,
                        char lacking[WALL_TEXT]);

#endif
