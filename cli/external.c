/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "external.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/files.h"

static bool
set_problem(struct api_problem *problem, const char *location, int error)
{
    bool is_link = error == ELOOP || error == ENOTDIR;
    return api_fail(problem, API_IO, "%.200s: %s", location,
                    is_link ? "a part of this path is a symbolic link, through which "
                              "no external data is read, or is not a folder"
                            : strerror(error));
}

/* --- opening -------------------------------------------------------------- */

/* Opens the folder of the path itself; where that is a link, not the folder of its target. */
static int
open_folder(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    free(copy);
    return fd;
}

/* Opens each folder on the way in turn, then the file. The engine has checked that no name
   is "..". */
static int
open_below(int folder, char *location)
{
    int at = folder, fd;
    char *name = location, *slash;
    while ((slash = strchr(name, '/'))) {
        *slash = '\0';
        int next = openat(at, *name ? name : ".",
                          O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int error = errno;
        if (at != folder)
            close(at);
        errno = error;
        if (next < 0)
            return -1;
        at = next;
        name = slash + 1;
    }
    /* Without O_NONBLOCK the open of a pipe waits for a writer. */
    fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int error = errno;
    if (at != folder)
        close(at);
    errno = error;
    return fd;
}

static bool
open_file(int folder, const char *location, struct external *external,
          struct api_problem *problem)
{
    struct stat st;
    char *copy = strdup(location);
    if (!copy)
        return api_problem_no_memory(problem);
    int fd = open_below(folder, copy), error = errno;
    free(copy);
    if (fd < 0)
        return error == ENOENT || set_problem(problem, location, error);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return api_fail(problem, API_IO, "%.200s: not a regular file", location);
    }
    external->files[external->n++] = (struct qdq_external){location, fd};
    return true;
}

static bool
open_files(const char *path, struct external *external, struct api_problem *problem)
{
    const struct qdq_locations *locations = external->locations;
    bool ok = true;
    if (locations->n == 0)
        return true;
    external->files = calloc(locations->n, sizeof *external->files);
    if (!external->files)
        return api_problem_no_memory(problem);
    int folder = open_folder(path);
    if (folder < 0)
        return set_problem(problem, path, errno);
    for (size_t i = 0; i < locations->n && ok; i++)
        ok = open_file(folder, locations->names[i], external, problem);
    close(folder);
    return ok;
}

bool
external_open(int fd, const char *path, struct external *ret,
              struct api_problem *problem)
{
    struct external external = {.n = 0};
    struct qdq_error err = {0};
    bool ok = qdq_model_locations(fd, &external.locations, &err) == QDQ_OK
                  ? open_files(path, &external, problem)
                  : api_problem_set_engine(problem, &err);
    if (ok)
        *ret = external;
    else
        external_close(&external);
    return ok;
}

void
external_close(struct external *external)
{
    for (size_t i = 0; i < external->n; i++)
        close(external->files[i].fd);
    free(external->files);
    qdq_locations_free(&external->locations);
    *external = (struct external){.n = 0};
}

bool
external_open_model(const char *path, struct qdq_model **ret,
                    struct api_problem *problem)
{
    int fd;
    struct qdq_error err = {0};
    if (!file_open(path, &fd, problem))
        return false;
    struct external external = {.n = 0};
    bool ok = external_open(fd, path, &external, problem);
    if (ok && qdq_model_open_files(fd, external.files, external.n, ret, &err) != QDQ_OK)
        ok = api_problem_set_engine(problem, &err);
    external_close(&external);
    close(fd);
    return ok;
}

/* --- the id --------------------------------------------------------------- */

/* Fills in the entry of a file under the name that the daemon uses. The caller frees
   ret->path and ret->digest. */
static bool
describe(const char *path, int fd, const char *digest,
         external_digest_fn *digest_of_file, struct api_file *ret,
         struct api_problem *problem)
{
    char own[DIGEST_SIZE];
    struct stat st;
    if (!digest && !digest_of_file(fd, path, own, problem))
        return false;
    if (fstat(fd, &st) != 0)
        return set_problem(problem, path, errno);
    char *name = strdup(path), *text = strdup(digest ? digest : own);
    if (name)
        api_path_normalize(name);
    *ret = (struct api_file){name, text, (uint64_t)st.st_size};
    return (name && text) || api_problem_no_memory(problem);
}

bool
external_digest(const struct external *external, int fd, const char *path,
                char digest[DIGEST_SIZE], external_digest_fn *digest_of_file,
                struct api_problem *problem)
{
    size_t n = external->n;
    if (n == 0)
        return true;
    struct api_file *files = calloc(n + 1, sizeof *files);
    bool ok = files ? describe(api_path_base(path), fd, digest, digest_of_file,
                               &files[0], problem)
                    : api_problem_no_memory(problem);
    for (size_t i = 0; i < n && ok; i++)
        ok = describe(external->files[i].path, external->files[i].fd, NULL,
                      digest_of_file, &files[1 + i], problem);
    char *text = ok ? api_files_identity(files, n + 1) : NULL;
    if (ok)
        ok = text ? digest_bytes(text, strlen(text), digest, problem)
                  : api_problem_no_memory(problem);
    for (size_t i = 0; files && i <= n; i++) {
        free((void *)(uintptr_t)files[i].path);
        free((void *)(uintptr_t)files[i].digest);
    }
    free(files);
    free(text);
    return ok;
}
