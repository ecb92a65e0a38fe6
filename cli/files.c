/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files.h"
#include "api/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_SPEC = 16 * 1024 * 1024 };

bool
file_fail(const char *path, struct api_problem *problem)
{
    return api_fail(problem, API_IO, "%s: %s", path, strerror(errno));
}

bool
file_open(const char *path, int *ret, struct api_problem *problem)
{
    struct stat st;
    /* Without O_NONBLOCK the open of a pipe waits for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return file_fail(path, problem);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return api_fail(problem, API_IO, "%s: not a regular file", path);
    }
    *ret = fd;
    return true;
}

bool
file_is(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

bool
file_rename_new(int folder, const char *from, const char *to)
{
    if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    /* A file system without that call may have links, which do not replace either. */
    return linkat(folder, from, folder, to, 0) == 0 && unlinkat(folder, from, 0) == 0;
}

char *
path_ending_in(const char *path, const char *ending, const char *by)
{
    size_t len =
        strlen(path) - (api_path_has_ending(path, ending) ? strlen(ending) : 0);
    char *out;
    return asprintf(&out, "%.*s%s", (int)len, path, by) < 0 ? NULL : out;
}

/* --- digests -------------------------------------------------------------- */

enum { WINDOW = 1 << 23 };

/* Updates the digest with the next window of the file, without a copy of its bytes. Returns
   false where it cannot be mapped whole. */
static bool
digest_window(struct digest *digest, int fd, off_t at, bool *ret_ok)
{
    void *map = mmap(NULL, WINDOW, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, at);
    if (map == MAP_FAILED)
        return false;
    /* The disk reads the next window meanwhile. */
    (void)posix_fadvise(fd, at + WINDOW, WINDOW, POSIX_FADV_WILLNEED);
    *ret_ok = digest_update(digest, map, WINDOW);
    munmap(map, WINDOW);
    return true;
}

/* Updates the digest with the bytes behind an offset, to the end of the file. Returns false
   with errno. */
static bool
digest_rest(struct digest *digest, int fd, off_t at)
{
    enum { CHUNK = 1 << 18 };
    unsigned char *chunk = malloc(CHUNK);
    ssize_t n = -1;
    while (chunk && (n = pread(fd, chunk, CHUNK, at)) > 0) {
        at += n;
        if (!digest_update(digest, chunk, (size_t)n)) {
            errno = ENOMEM;
            n = -1;
            break;
        }
    }
    free(chunk);
    return n == 0;
}

/* Updates the digest with all bytes of the file. Sets errno when it returns false. */
static bool
update_digest(struct digest *digest, int fd)
{
    struct stat st;
    off_t at = 0;
    bool ok = true;
    if (fstat(fd, &st) != 0)
        return false;
    while (ok && st.st_size - at >= WINDOW && digest_window(digest, fd, at, &ok))
        at += WINDOW;
    if (!ok)
        errno = ENOMEM;
    return ok && digest_rest(digest, fd, at);
}

bool
digest_file(int fd, const char *path, char ret[DIGEST_SIZE],
            struct api_problem *problem)
{
    struct digest *digest = digest_new();
    bool ok = digest;
    if (!ok)
        api_problem_no_memory(problem);
    else if (!update_digest(digest, fd))
        ok = file_fail(path, problem);
    else if (!digest_finish(digest, ret))
        ok = api_problem_no_memory(problem);
    digest_free(&digest);
    return ok;
}

bool
digest_bytes(const void *data, size_t len, char ret[DIGEST_SIZE],
             struct api_problem *problem)
{
    return digest_of(data, len, ret) || api_problem_no_memory(problem);
}

/* --- texts ---------------------------------------------------------------- */

/* Reads until the end of the file or pipe. The caller frees the text. */
static bool
read_text(FILE *from, const char *path, char **ret, size_t *ret_len,
          struct api_problem *problem)
{
    char *text = malloc(MAX_SPEC + 1);
    if (!text)
        return api_problem_no_memory(problem);
    errno = 0;
    size_t len = fread(text, 1, MAX_SPEC + 1, from);
    if (!ferror(from) && len <= MAX_SPEC) {
        *ret = text;
        *ret_len = len;
        return true;
    }
    free(text);
    if (ferror(from))
        return file_fail(path, problem);
    return api_fail(problem, API_LIMIT_EXCEEDED, "%s: a spec of more than %d bytes",
                    path, MAX_SPEC);
}

bool
file_read(const char *path, char **ret, size_t *ret_len, struct api_problem *problem)
{
    bool is_input = strcmp(path, "-") == 0;
    FILE *from = is_input ? stdin : fopen(path, "re");
    if (!from)
        return file_fail(path, problem);
    bool ok = read_text(from, path, ret, ret_len, problem);
    if (!is_input)
        fclose(from);
    return ok;
}

/* --- output --------------------------------------------------------------- */

enum { MAX_OUTPUTS = 8 }; /* more than any command writes */

/* The names of the temporary files that exist now. The signal handler reads it, in whichever
   thread the signal arrives. */
static char *_Atomic temporaries[MAX_OUTPUTS];
static atomic_bool is_ending;  /* no file is created any more */
static atomic_int in_creation; /* files whose names are not in `temporaries` yet */

static void
remove_temporaries(int number)
{
    static const char late[] =
        "qdq: limit_exceeded: the metric takes longer than it may, so that the "
        "command ends\n";
    if (number == SIGALRM)
        (void)!write(STDERR_FILENO, late, sizeof late - 1);
    is_ending = true;
    while (in_creation > 0)
        sched_yield();
    for (int i = 0; i < MAX_OUTPUTS; i++)
        if (temporaries[i])
            unlink(temporaries[i]);
    raise(number); /* the default action, by SA_RESETHAND */
}

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM}; /* ALRM: metric.c */

static void
catch_signals(void)
{
    struct sigaction action = {.sa_handler = remove_temporaries,
                               .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

/* Creates the file and stores its name in `temporaries`. Returns the descriptor, or -1 with
   errno. */
static int
register_temporary(char *name)
{
    int fd = mkostemp(name, O_CLOEXEC), i = 0;
    while (temporaries[i])
        i++;
    if (fd >= 0)
        temporaries[i] = name;
    return fd;
}

/* The same, so that a signal finds the file's name or comes before the file: this thread
   blocks signals, and another thread's handler waits for `in_creation`. When a handler runs
   already, this thread waits for the process to end. */
static int
make_temporary(char *name)
{
    sigset_t ours, before;
    sigemptyset(&ours);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&ours, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    in_creation++;
    if (is_ending) {
        in_creation--;
        while (true)
            pause();
    }
    int fd = register_temporary(name), saved = errno;
    in_creation--;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return fd;
}

static void
forget_temporary(const char *temporary)
{
    for (int i = 0; i < MAX_OUTPUTS; i++)
        if (temporaries[i] == temporary)
            temporaries[i] = NULL;
}

/* Returns the permissions that a new file gets by default; mkstemp() grants fewer. */
static mode_t
default_mode(void)
{
    mode_t mask = umask(077);
    umask(mask);
    return 0666 & ~mask;
}

bool
output_open(const char *path, struct output *ret, struct api_problem *problem)
{
    struct stat st;
    struct output output = OUTPUT_NONE;
    if (!path)
        return true;
    if (strcmp(path, "-") == 0)
        return api_fail(problem, API_IO,
                        "nothing is written to standard output: name a file (./- where "
                        "its name is to be -)");
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return api_fail(problem, API_IO,
                        "%s: not a regular file, so it is not overwritten", path);
    output.path = strdup(path);
    if (!output.path || asprintf(&output.temporary, "%s.tmp.XXXXXX", path) < 0) {
        output.temporary = NULL;
        output_close(&output);
        return api_problem_no_memory(problem);
    }
    catch_signals();
    output.fd = make_temporary(output.temporary);
    if (output.fd < 0) {
        file_fail(path, problem);
        free(output.temporary);
        output.temporary = NULL;
        output_close(&output);
        return false;
    }
    *ret = output;
    return true;
}

static bool
write_bytes(struct output *output, const char *bytes, size_t left,
            struct api_problem *problem)
{
    while (left > 0) {
        ssize_t n = write(output->fd, bytes, left);
        if (n < 0 && errno != EINTR)
            return file_fail(output->path, problem);
        if (n > 0) {
            bytes += n;
            left -= (size_t)n;
        }
    }
    return true;
}

bool
output_write(struct output *output, const char *text, struct api_problem *problem)
{
    return output->fd < 0 || write_bytes(output, text, strlen(text), problem);
}

bool
output_copy(struct output *output, int from, struct api_problem *problem)
{
    return output_copy_part(output, from, 0, UINT64_MAX, problem);
}

bool
output_copy_part(struct output *output, int from, uint64_t at, uint64_t size,
                 struct api_problem *problem)
{
    char chunk[1 << 16];
    ssize_t n = 0;
    while (size > 0 &&
           (n = pread(from, chunk, size < sizeof chunk ? size : sizeof chunk,
                      (off_t)at)) > 0) {
        if (!write_bytes(output, chunk, (size_t)n, problem))
            return false;
        at += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return n >= 0 || file_fail(output->path, problem);
}

void
output_begin_sync(const struct output *output)
{
    if (output->fd >= 0)
        (void)sync_file_range(output->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

void
output_drop_replaced(const struct output *output)
{
    struct api_problem none = {0};
    int fd = -1;
    if (output->fd < 0 || !file_open(output->path, &fd, &none))
        return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

bool
output_sync(struct output *output, struct api_problem *problem)
{
    if (output->fd < 0 || output->is_synced)
        return true;
    if (fchmod(output->fd, default_mode()) != 0 || fsync(output->fd) != 0)
        return file_fail(output->path, problem);
    output->is_synced = true;
    return true;
}

static bool
commit(struct output *output, bool may_replace, struct api_problem *problem)
{
    if (output->fd < 0)
        return true;
    if (!output_sync(output, problem))
        return false;
    if (may_replace ? rename(output->temporary, output->path) != 0
                    : !file_rename_new(AT_FDCWD, output->temporary, output->path))
        return file_fail(output->path, problem);
    forget_temporary(output->temporary);
    free(output->temporary);
    output->temporary = NULL;
    return true;
}

bool
output_commit(struct output *output, struct api_problem *problem)
{
    return commit(output, true, problem);
}

bool
output_commit_new(struct output *output, struct api_problem *problem)
{
    return commit(output, false, problem);
}

void
output_take_back(const struct output *output)
{
    if (output->fd >= 0 && !output->temporary)
        unlink(output->path);
}

void
output_close(struct output *output)
{
    if (output->temporary) {
        unlink(output->temporary);
        forget_temporary(output->temporary);
    }
    if (output->fd >= 0)
        close(output->fd);
    free(output->temporary);
    free(output->path);
    *output = OUTPUT_NONE;
}

const char *
report_form(const char *path)
{
    return api_path_has_ending(path, ".json") ? "application/json"
           : api_path_has_ending(path, ".md") ? "text/markdown"
                                              : "text/html";
}

int
file_open_unnamed(void)
{
    const char *folder = getenv("TMPDIR");
    folder = folder && *folder ? folder : "/tmp";
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "%s/qdq-XXXXXX", folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}
