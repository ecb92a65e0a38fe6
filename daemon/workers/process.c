/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/process.h"
#include "base/clock.h"
#include "base/errno_code.h"
#include "base/log.h"
#include "settings/settings.h"
#include "watch/metrics.h"
#include "workers/worker.h"
#include "qdq.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
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
    *process = (struct process){.role = "worker",
                                .runtime = "",
                                .settings = settings,
                                .metrics = metrics,
                                .socket = -1,
                                .said = -1};
    lock_init(&process->lock, LOCK_PROCESS);
}

static bool
is_worker(const struct process *process)
{
    return strcmp(process->role, "worker") == 0;
}

/* The events of a process in the daemon's log. */
struct events {
    const char *role, *started, *ended, *died;
};

static const struct events *
events_of(const struct process *process)
{
    static const struct events rows[] = {
        {"worker", "worker_started", "worker_ended", "worker_died"},
        {"carrier", "carrier_started", "carrier_ended", "carrier_died"},
        {"judge", "judge_started", "judge_ended", "judge_died"},
        {"signer", "signer_started", "signer_ended", "signer_died"},
    };
    size_t i = 0;
    while (strcmp(rows[i].role, process->role) != 0)
        i++;
    return &rows[i];
}

/* --- temporary files ------------------------------------------------------ */

/* Temporary files of one piece of work, which needs a few for its data. */
enum { MOST_FILES = 64 };

static bool
make_scratch(const struct settings *s, char ret[PATH_MAX])
{
    if (snprintf(ret, PATH_MAX, "%s/scratch", s->state_dir) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    return mkdir(ret, 0700) == 0 || errno == EEXIST;
}

int
process_open_temporary(struct process *process)
{
    char folder[PATH_MAX], name[PATH_MAX + 8];
    if (process->n_files >= MOST_FILES || !make_scratch(process->settings, folder))
        return -1;
    process->n_files++;
    int fd = open(folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    snprintf(name, sizeof name, "%s/XXXXXX", folder);
    fd = mkostemp(name, O_CLOEXEC); /* the file system does not support O_TMPFILE */
    if (fd >= 0)
        unlink(name);
    return fd;
}

/* --- its words ------------------------------------------------------------ */

/* A process that was taken over must not fill the disk with the log. */
enum { MOST_NOTES = 400 };

static bool
may_log(struct process *process)
{
    if (++process->n_notes == MOST_NOTES)
        log_error("worker_said", "pid=%ld text=\"(it says more, which is left out)\"",
                  (long)process->pid);
    return process->n_notes < MOST_NOTES;
}

void
process_note(struct process *process, const struct message *note)
{
    static const char *const events[MESSAGE_N_NOTES] = {
#define NOTE(name, event) [MESSAGE_NOTE_##name] = event,
        MESSAGE_NOTES(NOTE)
#undef NOTE
    };
    char quoted[LOG_QUOTED];
    if (may_log(process))
        log_error(events[note->body.note.event], "pid=%ld detail=%s",
                  (long)process->pid, log_quote(quoted, note->text ? note->text : ""));
}

static void
end_line(struct process *process)
{
    char quoted[LOG_QUOTED];
    process->line[process->line_len] = '\0';
    if (process->line_len && may_log(process))
        log_error("worker_said", "pid=%ld text=%s", (long)process->pid,
                  log_quote(quoted, process->line));
    process->line_len = 0;
}

void
process_relay(struct process *process)
{
    char bytes[4096];
    ssize_t n;
    if (process->said < 0)
        return;
    while ((n = read(process->said, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < n; i++) {
            if (process->line_len == sizeof process->line - 1)
                end_line(process);
            if (bytes[i] == '\n')
                end_line(process);
            else
                process->line[process->line_len++] = bytes[i] ? bytes[i] : '?';
        }
}

/* --- its begin ------------------------------------------------------------ */

/* Adds the descriptors that a worker gets: nothing to read, the pipe for its words, and
   the socket. All others are O_CLOEXEC. */
static int
add_descriptors(posix_spawn_file_actions_t *actions, int socket, int said)
{
    int rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null",
                                              O_RDONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(actions, said, STDOUT_FILENO);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(actions, said, STDERR_FILENO);
    return rc ? rc : posix_spawn_file_actions_adddup2(actions, socket, WORKER_SOCKET);
}

/*
 * Starts this very program again (not the file that now has its path). A process group of
 * its own keeps a terminal's Ctrl-C from ending jobs before the daemon has drained.
 */
static int
spawn(const struct process *process, int device, int socket, int said, pid_t *ret)
{
    char parent[24], number[16], word[16], runtime[64], name[] = "qdqd";
    char **environment = settings_environment(process->settings);
    if (!environment)
        return ENOMEM;
    snprintf(runtime, sizeof runtime, "%s", process->runtime);
    snprintf(word, sizeof word, "--%s", process->role);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    snprintf(number, sizeof number, "%d", device);
    char *extra = process->extra;
    char *argv[] = {
        name, word, parent, number, *runtime ? runtime : extra, *runtime ? extra : NULL,
        NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    int rc = add_descriptors(&actions, socket, said);
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

/* Makes the socket and the pipe, and the process at their other ends. Returns 0 or an
   errno. */
static int
connect_and_spawn(struct process *process, int device, pid_t *ret)
{
    int sockets[2], said[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        return errno;
    int rc = pipe2(said, O_CLOEXEC) ? errno : 0;
    if (!rc) {
        rc = spawn(process, device, sockets[1], said[1], ret);
        close(said[1]);
        if (!rc && fcntl(said[0], F_SETFL, O_NONBLOCK))
            rc = errno;
        if (rc)
            close(said[0]);
    }
    close(sockets[1]);
    if (rc) {
        close(sockets[0]);
        return rc;
    }
    process->socket = sockets[0];
    process->said = said[0];
    return 0;
}

bool
process_was_killed(struct process *process)
{
    lock_acquire(&process->lock);
    bool killed = process->killed;
    lock_release(&process->lock);
    return killed;
}

/* Returns whether a warm process can be used. One that has ended, or has sent
   something without a request, has a readable socket. */
static bool
is_usable(struct process *process)
{
    struct pollfd poll_fd = {.fd = process->socket, .events = POLLIN};
    return !process_was_killed(process) &&
           process->jobs < process->settings->workers_max_jobs &&
           poll(&poll_fd, 1, 0) == 0;
}

/* Waits until the process is in its cage and serves requests. */
static bool
wait_until_ready(struct process *process)
{
    int within = (int)process->settings->workers_short_timeout * 1000;
    int64_t deadline = clock_steady_ms() + within;
    for (;;) {
        struct message message;
        int64_t left = deadline - clock_steady_ms();
        if (message_receive(process->socket, left > 0 ? (int)left : 0, within,
                            &message) != MESSAGE_GOT)
            return false;
        enum message_type type = message.type;
        if (type == MESSAGE_NOTE)
            process_note(process, &message);
        message_fini(&message);
        if (type != MESSAGE_NOTE)
            return process->ready = type == MESSAGE_READY;
    }
}

bool
process_set_extra(struct process *process, const char *extra)
{
    if (process->extra && extra && strcmp(process->extra, extra) == 0)
        return true;
    if (process->extra || extra)
        process_end(process, false, NULL);
    free(process->extra);
    process->extra = extra ? strdup(extra) : NULL;
    return process->extra || !extra;
}

enum process_started
process_start(struct process *process, int device, struct api_problem *p)
{
    pid_t pid = 0;
    if (process->socket >= 0 && (process->device != device || !is_usable(process)))
        process_end(process, false, NULL);
    if (process->socket >= 0)
        return PROCESS_RUNS;
    process->ready = false;
    process->line_len = 0;
    process->n_notes = 0;
    int rc = connect_and_spawn(process, device, &pid);
    if (rc) {
        api_problem_set(p, errno_code(rc), QDQ_AT_NOTHING, NULL,
                        "starting a %s process: %s", process->role, strerror(rc));
        return PROCESS_FAILED;
    }
    lock_acquire(&process->lock);
    process->pid = pid;
    process->killed = false;
    lock_release(&process->lock);
    process->jobs = 0;
    process->device = device;
    if (is_worker(process))
        metrics_add(process->metrics, &metric_workers_started, 0, 1);
    log_info(events_of(process)->started, "pid=%ld", (long)pid);
    return wait_until_ready(process) ? PROCESS_RUNS : PROCESS_DIED;
}

/* Sets the processor time after which the kernel ends the process. The kernel counts
   from the process's start. */
void
process_allow(struct process *process)
{
    process->n_files = 0;
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

/* Returns whether the process has ended by itself, or is about to: it has no socket any more. */
static bool
is_gone(struct process *process)
{
    struct pollfd poll_fd = {.fd = process->socket};
    return !process_was_killed(process) && poll(&poll_fd, 1, 0) > 0 &&
           (poll_fd.revents & POLLHUP);
}

/* Describes how a process ended. One that was gone before the daemon killed it was killed by
   somebody else, for example by the kernel for want of memory. */
static void
describe(int status, bool was_gone, char how[64])
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !was_gone)
        snprintf(how, 64, "was ended by the daemon");
    else if (WIFSIGNALED(status))
        snprintf(how, 64, "was killed by signal %d", WTERMSIG(status));
    else
        snprintf(how, 64, "ended with status %d", WEXITSTATUS(status));
}

bool
process_is_stopped(const struct process *process)
{
    siginfo_t info = {.si_pid = 0};
    return process->pid &&
           waitid(P_PID, (id_t)process->pid, &info, WSTOPPED | WNOHANG | WNOWAIT) ==
               0 &&
           info.si_pid != 0;
}

/* A process that was asked to end does so at once, unless it has leaks to report. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { END_MS = 30000 };
#else
enum { END_MS = 2000 };
#endif

/* Waits for the end of the process, and kills it when it does not come. Does not reap it,
   so that the pid is not reused while process_kill() may still be called. */
static void
wait_for_end(struct process *process)
{
    int64_t deadline = clock_steady_ms() + END_MS;
    struct timespec nap = {0, 500000};
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        int rc = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);
        process_relay(process);
        if ((rc == 0 && info.si_pid != 0) || (rc < 0 && errno != EINTR))
            return;
        if (clock_steady_ms() >= deadline || process_is_stopped(process))
            process_kill(process);
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < 16000000)
            nap.tv_nsec *= 2;
    }
}

void
process_end(struct process *process, bool force, char how[64])
{
    char text[64];
    int status = 0;
    process->signal = 0;
    if (process->socket < 0)
        return;
    bool was_gone = is_gone(process);
    if (force)
        process_kill(process);
    close(process->socket);
    process->socket = -1;
    wait_for_end(process);
    end_line(process);
    close(process->said);
    process->said = -1;
    lock_acquire(&process->lock);
    pid_t pid = process->pid;
    waitpid(pid, &status, 0);
    process->pid = 0;
    bool killed = process->killed;
    lock_release(&process->lock);
    process->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    process->spent = process->signal == SIGXCPU;
    describe(status, was_gone, text);
    if (how)
        memcpy(how, text, sizeof text);
    if (status && !killed)
        log_error(events_of(process)->died, "pid=%ld how=\"%s\"", (long)pid, text);
    else
        log_info(events_of(process)->ended, "pid=%ld how=\"%s\"", (long)pid, text);
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
    free(process->extra);
    process->extra = NULL;
    lock_fini(&process->lock);
}
