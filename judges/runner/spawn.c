/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runner/spawn.h"
#include "runner/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The descriptor by which the child reports why it could not execute the program. It is closed when it
   can. */
enum { REPORT = 3, CANNOT_EXECUTE = 127 };

/* --- in the child ------------------------------------------------------------- */

__attribute__((noreturn)) static void
give_up(const char *what, const char *why)
{
    char text[WALL_TEXT];
    int n = snprintf(text, sizeof text, "%.100s: %.50s", what, why);
    (void)!write(REPORT, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
    _exit(CANNOT_EXECUTE);
}

/* Has the kernel end this process with its parent. */
static void
die_with(pid_t parent, int number)
{
    if (prctl(PR_SET_PDEATHSIG, number) || getppid() != parent)
        _exit(CANNOT_EXECUTE);
}

/* Gives signals back their defaults: what is ignored would stay so in the program. */
static void
reset_signals(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        sigaction(i, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
place_descriptors(const int ends[4])
{
    int high[4];
    for (int i = 0; i < 4; i++)
        if ((high[i] = fcntl(ends[i], F_DUPFD, REPORT + 1)) < 0)
            _exit(CANNOT_EXECUTE);
    for (int i = 0; i < 4; i++)
        dup2(high[i], i);
    fcntl(REPORT, F_SETFD, FD_CLOEXEC);
    if (syscall(SYS_close_range, REPORT + 1, ~0u, 0))
        for (int fd = REPORT + 1; fd < 65536; fd++)
            close(fd);
}

/* The signal of the parent's death. */
static void
kill_own_group(int number)
{
    (void)number;
    kill(0, SIGKILL);
}

/*
 * Where the program may start processes: makes another process to be the program, and stays as the
 * leader of the group, which it ends when the parent dies without having done so. Returns
 * in the program.
 */
static void
fork_program(void)
{
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = kill_own_group}, NULL);
    die_with(getppid(), SIGTERM);
    const pid_t leader = getpid(), program = fork();
    int status = 0;
    if (program < 0)
        give_up("fork", strerror(errno));
    if (program == 0) {
        reset_signals();
        die_with(leader, SIGKILL);
        return;
    }
    for (int fd = 0; fd <= REPORT; fd++)
        close(fd);
    while (waitpid(program, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        kill(getpid(), WTERMSIG(status));
    _exit(WIFSIGNALED(status) ? CANNOT_EXECUTE : WEXITSTATUS(status));
}

__attribute__((noreturn)) static void
become_program(const struct runner_config *r, const char *folder)
{
    char lacking[WALL_TEXT], home[PATH_MAX + 8], temporary[PATH_MAX + 8];
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", language[] = "LANG=C.UTF-8";
    char *environment[] = {path, language, home, temporary, NULL};
    snprintf(home, sizeof home, "HOME=%s", folder);
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", folder);
    if (r->may_start_processes)
        fork_program();
    if (chdir(folder))
        give_up(folder, strerror(errno));
    if (!walls_enter(r, folder, lacking))
        give_up("its walls cannot be built", lacking);
    if (*lacking)
        fprintf(stderr, "the walls of the runner '%s' lack: %s\n", r->name, lacking);
    execve(r->words[0], (char **)(uintptr_t)r->words, environment);
    give_up(r->words[0], strerror(errno));
}

__attribute__((noreturn)) static void
run_child(const struct runner_config *r, const char *folder, pid_t parent,
          const int ends[4])
{
    reset_signals();
    setpgid(0, 0);
    die_with(parent, SIGKILL);
    place_descriptors(ends);
    become_program(r, folder);
}

/* --- in the parent ------------------------------------------------------------ */

/* The programs that run, by their numbers; 0: none. */
enum { MOST_PROGRAMS = 32 };
static pid_t programs[MOST_PROGRAMS];

static bool
is_program(pid_t pid)
{
    for (int i = 0; i < MOST_PROGRAMS; i++)
        if (programs[i] == pid)
            return true;
    return false;
}

/* Notes the number of a program, and forgets those that have been reaped. */
static void
note_program(pid_t pid)
{
    bool noted = false;
    for (int i = 0; i < MOST_PROGRAMS; i++) {
        siginfo_t info;
        if (programs[i] &&
            waitid(P_PID, (id_t)programs[i], &info, WEXITED | WNOHANG | WNOWAIT))
            programs[i] = 0;
        if (!programs[i] && !noted) {
            programs[i] = pid;
            noted = true;
        }
    }
}

/* Kills and reaps the children of this process that are no programs. Returns whether there
   were any. */
static bool
sweep_once(void)
{
    char path[64];
    long pid;
    bool any = false;
    snprintf(path, sizeof path, "/proc/self/task/%ld/children",
             (long)syscall(SYS_gettid));
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%ld", &pid) == 1)
        if (!is_program((pid_t)pid)) {
            any = true;
            kill((pid_t)pid, SIGKILL);
            waitpid((pid_t)pid, NULL, 0);
        }
    if (file)
        fclose(file);
    return any;
}

void
spawn_sweep(void)
{
    note_program(0);
    for (int i = 0; i < 1000 && sweep_once(); i++)
        ;
}

/* Reads why the child could not execute the program; "": it could. */
static void
read_report(int fd, char why[WALL_TEXT])
{
    size_t n = 0;
    ssize_t got;
    while (n < WALL_TEXT - 1 && (got = read(fd, why + n, WALL_TEXT - 1 - n)) != 0)
        if (got > 0)
            n += (size_t)got;
        else if (errno != EINTR)
            break;
    why[n] = '\0';
}

static bool
open_pipes(int pipes[4][2])
{
    for (int i = 0; i < 4; i++)
        if (pipe2(pipes[i], O_CLOEXEC))
            return false;
    /* A library that prints where the pipe is full is to wait, so only our ends do not block. */
    return !fcntl(pipes[0][1], F_SETFL, O_NONBLOCK) &&
           !fcntl(pipes[1][0], F_SETFL, O_NONBLOCK) &&
           !fcntl(pipes[2][0], F_SETFL, O_NONBLOCK);
}

static void
close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Forks, waits until the program is executed, and keeps our ends of the pipes. */
static bool
fork_child(const struct runner_config *r, const char *folder, int pipes[4][2],
           struct spawned *ret, char why[WALL_TEXT])
{
    const int ends[4] = {pipes[0][0], pipes[1][1], pipes[2][1], pipes[3][1]};
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        run_child(r, folder, parent, ends);
    if (pid < 0) {
        snprintf(why, WALL_TEXT, "fork: %s", strerror(errno));
        return false;
    }
    setpgid(pid, pid);
    for (int i = 1; i < 4; i++)
        close_end(&pipes[i][1]);
    close_end(&pipes[0][0]);
    read_report(pipes[3][0], why);
    if (*why) {
        kill(-pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return false;
    }
    note_program(pid);
    *ret = (struct spawned){pid, pipes[0][1], pipes[1][0], pipes[2][0]};
    pipes[0][1] = pipes[1][0] = pipes[2][0] = -1;
    return true;
}

bool
spawn_program(const struct runner_config *r, const char *folder, struct spawned *ret,
              char why[WALL_TEXT])
{
    int pipes[4][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    bool ok = open_pipes(pipes);
    if (!ok)
        snprintf(why, WALL_TEXT, "a pipe: %s", strerror(errno));
    ok = ok && fork_child(r, folder, pipes, ret, why);
    for (int i = 0; i < 4; i++) {
        close_end(&pipes[i][0]);
        close_end(&pipes[i][1]);
    }
    return ok;
}
