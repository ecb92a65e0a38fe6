/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/confine.h"
#include "workers/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Makes the kernel prefer this process when memory runs out: that costs one job, not
   the daemon. */
static void
offer_to_oom_killer(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = write(fd, "500", 3);
    (void)n; /* a failure is harmless */
    close(fd);
}

/* Closes what the daemon may have left open: a worker has three descriptors and its
   socket. */
static void
close_others(void)
{
#ifdef SYS_close_range
    syscall(SYS_close_range, WORKER_SOCKET + 1, ~0u, 0);
#endif
}

/* The process ends with the daemon also when the daemon ends between its fork() and this
   prctl(). */
bool
confine_process(pid_t parent, rlim_t memory, const char *name)
{
    const struct rlimit no_core = {0, 0}, data = {memory, memory};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || setrlimit(RLIMIT_CORE, &no_core) ||
        (memory && setrlimit(RLIMIT_DATA, &data)))
        return false;
    close_others();
    prctl(PR_SET_NAME, name);
    offer_to_oom_killer();
    return true;
}

void
confine_yield(void)
{
    enum { NICENESS = 5 };
    (void)!nice(NICENESS);
}

int
confine_open_peak(void)
{
    return open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
}

void
confine_reset_peak(int fd)
{
    if (fd >= 0)
        (void)!write(fd, "5", 1);
}
