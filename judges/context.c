/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "judges/context.h"
#include "runner/session.h"
#include "runner/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The descriptors of the process. */
enum { MODEL = 3, CONTEXT, WHY };

/* --- the program's side ------------------------------------------------------ */

/* Starts the process. Returns 0 or an errno. */
static int
spawn(const struct runner_config *runner, int model, int to, int why, pid_t *ret)
{
    char parent[24], name[] = "qdq", word[] = JUDGES_CONTEXT_WORD;
    char *text = runner_encode(runner);
    char *argv[] = {name, word, parent, text, NULL};
    const int from[] = {model, to, why};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    int rc = text ? posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
                                                     "/dev/null", O_RDONLY, 0)
                  : ENOMEM;
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    for (int i = 0; !rc && i < 3; i++)
        rc = posix_spawn_file_actions_adddup2(&actions, from[i], MODEL + i);
    if (!rc)
        rc = posix_spawn(ret, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    free(text);
    return rc;
}

/* Reads what the process says, until it ends. */
static void
read_why(int fd, char why[JUDGES_WHY])
{
    size_t n = 0;
    ssize_t got;
    while (n < JUDGES_WHY - 1 && (got = read(fd, why + n, JUDGES_WHY - 1 - n)) != 0)
        if (got > 0)
            n += (size_t)got;
        else if (errno != EINTR)
            break;
    why[n] = '\0';
}

/* Returns a copy of a descriptor behind those of the process, so that none is written over. */
static int
move_up(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, WHY + 1);
}

bool
judges_make_context(const struct runner_config *runner, int model, int to,
                    char why[JUDGES_WHY])
{
    pid_t pid = 0;
    int pipes[2], status = 0;
    *why = '\0';
    if (pipe2(pipes, O_CLOEXEC)) {
        snprintf(why, JUDGES_WHY, "a pipe: %s", strerror(errno));
        return false;
    }
    const int from = move_up(model), into = move_up(to), end = move_up(pipes[1]);
    const int rc =
        from < 0 || into < 0 || end < 0 ? errno : spawn(runner, from, into, end, &pid);
    close(from);
    close(into);
    close(end);
    close(pipes[1]);
    if (rc)
        snprintf(why, JUDGES_WHY, "starting a process: %s", strerror(rc));
    else
        read_why(pipes[0], why);
    close(pipes[0]);
    while (!rc && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    const bool ok = !rc && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ok && !*why)
        snprintf(why, JUDGES_WHY, "its process ended by signal %d", WTERMSIG(status));
    return ok;
}

/* --- the process's side ------------------------------------------------------ */

static bool
write_all(const char *data, size_t size)
{
    while (size) {
        ssize_t n = write(CONTEXT, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

/* Has a program compile the model, and writes what it gives. */
static enum qdq_code
compile(const struct runner_config *runner, const char *above, struct qdq_error *err)
{
    const struct qdq_run_options options = {.threads = 0, .reads_only = true};
    struct runner_session session;
    struct stat st;
    void *bytes = NULL, *model = MAP_FAILED;
    size_t size = 0;
    if (!fstat(MODEL, &st) && st.st_size > 0)
        model = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, MODEL, 0);
    if (model == MAP_FAILED)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "the result cannot be read");
    enum qdq_code code = runner_session_open(runner, above, &session, err);
    if (!code)
        code = runner_session_load(&session, model, (size_t)st.st_size, &options, err);
    if (!code)
        code = runner_session_make_context(&session, &bytes, &size, err);
    runner_session_close(&session);
    if (!code && !write_all(bytes, size))
        code = qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "writing the context: %s", strerror(errno));
    free(bytes);
    munmap(model, (size_t)st.st_size);
    return code;
}

static enum qdq_code
compile_within_walls(const char *text, struct qdq_error *err)
{
    char lacking[WALL_TEXT];
    struct runner_config runner = {0};
    struct runner_folder folder = {.fd = -1};
    enum qdq_code code = runner_decode(text, &runner, err);
    if (!code) {
        runner_folder_sweep(runner.folder);
        code = runner_folder_make(runner.folder, &folder, err);
    }
    if (!code && !walls_enter_around(&runner, folder.path, lacking))
        code = qdq_error_set(err, QDQ_RUNNER_FAILED, QDQ_AT_NOTHING, NULL,
                             "its walls cannot be built: %s", lacking);
    if (!code)
        code = compile(&runner, folder.path, err);
    if (folder.fd >= 0)
        runner_folder_remove(&folder);
    runner_fini(&runner);
    return code;
}

int
judges_context_main(int argc, char **argv)
{
    struct qdq_error err = {0};
    if (argc != 2) {
        fputs("qdq: " JUDGES_CONTEXT_WORD " is started by the command itself\n",
              stderr);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(argv[0], NULL, 10))
        return EXIT_FAILURE;
    for (int fd = MODEL; fd <= WHY; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (!compile_within_walls(argv[1], &err))
        return EXIT_SUCCESS;
    dprintf(WHY, "%.*s", JUDGES_WHY - 1, err.text);
    return EXIT_FAILURE;
}
