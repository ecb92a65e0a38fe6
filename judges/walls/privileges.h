/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGES_WALLS_PRIVILEGES_H
#define JUDGES_WALLS_PRIVILEGES_H

#include "walls/landlock.h"

/* Gives up the capabilities of a process that runs as root. Returns false and says in `lacking` why
   it failed. */
bool privileges_drop(char lacking[WALL_TEXT]);

#endif
