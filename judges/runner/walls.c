/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runner/walls.h"
#include "runner/filter.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    READ = WALL_READ_FILE | WALL_READ_DIR,
    USE = READ | WALL_EXECUTE,
    OWN = READ | WALL_WRITE_FILE | WALL_TRUNCATE | WALL_MAKE_REG | WALL_MAKE_DIR |
          WALL_REMOVE_FILE | WALL_REMOVE_DIR | WALL_MOVE,
    DEVICE = READ | WALL_WRITE_FILE | WALL_IOCTL_DEV,
};

/* Open descriptors of a program. */
enum { MOST_DESCRIPTORS = 1024 };

/* Files that every program may use. */
static const struct wall_path system_paths[] = {
    {"/usr", USE},
    {"/lib", USE},
    {"/lib64", USE},
    {"/bin", USE},
    {"/sbin", USE},
    {"/etc/ld.so.cache", READ},
    {"/etc/ld.so.conf", READ},
    {"/etc/ld.so.conf.d", READ},
    {"/etc/ld.so.preload", READ},
    {"/etc/alternatives", READ},
    {"/etc/localtime", READ},
    {"/etc/os-release", READ},
    {"/dev/null", READ | WALL_WRITE_FILE},
    {"/dev/zero", READ},
    {"/dev/urandom", READ},
    {"/proc/self", READ},
    {"/proc/cpuinfo", READ},
    {"/proc/meminfo", READ},
    {"/sys/devices/system", READ},
};

/* Files that drivers of devices read, too. CUDA names its threads by their files "comm", and a
   refusal ends it. */
static const struct wall_path driver_paths[] = {
    {"/proc", READ},
    {"/sys", READ},
    {"/proc/self/task", READ | WALL_WRITE_FILE | WALL_TRUNCATE},
};

enum { MOST_PATHS = 1024 };

struct paths {
    struct wall_path list[MOST_PATHS];
    size_t n;
    bool failed; /* there are too many, or there is no memory */
};

static void
add(struct paths *to, const char *path, uint64_t rights)
{
    char *copy = to->n < MOST_PATHS ? strdup(path) : NULL;
    if (copy)
        to->list[to->n++] = (struct wall_path){copy, rights};
    else
        to->failed = true;
}

static void
add_all(struct paths *to, const struct wall_path *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(to, rows[i].path, rows[i].rights);
}

/* Adds the folder of a program, or the folder above where that one is called "bin": it is an
   environment of Python then. Folders directly below the root are not meant so. */
static void
add_folder_of(struct paths *to, const char *program)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(program, '/');
    size_t n = (size_t)(slash - program);
    if (n > 4 && !strncmp(program + n - 4, "/bin", 4))
        n -= 4;
    snprintf(folder, sizeof folder, "%.*s", (int)n, program);
    add(to, n ? folder : program, USE);
}

/* Adds the program, where it lies after all links are followed, and the files and folders among its
   arguments. */
static void
add_command(struct paths *to, const struct runner_config *r)
{
    char real[PATH_MAX];
    add_folder_of(to, r->words[0]);
    if (realpath(r->words[0], real))
        add_folder_of(to, real);
    for (size_t i = 1; r->words[i]; i++)
        if (*r->words[i] == '/' && r->words[i][1])
            add(to, r->words[i], USE);
}

static void
add_allowed(struct paths *to, const char *pattern)
{
    glob_t found;
    if (!runner_is_device(pattern)) {
        add(to, pattern, USE);
        return;
    }
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            add(to, found.gl_pathv[i], DEVICE);
        globfree(&found);
    }
}

static bool
has_devices(const struct runner_config *r)
{
    for (size_t i = 0; r->paths[i]; i++)
        if (runner_is_device(r->paths[i]))
            return true;
    return false;
}

/* Adds the folders of the system, and the program's. */
static void
add_readable(struct paths *to, const struct runner_config *r)
{
    add_all(to, system_paths, sizeof system_paths / sizeof *system_paths);
    add_command(to, r);
    for (size_t i = 0; r->paths[i]; i++)
        add_allowed(to, r->paths[i]);
}

/* Adds what the process around programs needs: it looks at the files that they have open, and
   removes its folder when that is empty. */
static void
add_around(struct paths *to, const char *folder)
{
    char above[PATH_MAX];
    const char *slash = strrchr(folder, '/');
    snprintf(above, sizeof above, "%.*s", (int)(slash - folder), folder);
    add(to, "/proc", READ);
    add(to, above, WALL_REMOVE_DIR);
}

static void
free_paths(struct paths *paths)
{
    for (size_t i = 0; paths && i < paths->n; i++)
        free((char *)(uintptr_t)paths->list[i].path);
    free(paths);
}

static bool
close_files(const struct runner_config *r, const char *folder, bool is_around,
            char lacking[WALL_TEXT])
{
    struct paths *paths = calloc(1, sizeof *paths);
    bool there = false;
    if (!paths) {
        snprintf(lacking, WALL_TEXT, "out of memory");
        return false;
    }
    add_readable(paths, r);
    if (is_around)
        add_around(paths, folder);
    if (has_devices(r))
        add_all(paths, driver_paths, sizeof driver_paths / sizeof *driver_paths);
    add(paths, folder, OWN);
    if (paths->failed)
        snprintf(lacking, WALL_TEXT, "too many paths for Landlock");
    bool ok =
        !paths->failed && landlock_enter(paths->list, paths->n, false, &there, lacking);
    free_paths(paths);
    return ok && (there || r->walls == RUNNER_WALLS_AUTO);
}

/* Returns whether one of both paths is the other or lies below it. */
static bool
overlap(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b), less = n < m ? n : m;
    const char *longer = n < m ? b : a;
    return strncmp(a, b, less) == 0 && (longer[less] == '/' || !longer[less]);
}

bool
runner_may_read(const struct runner_config *r, const char *path)
{
    char own[PATH_MAX], theirs[PATH_MAX];
    struct paths *paths = calloc(1, sizeof *paths);
    bool may = !paths;
    if (paths)
        add_readable(paths, r);
    if (!realpath(path, own))
        snprintf(own, sizeof own, "%s", path);
    for (size_t i = 0; paths && i < paths->n; i++) {
        if (!realpath(paths->list[i].path, theirs))
            snprintf(theirs, sizeof theirs, "%s", paths->list[i].path);
        may = may || overlap(own, theirs);
    }
    free_paths(paths);
    return may;
}

/* Forbids what the section does not allow, to a program or to the process around programs. */
static bool
close_rest(const struct runner_config *r, const char *folder, bool is_around,
           char lacking[WALL_TEXT])
{
    const struct filter_allows allows = {.devices = has_devices(r),
                                         .exec = r->may_make_code,
                                         .processes = r->may_start_processes,
                                         .around = is_around};
    return r->walls == RUNNER_WALLS_OFF ||
           (privileges_drop(lacking) && close_files(r, folder, is_around, lacking) &&
            (filter_enter(&allows, lacking) || r->walls == RUNNER_WALLS_AUTO));
}

/* Sets a limit, or keeps a lower one that holds already. */
static bool
limit(int resource, int64_t most, char lacking[WALL_TEXT])
{
    struct rlimit both;
    if (getrlimit((__rlimit_resource_t)resource, &both) == 0) {
        both.rlim_max = (rlim_t)most < both.rlim_max ? (rlim_t)most : both.rlim_max;
        both.rlim_cur = both.rlim_max;
        if (setrlimit((__rlimit_resource_t)resource, &both) == 0)
            return true;
    }
    snprintf(lacking, WALL_TEXT, "setrlimit: %s", strerror(errno));
    return false;
}

static bool
set_limits(const struct runner_config *r, char lacking[WALL_TEXT])
{
    return limit(RLIMIT_CORE, 0, lacking) &&
           limit(RLIMIT_NOFILE, MOST_DESCRIPTORS, lacking) &&
           limit(RLIMIT_FSIZE, r->disk, lacking) &&
           (!r->memory || limit(RLIMIT_DATA, r->memory, lacking));
}

static bool
allow_no_privileges(char lacking[WALL_TEXT])
{
    lacking[0] = '\0';
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        return true;
    snprintf(lacking, WALL_TEXT, "no_new_privs: %s", strerror(errno));
    return false;
}

bool
walls_enter(const struct runner_config *r, const char *folder, char lacking[WALL_TEXT])
{
    return allow_no_privileges(lacking) && set_limits(r, lacking) &&
           close_rest(r, folder, false, lacking);
}

/* Returns whether a sanitizer is built in: it looks for leaks by tracing the process. */
static bool
is_sanitized(void)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return true;
#else
    return false;
#endif
}

bool
walls_enter_around(const struct runner_config *r, const char *folder,
                   char lacking[WALL_TEXT])
{
    lacking[0] = '\0';
    return is_sanitized() ||
           (allow_no_privileges(lacking) && close_rest(r, folder, true, lacking));
}
