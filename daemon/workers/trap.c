/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/trap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define OPEN_FILES "/proc/self/fd/"

enum { N_ARGUMENTS = 4 };

/* Copies the first arguments of the trapped call, and returns the register that takes its
   result; NULL on other processors. */
static greg_t *
read_registers(ucontext_t *context, greg_t arguments[N_ARGUMENTS])
{
#if defined __x86_64__
    greg_t *r = context->uc_mcontext.gregs;
    const int order[N_ARGUMENTS] = {REG_RDI, REG_RSI, REG_RDX, REG_R10};
    for (int i = 0; i < N_ARGUMENTS; i++)
        arguments[i] = r[order[i]];
    return &r[REG_RAX];
#elif defined __aarch64__
    greg_t *r = (greg_t *)context->uc_mcontext.regs;
    memcpy(arguments, r, N_ARGUMENTS * sizeof *r);
    return r;
#else
    (void)context;
    (void)arguments;
    return NULL;
#endif
}

/*
 * Returns the descriptor that a path in /proc names; -1: the path is another. ONNX Runtime
 * adds "_" and the time to the path of the file that its profiler writes; such an end,
 * which has no further folder, is ignored.
 */
static int
descriptor_of(const char *path)
{
    int fd = 0;
    size_t n = sizeof OPEN_FILES - 1;
    if (strncmp(path, OPEN_FILES, n) != 0 || path[n] < '0' || path[n] > '9')
        return -1;
    for (path += n; *path; path++) {
        if (*path == '_')
            return strchr(path, '/') ? -1 : fd;
        if (*path < '0' || *path > '9' || fd > 99999)
            return -1;
        fd = fd * 10 + (*path - '0');
    }
    return fd;
}

/* --- a folder that may be listed ------------------------------------------ */

enum { MOST_LISTED = 256 };

/* The folder with its files, as they were when it was set; nothing writes to it later. */
static struct {
    int fd; /* -1: there is none */
    char path[PATH_MAX];
    size_t n;
    struct listed {
        char name[128];
        struct stat st;
    } files[MOST_LISTED];
} listed = {.fd = -1};

static void
list_files(DIR *folder)
{
    const struct dirent *entry;
    while (listed.n < MOST_LISTED && (entry = readdir(folder))) {
        struct listed *file = &listed.files[listed.n];
        int n = snprintf(file->name, sizeof file->name, "%s", entry->d_name);
        if (n < (int)sizeof file->name &&
            fstatat(dirfd(folder), entry->d_name, &file->st, 0) == 0)
            listed.n++;
    }
}

bool
trap_allow_listing(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : opendir(path);
    if (!folder || snprintf(listed.path, PATH_MAX, "%s", path) >= PATH_MAX) {
        if (folder)
            closedir(folder);
        if (fd >= 0)
            close(fd);
        return false;
    }
    list_files(folder);
    closedir(folder);
    listed.fd = fd;
    return true;
}

static bool
is_listed_folder(const char *path)
{
    return listed.fd >= 0 && strcmp(path, listed.path) == 0;
}

/* Returns the file of the folder that the path names, or NULL. */
static const struct listed *
find_listed(const char *path)
{
    size_t n = strlen(listed.path);
    if (listed.fd < 0 || strncmp(path, listed.path, n) != 0 || path[n] != '/')
        return NULL;
    for (size_t i = 0; i < listed.n; i++)
        if (strcmp(path + n + 1, listed.files[i].name) == 0)
            return &listed.files[i];
    return NULL;
}

/* --- calls ---------------------------------------------------------------- */

static long
open_again(const char *path, long flags)
{
    int fd =
        is_listed_folder(path) && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_TRUNC)
            ? listed.fd
            : descriptor_of(path);
    if (fd < 0)
        return -EACCES;
    int again = fcntl(fd, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
    if (again < 0)
        return -errno;
    if ((flags & O_TRUNC && ftruncate(again, 0)) || lseek(again, 0, SEEK_SET) < 0) {
        int error = errno;
        close(again);
        return -error;
    }
    return again;
}

static long
describe(int fd, const char *path, struct stat *ret, long flags)
{
    const struct listed *file = find_listed(path);
    if (file) {
        *ret = file->st;
        return 0;
    }
    int named = is_listed_folder(path) ? listed.fd : descriptor_of(path);
    if (*path && named < 0)
        return -EACCES;
    if (!*path && !(flags & AT_EMPTY_PATH))
        return -ENOENT;
    return syscall(SYS_fstat, *path ? named : fd, ret) ? -errno : 0;
}

static long
answer(int call, const greg_t a[N_ARGUMENTS])
{
    switch (call) {
#ifdef SYS_open
    case SYS_open:
        return open_again((const char *)(intptr_t)a[0], (long)a[1]);
#endif
#ifdef SYS_stat
    case SYS_stat:
        return describe(-1, (const char *)(intptr_t)a[0], (struct stat *)(intptr_t)a[1],
                        0);
#endif
    case SYS_openat:
        return open_again((const char *)(intptr_t)a[1], (long)a[2]);
    case SYS_newfstatat:
        return describe((int)a[0], (const char *)(intptr_t)a[1],
                        (struct stat *)(intptr_t)a[2], (long)a[3]);
    default:
        return -EPERM;
    }
}

static void
on_trap(int number, siginfo_t *info, void *context)
{
    greg_t arguments[N_ARGUMENTS];
    greg_t *result = read_registers(context, arguments);
    int saved = errno;
    (void)number;
    if (result)
        *result = answer(info->si_syscall, arguments);
    errno = saved;
}

bool
trap_install(void)
{
#if defined __x86_64__ || defined __aarch64__
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSYS, &action, NULL) == 0;
#else
    errno = ENOSYS;
    return false;
#endif
}
