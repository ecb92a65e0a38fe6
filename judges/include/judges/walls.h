/* SPDX-License-Identifier: Apache-2.0 */
/* Walls around a process: Landlock, which are the kernel's rules about the files that it can reach, and
   the loss of privileges. They hold for the calling thread and for what it starts later, and nothing
   lifts them. */
#ifndef JUDGES_WALLS_H
#define JUDGES_WALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WALL_TEXT = 160 };

/* The rights of a process below a path. The bits are the kernel's; one that it does not know yet is
   not restricted by it. */
enum wall_right {
    WALL_EXECUTE = 1 << 0,
    WALL_WRITE_FILE = 1 << 1,
    WALL_READ_FILE = 1 << 2,
    WALL_READ_DIR = 1 << 3,
    WALL_REMOVE_DIR = 1 << 4,
    WALL_REMOVE_FILE = 1 << 5,
    WALL_MAKE_DIR = 1 << 7,
    WALL_MAKE_REG = 1 << 8,
    WALL_MOVE = 1 << 13, /* between folders */
    WALL_TRUNCATE = 1 << 14,
    WALL_IOCTL_DEV = 1 << 15,
};

struct wall_path {
    const char *path; /* one that does not exist needs no rule */
    uint64_t rights;  /* enum wall_right */
};

/*
 * Restricts the file system to the paths, and, where the kernel can do so, forbids TCP ports
 * (connections only unless `connects`), signals to processes outside and abstract sockets. Sets
 * *ret_there to false when the kernel has no Landlock. Returns false and says in `lacking` why it
 * failed. PR_SET_NO_NEW_PRIVS must be set.
 */
bool landlock_enter(const struct wall_path *paths, size_t n, bool connects,
                    bool *ret_there, char lacking[WALL_TEXT]);

/* Gives up the capabilities of a process that runs as root. Returns false and says in `lacking` why
   it failed. */
bool privileges_drop(char lacking[WALL_TEXT]);

#endif
