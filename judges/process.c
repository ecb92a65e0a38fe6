/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "judges/process.h"
#include "judges/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "qdq/judge.h"

extern char **environ;

enum { SOCKET = 3 }; /* the descriptor of the process's socket */

/* The process sends this first. */
struct greeting {
    char why[JUDGES_WHY]; /* why it cannot serve; "" where it can */
};

/* --- the program's side ------------------------------------------------------ */

/* Waits for the end of the process, if there is one. Returns the signal that ended it; 0: none. */
static int
wait_for_end(struct judges_process *process)
{
    int status = 0;
    if (!process->pid)
        return 0;
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
        ;
    process->pid = 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Waits for the end of a process whose socket was closed: it ends its programs and removes their
   folders. */
static void
wait_for_runner(const struct judges_process *process)
{
    enum { STEPS = 500 };
    const struct timespec step = {0, 10000000};
    for (int i = 0; i < STEPS; i++) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
            info.si_pid)
            return;
        nanosleep(&step, NULL);
    }
}

void
judges_process_end(struct judges_process *process)
{
    if (process->pid && process->runner)
        wait_for_runner(process);
    if (process->pid)
        kill(process->pid, SIGKILL);
    (void)wait_for_end(process);
}

/* Starts the process with its end of the socket. Its output goes to standard error. Returns 0 or
   an errno. */
static int
spawn(struct judges_process *process, int socket)
{
    char parent[24], patience[24], name[] = "qdq", word[] = "--judge";
    char *runtime = strdup(process->runtime);
    char *library = strdup(process->library ? process->library : "");
    char *runner = process->runner ? strdup(process->runner) : NULL;
    char *argv[] = {name, word, parent, patience, runtime, library, runner, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    snprintf(patience, sizeof patience, "%lld", (long long)process->patience);
    int rc = runtime && library && (runner || !process->runner) ? 0 : ENOMEM;
    if (!rc)
        rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                              O_RDONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&actions, socket, SOCKET);
    if (!rc)
        rc =
            posix_spawn(&process->pid, "/proc/self/exe", &actions, NULL, argv, environ);
    if (rc)
        process->pid = 0;
    posix_spawn_file_actions_destroy(&actions);
    free(runtime);
    free(library);
    free(runner);
    return rc;
}

/*
 * Bounds the wait for a process that neither reads nor answers. A process whose runtime takes too
 * long is ended by its own timer before; one that somebody stopped is not. A runner has a time for
 * each answer of its program, of which one answer of the process may need several.
 */
static bool
limit_silence(const struct judges_process *process, int socket)
{
    enum { SLACK_S = 5, MOST_ANSWERS = 8 };
    const int64_t answers = process->runner ? MOST_ANSWERS : 1;
    const struct timeval most = {.tv_sec =
                                     (time_t)(process->patience * answers + SLACK_S)};
    return setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most) == 0 &&
           setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) == 0;
}

/* The socket has ended, and so does the process; or it has not answered, because somebody stopped
   it. */
static int
end(void *arg)
{
    struct judges_process *process = arg;
    siginfo_t info = {.si_pid = 0};
    while (process->pid &&
           waitid(P_PID, (id_t)process->pid, &info, WEXITED | WSTOPPED | WNOWAIT) < 0 &&
           errno == EINTR)
        ;
    if (info.si_code == CLD_STOPPED)
        kill(process->pid, SIGKILL);
    return wait_for_end(process);
}

/* Waits until the process serves. */
static bool
is_served(struct judges_process *process, int socket, char why[JUDGES_WHY])
{
    struct greeting greeting;
    ssize_t n = recv(socket, &greeting, sizeof greeting, MSG_WAITALL);
    if (n == sizeof greeting && !*greeting.why)
        return true;
    if (n == sizeof greeting)
        snprintf(why, JUDGES_WHY, "%.*s", JUDGES_WHY - 1, greeting.why);
    else
        snprintf(why, JUDGES_WHY, "%s's process ended at its start (signal %d)",
                 process->title, end(process));
    return false;
}

static int
reach(void *arg, char why[JUDGES_WHY])
{
    struct judges_process *process = arg;
    int sockets[2];
    judges_process_end(process); /* that of an earlier work */
    int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) ? errno : 0;
    if (!rc) {
        rc = limit_silence(process, sockets[0]) ? spawn(process, sockets[1]) : errno;
        close(sockets[1]);
        if (!rc && is_served(process, sockets[0], why))
            return sockets[0];
        close(sockets[0]);
    }
    if (rc)
        snprintf(why, JUDGES_WHY, "starting a process for %s: %s", process->title,
                 strerror(rc));
    return -1;
}

const struct judges_host judges_process_host = {.reach = reach, .end = end};

/* --- the process's side ------------------------------------------------------ */

/* Opens the judge of a runtime by its library, or by a runner. */
static enum qdq_code
open_judge(char **argv, struct runner_config *runner, struct qdq_judge **ret,
           struct qdq_error *err)
{
    const char *text = argv[4];
    enum qdq_code code;
    if (!text) {
        judges_watch(1);
        code = qdq_judge_open_runtime(argv[2], argv[3], ret, err);
        judges_watch(0);
    } else if (!(code = runner_decode(text, runner, err)))
        code = runner_judge_new(runner, argv[2], runner->folder, ret, err);
    return code;
}

int
judges_process_main(int argc, char **argv)
{
    struct qdq_judge *judge = NULL;
    struct qdq_error err = {0};
    struct runner_config runner = {0};
    if (argc != 4 && argc != 5) {
        fputs("qdq: --judge is started by the command itself\n", stderr);
        return 2;
    }
    /* The process is to end with the program, also when that is killed. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(argv[0], NULL, 10))
        return EXIT_FAILURE;
    fcntl(SOCKET, F_SETFD, FD_CLOEXEC);
    judges_set_patience(strtol(argv[1], NULL, 10));
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    struct greeting greeting = {""};
    if (open_judge(argv, &runner, &judge, &err))
        snprintf(greeting.why, sizeof greeting.why, "%.*s",
                 (int)sizeof greeting.why - 1, err.text);
    if (send(SOCKET, &greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting ||
        !judge)
        return EXIT_FAILURE;
    qdq_judge_serve(judge, SOCKET, argc == 4 ? judges_watch : NULL);
    qdq_judge_close(&judge);
    runner_fini(&runner);
    return EXIT_SUCCESS;
}
