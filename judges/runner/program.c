/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runner/program.h"
#include "runner/spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_LINE = 16 << 20, MOST_LOG = 64 << 10, TICK_MS = 200, END_MS = 2000 };
enum { MOST_FILES = 10000 };

static int64_t
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum qdq_code
program_fail(struct program *p, struct qdq_error *err, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    p->failed = true;
    return qdq_error_set(err, QDQ_RUNNER_FAILED, QDQ_AT_NOTHING, NULL,
                         "the runner '%.32s' %s%s%.*s", p->runner->name, text,
                         p->log_len ? "; its log ends with: " : "", (int)p->log_len,
                         p->log_line);
}

/* --- its log ------------------------------------------------------------------ */

/* Keeps the last line, in which control characters become '?'. */
static void
keep_line(struct program *p, char c)
{
    if (c == '\n') {
        p->log_ended = p->log_len > 0;
        return;
    }
    if (p->log_ended)
        p->log_len = 0;
    p->log_ended = false;
    if (p->log_len < sizeof p->log_line)
        p->log_line[p->log_len++] = (unsigned char)c < ' ' || c == 0x7f ? '?' : c;
}

static void
pass_on(struct program *p, const char *bytes, size_t n)
{
    if (n > MOST_LOG - p->logged)
        n = MOST_LOG - p->logged;
    p->logged += n;
    while (n > 0) {
        ssize_t written = write(STDERR_FILENO, bytes, n);
        if (written <= 0)
            return;
        bytes += written;
        n -= (size_t)written;
    }
}

static void
read_log(struct program *p)
{
    char bytes[4096];
    ssize_t n = read(p->log, bytes, sizeof bytes);
    if (n > 0) {
        pass_on(p, bytes, (size_t)n);
        for (ssize_t i = 0; i < n; i++)
            keep_line(p, bytes[i]);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(p->log);
        p->log = -1;
    }
}

/* Reads the rest of the log of a program that has ended. */
static void
drain_log(struct program *p)
{
    for (int i = 0; i < 64 && p->log >= 0; i++) {
        struct pollfd ready = {.fd = p->log, .events = POLLIN};
        if (poll(&ready, 1, 0) <= 0)
            return;
        read_log(p);
    }
}

/* --- its end ------------------------------------------------------------------ */

/* Waits at most so long for the end of the program. Does not reap it, so that its group keeps
   its number. */
static bool
wait_for_end(const struct program *p, int ms)
{
    const int64_t deadline = now_ms() + ms;
    struct timespec nap = {0, 1000000};
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        int rc = waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if ((rc == 0 && info.si_pid) || (rc < 0 && errno == ECHILD))
            return true;
        if (now_ms() >= deadline)
            return false;
        nanosleep(&nap, NULL);
    }
}

/* Kills the group, in which nothing can have survived the kernel's loop over its members, and
   reaps the program. Returns its status. */
static int
kill_group(struct program *p)
{
    int status = 0;
    kill(-p->pid, SIGKILL);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    p->pid = 0;
    return status;
}

/* Fails because the program has closed its standard output, and says how it ended. */
static enum qdq_code
fail_ended(struct program *p, struct qdq_error *err)
{
    const bool ended = wait_for_end(p, END_MS);
    const int status = kill_group(p);
    drain_log(p);
    if (!ended)
        return program_fail(p, err, "closed its standard output");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
        return program_fail(p, err, "wrote a file larger than `disk` of its section");
    return WIFSIGNALED(status)
               ? program_fail(p, err, "was killed by signal %d", WTERMSIG(status))
               : program_fail(p, err, "ended with status %d", WEXITSTATUS(status));
}

static void
close_pipe(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void
program_end(struct program *p, bool asked)
{
    close_pipe(&p->in);
    if (p->pid && asked)
        wait_for_end(p, END_MS);
    if (p->pid)
        (void)kill_group(p);
    spawn_sweep();
    drain_log(p);
    close_pipe(&p->out);
    close_pipe(&p->log);
    free(p->line);
    p->line = NULL;
    runner_folder_remove(&p->folder);
}

/* --- one request and its answer ------------------------------------------------- */

struct asking {
    const char *line; /* the rest that is to be sent, with a line feed behind */
    size_t left;
    int64_t deadline;
};

static enum qdq_code
check_use(struct program *p, struct qdq_error *err)
{
    const struct runner_folder_use use = runner_folder_measure(&p->folder, p->pid);
    if (use.bytes > (uint64_t)p->runner->disk)
        return program_fail(p, err, "has more than %lld bytes in its files (disk)",
                            (long long)p->runner->disk);
    return use.files > MOST_FILES
               ? program_fail(p, err, "has too many files, or folders too deep")
               : QDQ_OK;
}

/* Sends what the pipe takes. A program that has ended is noticed by its output. */
static void
send_some(struct program *p, struct asking *a)
{
    ssize_t n = write(p->in, a->line, a->left);
    if (n > 0) {
        a->line += n;
        a->left -= (size_t)n;
    } else if (n < 0 && errno != EAGAIN && errno != EINTR)
        a->left = 0;
}

/* Makes room for more of the answer and a NUL. */
static enum qdq_code
make_room(struct program *p, size_t more, struct qdq_error *err)
{
    if (p->line_len + more < p->line_room)
        return QDQ_OK;
    size_t room = (p->line_len + more + 1) * 2;
    char *line = realloc(p->line, room);
    if (!line)
        return qdq_error_set(err, QDQ_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    p->line = line;
    p->line_room = room;
    return QDQ_OK;
}

/* Reads some of the answer. *ret_whole: its line feed has come. */
static enum qdq_code
receive_some(struct program *p, bool *ret_whole, struct qdq_error *err)
{
    enum { PIECE = 64 << 10 };
    enum qdq_code code = make_room(p, PIECE, err);
    if (code)
        return code;
    ssize_t n = read(p->out, p->line + p->line_len, PIECE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return QDQ_OK;
    if (n <= 0)
        return fail_ended(p, err);
    char *feed = memchr(p->line + p->line_len, '\n', (size_t)n);
    p->line_len += (size_t)n;
    if (feed && feed + 1 != p->line + p->line_len)
        return program_fail(p, err, "wrote more than one line of answer");
    if (p->line_len > MOST_LINE)
        return program_fail(p, err, "wrote a line of more than %d bytes", MOST_LINE);
    if (feed) {
        *feed = '\0';
        p->line_len--;
    }
    *ret_whole = feed != NULL;
    return QDQ_OK;
}

/* Waits for the next event, and handles it. */
static enum qdq_code
step(struct program *p, struct asking *a, bool *ret_whole, struct qdq_error *err)
{
    struct pollfd fds[] = {{.fd = p->out, .events = POLLIN},
                           {.fd = p->log, .events = POLLIN},
                           {.fd = a->left ? p->in : -1, .events = POLLOUT}};
    const int64_t left = a->deadline - now_ms();
    if (left <= 0)
        return program_fail(p, err, "took longer than %lld s for one answer (timeout)",
                            (long long)p->runner->timeout);
    poll(fds, 3, left < TICK_MS ? (int)left : TICK_MS);
    if (fds[1].revents)
        read_log(p);
    if (fds[2].revents)
        send_some(p, a);
    return fds[0].revents ? receive_some(p, ret_whole, err) : QDQ_OK;
}

enum qdq_code
program_ask(struct program *p, const char *line, int64_t seconds, struct qdq_error *err)
{
    char *sent = NULL;
    bool whole = false;
    if (p->failed)
        return program_fail(p, err, "has failed before");
    if (asprintf(&sent, "%s\n", line) < 0)
        return qdq_error_set(err, QDQ_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    struct asking a = {sent, strlen(sent), now_ms() + seconds * 1000};
    enum qdq_code code = QDQ_OK;
    int64_t checked = 0;
    p->line_len = 0;
    while (!code && !whole) {
        code = step(p, &a, &whole, err);
        if (!code && (whole || now_ms() - checked >= TICK_MS)) {
            code = check_use(p, err);
            checked = now_ms();
        }
    }
    free(sent);
    p->failed = p->failed || code;
    return code;
}

enum qdq_code
program_start(const struct runner_config *r, const char *above, struct program *ret,
              struct qdq_error *err)
{
    char why[WALL_TEXT] = "";
    *ret =
        (struct program){.runner = r, .folder.fd = -1, .in = -1, .out = -1, .log = -1};
    enum qdq_code code = runner_folder_make(above, &ret->folder, err);
    if (code)
        return code;
    struct spawned s;
    if (!spawn_program(r, ret->folder.path, &s, why))
        return program_fail(ret, err, "cannot be started: %s", why);
    ret->pid = s.pid;
    ret->in = s.in;
    ret->out = s.out;
    ret->log = s.log;
    return QDQ_OK;
}
