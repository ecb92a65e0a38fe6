/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/trap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
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

static long
open_again(const char *path, long flags)
{
    int fd = descriptor_of(path);
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
    int named = descriptor_of(path);
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
