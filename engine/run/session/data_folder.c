/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/session/data_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NAME = 255 };

/* Returns whether the path leads to the open file. */
static bool
leads_to(const char *path, int fd)
{
    struct stat a, b;
    const int other = open(path, O_RDONLY | O_CLOEXEC);
    const bool same = other >= 0 && fstat(fd, &a) == 0 && fstat(other, &b) == 0 &&
                      a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (other >= 0)
        close(other);
    return same;
}

/* Returns the path of an open file, in the arena; NULL: it has none. */
static char *
path_of(int fd, struct qdqi_arena *arena)
{
    char link[40], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || path[0] != '/')
        return NULL;
    path[n] = '\0';
    return leads_to(path, fd) ? qdqi_arena_strdup(arena, path) : NULL;
}

const char *
qdqi_data_folder(const struct qdqi_mapped *files, size_t n, struct qdqi_arena *arena,
                 const char *const **ret_locations)
{
    const char **names = qdqi_arena_array(arena, n, sizeof *names);
    const char *folder = NULL;
    for (size_t i = 0; names && i < n; i++) {
        if (!files[i].map)
            continue;
        char *path = path_of(files[i].fd, arena);
        char *slash = path ? strrchr(path, '/') : NULL;
        if (!slash || slash == path || strlen(slash + 1) > MAX_NAME)
            return NULL;
        *slash = '\0';
        if (folder && strcmp(folder, path) != 0)
            return NULL;
        folder = path;
        names[i] = slash + 1;
    }
    *ret_locations = names;
    return names ? folder : NULL;
}
