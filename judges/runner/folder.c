/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runner/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FILES = 10000, MOST_DEPTH = 32, BLOCK = 512 };

static enum qdq_code
fail(struct qdq_error *err, const char *what)
{
    return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL, "%.300s: %s", what,
                         strerror(errno));
}

enum qdq_code
runner_folder_make(const char *above, struct runner_folder *ret, struct qdq_error *err)
{
    ret->fd = -1;
    if (snprintf(ret->path, sizeof ret->path, "%s/runner-XXXXXX", above) >=
        (int)sizeof ret->path)
        errno = ENAMETOOLONG;
    else if (mkdtemp(ret->path)) {
        ret->fd = open(ret->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (ret->fd >= 0 && flock(ret->fd, LOCK_EX | LOCK_NB) == 0)
            return QDQ_OK;
        rmdir(ret->path);
    }
    return fail(err, above);
}

/* Opens a folder's list of files; takes no link for a folder. */
static DIR *
open_list(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list && fd >= 0)
        close(fd);
    return list;
}

/* Returns the next entry that is not "." or "..". */
static const char *
next_name(DIR *list)
{
    const struct dirent *entry;
    while ((entry = readdir(list)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    return NULL;
}

/* --- removal ------------------------------------------------------------------ */

/* Removes the files of a folder's folder, and moves the folders in it to the top, so that no depth is too
   deep. */
static void
flatten(int top, const char *name, unsigned *moved)
{
    char new_name[32];
    const char *entry;
    DIR *list = open_list(top, name);
    while (list && (entry = next_name(list)))
        if (unlinkat(dirfd(list), entry, 0) && (errno == EISDIR || errno == EPERM)) {
            snprintf(new_name, sizeof new_name, "moved-%u", ++*moved);
            if (unlinkat(dirfd(list), entry, AT_REMOVEDIR))
                renameat(dirfd(list), entry, top, new_name);
        }
    if (list)
        closedir(list);
    unlinkat(top, name, AT_REMOVEDIR);
}

/* Removes what is at the top. Returns whether there was anything. */
static bool
empty_top(int top, unsigned *moved)
{
    bool any = false;
    const char *entry;
    DIR *list = open_list(top, ".");
    while (list && (entry = next_name(list))) {
        any = true;
        if (unlinkat(top, entry, 0) && (errno == EISDIR || errno == EPERM))
            flatten(top, entry, moved);
    }
    if (list)
        closedir(list);
    return any;
}

void
runner_folder_remove(struct runner_folder *folder)
{
    unsigned moved = 0;
    if (folder->fd < 0)
        return;
    for (int i = 0; i < 100000 && empty_top(folder->fd, &moved); i++)
        ;
    rmdir(folder->path);
    close(folder->fd);
    folder->fd = -1;
}

/* A folder that another process has made and not yet locked is too young to be one that is left. */
static bool
is_left(int fd)
{
    enum { YOUNG = 10 }; /* seconds */
    struct stat st;
    return fstat(fd, &st) == 0 && time(NULL) - st.st_ctime > YOUNG &&
           flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void
runner_folder_sweep(const char *above)
{
    DIR *list = opendir(above);
    const char *entry;
    while (list && (entry = next_name(list))) {
        struct runner_folder folder;
        folder.fd =
            openat(dirfd(list), entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder.fd < 0)
            continue;
        if (!strncmp(entry, "runner-", strlen("runner-")) &&
            snprintf(folder.path, sizeof folder.path, "%s/%s", above, entry) <
                PATH_MAX &&
            is_left(folder.fd))
            runner_folder_remove(&folder);
        else
            close(folder.fd);
    }
    if (list)
        closedir(list);
}

/* --- its size ----------------------------------------------------------------- */

static void
measure(int at, const char *name, int depth, struct runner_folder_use *ret)
{
    struct stat st;
    const char *entry;
    DIR *list = depth < MOST_DEPTH ? open_list(at, name) : NULL;
    if (!list)
        ret->files = MOST_FILES + 1; /* it cannot be measured */
    while (list && ret->files <= MOST_FILES && (entry = next_name(list))) {
        if (fstatat(dirfd(list), entry, &st, AT_SYMLINK_NOFOLLOW))
            continue; /* it is gone */
        ret->files++;
        ret->bytes += (uint64_t)st.st_blocks * BLOCK;
        if (S_ISDIR(st.st_mode))
            measure(dirfd(list), entry, depth + 1, ret);
    }
    if (list)
        closedir(list);
}

/* Adds the files that a process has open and that have no name any more. */
static void
measure_nameless(int pid, struct runner_folder_use *ret)
{
    char path[64];
    struct stat st;
    const char *entry;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *list = opendir(path);
    while (list && (entry = next_name(list)))
        if (fstatat(dirfd(list), entry, &st, 0) == 0 && S_ISREG(st.st_mode) &&
            st.st_nlink == 0)
            ret->bytes += (uint64_t)st.st_blocks * BLOCK;
    if (list)
        closedir(list);
}

struct runner_folder_use
runner_folder_measure(const struct runner_folder *folder, int pid)
{
    struct runner_folder_use use = {0};
    measure(folder->fd, ".", 0, &use);
    measure_nameless(pid, &use);
    return use;
}

/* --- files -------------------------------------------------------------------- */

enum qdq_code
runner_folder_write(const struct runner_folder *folder, const char *name,
                    const void *data, size_t size, struct qdq_error *err)
{
    const char *from = data;
    /* The program may have made something of that name. */
    unlinkat(folder->fd, name, 0);
    int fd = openat(folder->fd, name,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    ssize_t n = 0;
    while (fd >= 0 && size > 0 && (n = write(fd, from, size)) > 0) {
        from += n;
        size -= (size_t)n;
    }
    const int error = errno;
    if (fd >= 0 && close(fd) == 0 && !size)
        return QDQ_OK;
    errno = error;
    return fail(err, name);
}

static bool
read_all(int fd, char *to, size_t size)
{
    while (size > 0) {
        ssize_t n = read(fd, to, size);
        if (n <= 0)
            return false;
        to += n;
        size -= (size_t)n;
    }
    return true;
}

bool
runner_folder_read(const struct runner_folder *folder, const char *name, size_t size,
                   void **ret, char why[160])
{
    struct stat st;
    int fd = openat(folder->fd, name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    char *data = NULL;
    if (fd < 0 || fstat(fd, &st))
        snprintf(why, 160, "the file %.64s cannot be read: %s", name, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        snprintf(why, 160, "%.64s is no plain file", name);
    else if ((uint64_t)st.st_size != size)
        snprintf(why, 160, "the file %.64s has %lld bytes, and its shape needs %zu",
                 name, (long long)st.st_size, size);
    else if (!(data = malloc(size + 1)))
        snprintf(why, 160, "there is no memory for the file %.64s", name);
    else if (!read_all(fd, data, size)) {
        snprintf(why, 160, "the file %.64s cannot be read", name);
        free(data);
        data = NULL;
    }
    if (fd >= 0)
        close(fd);
    *ret = data;
    return data != NULL;
}

void
runner_folder_drop(const struct runner_folder *folder, const char *name)
{
    unlinkat(folder->fd, name, 0);
}
