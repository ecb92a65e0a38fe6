/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/process.h"
#include "base/errno_code.h"
#include "base/log.h"
#include "settings/settings.h"
#include "watch/metrics.h"
#include "workers/worker.h"
#include "qdq.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

METRIC(workers_started, COUNTER, "qdqd_workers_started_total", &metric_unlabelled, ONE,
       "Worker processes that were started.");

void
process_init(struct process *process, const struct settings *settings,
             struct metrics *metrics)
{
    *process = (struct process){.settings = settings, .metrics = metrics, .socket = -1};
    lock_init(&process->lock, LOCK_PROCESS);
}

/* Makes the folder in which workers may open files without a name; it is always
   empty. */
static bool
make_scratch(const struct settings *s, char ret[PATH_MAX])
{
    if (snprintf(ret, PATH_MAX, "%s/scratch", s->state_dir) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    return mkdir(ret, 0700) == 0 || errno == EEXIST;
}

/*
 * Starts this very program again (not the file that now has its path) with `socket` at
 * WORKER_SOCKET; all other descriptors are O_CLOEXEC. A process group of its own keeps
 * a terminal's Ctrl-C from ending jobs before the daemon has drained.
 */
static int
spawn(const struct settings *s, int device, int socket, pid_t *ret)
{
    char parent[24], number[16], word[] = "--worker", name[] = "qdqd";
    char scratch[PATH_MAX];
    if (!make_scratch(s, scratch))
        return errno;
    char **environment = settings_environment(s);
    if (!environment)
        return ENOMEM;
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    snprintf(number, sizeof number, "%d", device);
    char *argv[] = {name, word, parent, scratch, number, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    int rc = posix_spawn_file_actions_adddup2(&actions, socket, WORKER_SOCKET);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    if (!rc)
        rc = posix_spawn(ret, "/proc/self/exe", &actions, &attr, argv, environment);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    settings_environment_free(&environment);
    return rc;
}

/* Returns whether a warm process can be used. One that has ended, or has sent
   something without a request, has a readable socket. */
static bool
is_usable(struct process *process)
{
    struct pollfd poll_fd = {.fd = process->socket, .events = POLLIN};
    lock_acquire(&process->lock);
    bool killed = process->killed;
    lock_release(&process->lock);
    return !killed && process->jobs < process->settings->workers_max_jobs &&
           poll(&poll_fd, 1, 0) == 0;
}

bool
process_start(struct process *process, int device, struct api_problem *p)
{
    int sockets[2];
    pid_t pid = 0;
    if (process->socket >= 0 && (process->device != device || !is_usable(process)))
        process_end(process, false, NULL);
    if (process->socket >= 0)
        return true;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        return api_problem_set(p, errno_code(errno), QDQ_AT_NOTHING, NULL,
                               "starting a worker process: %s", strerror(errno));
    int rc = spawn(process->settings, device, sockets[1], &pid);
    close(sockets[1]);
    if (rc) {
        close(sockets[0]);
        return api_problem_set(p, errno_code(rc), QDQ_AT_NOTHING, NULL,
                               "starting a worker process: %s", strerror(rc));
    }
    lock_acquire(&process->lock);
    process->pid = pid;
    process->killed = false;
    lock_release(&process->lock);
    process->socket = sockets[0];
    process->jobs = 0;
    process->device = device;
    metrics_add(process->metrics, &metric_workers_started, 0, 1);
    log_info("worker_started", "pid=%ld", (long)pid);
    return true;
}

/* Sets the processor time after which the kernel ends the process. The kernel counts
   from the process's start. */
void
process_allow(const struct process *process)
{
    rlim_t most = (rlim_t)process->settings->workers_cpu_time;
    struct rlimit limit = {0, RLIM_INFINITY};
    struct timespec used;
    clockid_t clock;
    if (!most || clock_getcpuclockid(process->pid, &clock) ||
        clock_gettime(clock, &used))
        return;
    limit.rlim_cur = (rlim_t)used.tv_sec + 1 + most;
    prlimit(process->pid, RLIMIT_CPU, &limit, NULL);
}

static void
describe(int status, char how[64])
{
    if (WIFSIGNALED(status))
        snprintf(how, 64, "was killed by signal %d", WTERMSIG(status));
    else
        snprintf(how, 64, "ended with status %d", WEXITSTATUS(status));
}

void
process_end(struct process *process, bool force, char how[64])
{
    char text[64];
    int status = 0;
    if (process->socket < 0)
        return;
    if (force)
        process_kill(process);
    close(process->socket);
    process->socket = -1;
    /* Waits without reaping, so that the pid is not reused while process_kill() may
       still be called. */
    siginfo_t info;
    while (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOWAIT) < 0 &&
           errno == EINTR)
        continue;
    lock_acquire(&process->lock);
    pid_t pid = process->pid;
    waitpid(pid, &status, 0);
    process->pid = 0;
    bool killed = process->killed;
    lock_release(&process->lock);
    process->spent = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
    describe(status, text);
    if (how)
        memcpy(how, text, sizeof text);
    if (status && !killed)
        log_error("worker_died", "pid=%ld how=\"%s\"", (long)pid, text);
    else
        log_info("worker_ended", "pid=%ld how=\"%s\"", (long)pid, text);
}

void
process_kill(struct process *process)
{
    lock_acquire(&process->lock);
    if (process->pid) {
        process->killed = true;
        kill(process->pid, SIGKILL);
    }
    lock_release(&process->lock);
}

void
process_fini(struct process *process)
{
    process_end(process, false, NULL);
    lock_fini(&process->lock);
}
