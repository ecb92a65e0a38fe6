/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "judge.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qdq/judge.h"

extern char **environ;

enum { SOCKET = 3 }; /* the descriptor of the process's socket */

/* The process sends this first. */
struct greeting {
    char why[256]; /* why it cannot serve; "" where it can */
};

/* --- the command's side ---------------------------------------------------- */

/* Waits for the end of the process. Returns the signal that ended it; 0: none did. */
static int
wait_for_end(struct judge *judge)
{
    int status = 0;
    while (waitpid(judge->pid, &status, 0) < 0 && errno == EINTR)
        ;
    judge->pid = 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Starts the process with its end of the socket. Its output goes to standard error. Returns 0 or
   an errno. */
static int
spawn(struct judge *judge, int socket)
{
    char parent[24], name[] = "qdq", word[] = "--judge";
    char *library = strdup(judge->library), *patience = strdup(judge->patience);
    char *argv[] = {name, word, parent, patience, library, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    int rc = library && patience ? 0 : ENOMEM;
    if (!rc)
        rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                              O_RDONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&actions, socket, SOCKET);
    if (!rc)
        rc = posix_spawn(&judge->pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    free(library);
    free(patience);
    return rc;
}

/* Returns whether it is the signal of a fault in OpenVINO. */
static bool
is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGABRT ||
           number == SIGFPE || number == SIGILL;
}

/* Says how the process before ended. Returns false where another one would take too long, too. */
static bool
tell_end(struct judge *judge, char *text, size_t size)
{
    const int ended_by = wait_for_end(judge);
    if (is_fault(ended_by))
        snprintf(text, size, "was killed by signal %d", ended_by);
    else if (ended_by == SIGALRM)
        snprintf(text, size,
                 "OpenVINO took longer than %s s for one answer "
                 "(QDQD_WORKERS_SHORT_TIMEOUT)",
                 judge->patience);
    return ended_by != SIGALRM;
}

/* Waits until the process serves. */
static bool
is_served(struct judge *judge, int socket, char *text, size_t size)
{
    struct greeting greeting;
    ssize_t n = recv(socket, &greeting, sizeof greeting, MSG_WAITALL);
    if (n == sizeof greeting && !*greeting.why)
        return true;
    if (n == sizeof greeting)
        snprintf(text, size, "%.*s", (int)sizeof greeting.why - 1, greeting.why);
    else
        snprintf(text, size, "OpenVINO's process ended at its start (signal %d)",
                 wait_for_end(judge));
    return false;
}

/* Ends the process, which has nothing to finish. */
static void
end(struct judge *judge)
{
    if (!judge->pid)
        return;
    kill(judge->pid, SIGKILL);
    (void)wait_for_end(judge);
}

/* It is a qdq_connect_judge_fn whose `arg` is the struct judge. */
static int
connect_judge(void *arg, bool again, char *text, size_t size)
{
    struct judge *judge = arg;
    int sockets[2];
    if (!again)
        end(judge);
    else if (judge->pid && !tell_end(judge, text, size))
        return -1;
    int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) ? errno : 0;
    if (!rc) {
        rc = spawn(judge, sockets[1]);
        close(sockets[1]);
        if (!rc && is_served(judge, sockets[0], text, size))
            return sockets[0];
        close(sockets[0]);
    }
    if (rc) {
        judge->pid = 0;
        snprintf(text, size, "starting a process for OpenVINO: %s", strerror(rc));
    }
    return -1;
}

void
judge_init(struct judge *judge, const char *library, const char *patience,
           struct qdq_engine *engine)
{
    *judge = (struct judge){.library = library, .patience = patience};
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &judge->pipe);
    qdq_engine_set_judge(engine, connect_judge, judge);
}

void
judge_fini(struct judge *judge)
{
    end(judge);
    if (judge->library)
        sigaction(SIGPIPE, &judge->pipe, NULL);
    *judge = (struct judge){0};
}

/* --- the process's side ----------------------------------------------------- */

/* The seconds after which one answer of OpenVINO has taken too long. */
static unsigned seconds;

/* Has the kernel end the process (SIGALRM) where OpenVINO works longer. */
static void
watch(unsigned times)
{
    const struct itimerval timer = {.it_value.tv_sec = (time_t)seconds * times};
    setitimer(ITIMER_REAL, &timer, NULL);
}

int
judge_main(int argc, char **argv)
{
    struct qdq_judge *judge = NULL;
    struct qdq_error err = {0};
    if (argc != 3) {
        fputs("qdq: --judge is started by the command itself\n", stderr);
        return 2;
    }
    /* The process is to end with the command, also when that is killed. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(argv[0], NULL, 10))
        return EXIT_FAILURE;
    fcntl(SOCKET, F_SETFD, FD_CLOEXEC);
    seconds = (unsigned)strtoul(argv[1], NULL, 10);
    watch(1);
    struct greeting greeting = {""};
    if (qdq_judge_open(argv[2], &judge, &err))
        snprintf(greeting.why, sizeof greeting.why, "%.*s",
                 (int)sizeof greeting.why - 1, err.text);
    watch(0);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (send(SOCKET, &greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting ||
        !judge)
        return EXIT_FAILURE;
    qdq_judge_serve(judge, SOCKET, watch);
    qdq_judge_close(&judge);
    return EXIT_SUCCESS;
}
