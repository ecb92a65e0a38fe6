/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pull_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

bool
place_check_name(const char *name, struct api_problem *problem)
{
    if (*name != '.' && !strstr(name, "/."))
        return true;
    return api_fail(problem, API_REMOTE_DENIED,
                    "the version has the file %.300s, and a part of that name begins "
                    "with a dot, so nothing is pulled",
                    name);
}

/* Opens a folder in another, neither of which is reached through a link, and makes it when it is
   absent. Returns -1 with errno. */
static int
open_folder(int parent, const char *name)
{
    if (mkdirat(parent, name, 0777) != 0 && errno != EEXIST)
        return -1;
    return openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens the folder of the file part by part. Its last part becomes place->name. */
static bool
open_folders(int root, const char *name, struct place *place)
{
    const char *part = name;
    place->folder = fcntl(root, F_DUPFD_CLOEXEC, 0);
    for (size_t len; place->folder >= 0 && part[len = strcspn(part, "/")];
         part += len + 1) {
        char *one = strndup(part, len);
        int next = one ? open_folder(place->folder, one) : -1, error = errno;
        free(one);
        close(place->folder);
        place->folder = next;
        errno = error;
    }
    place->name = strdup(part);
    return place->folder >= 0 && place->name;
}

/* Fails with errno, or says that something stands in the way. */
static bool
fail_place(const struct place *place, struct api_problem *problem)
{
    bool is_link = errno == ELOOP || errno == ENOTDIR;
    return is_link
               ? api_fail(problem, API_IO,
                          "%s: a part of this path is a symbolic link, through which "
                          "nothing is written, or is not a folder",
                          place->path)
               : file_fail(place->path, problem);
}

/* Opens the file that has the place. *ret is -1 where there is none. */
static bool
open_present(const struct place *place, int *ret, struct api_problem *problem)
{
    struct stat st;
    *ret = -1;
    if (fstatat(place->folder, place->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || fail_place(place, problem);
    if (!S_ISREG(st.st_mode))
        return api_fail(
            problem, API_IO, "%s: a %s is there, so nothing is written", place->path,
            S_ISLNK(st.st_mode) ? "symbolic link" : "thing that is no file");
    *ret = openat(place->folder, place->name,
                  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return *ret >= 0 || fail_place(place, problem);
}

static bool
fail_other_bytes(const struct place *place, struct api_problem *problem)
{
    return api_fail(problem, API_IO,
                    "%s is there with other bytes, so it is not overwritten; --force "
                    "does that",
                    place->path);
}

/* Returns whether an open file has the bytes of the digest; "" is that of none. */
static bool
has_bytes(int fd, const char *wanted)
{
    char digest[DIGEST_SIZE];
    return *wanted && digest_file(fd, "", digest, NULL) && strcmp(digest, wanted) == 0;
}

/* Looks at the file that has the place. Where its bytes are `wanted`, *ret_fd is that file, else
   -1. A size or a digest that is not known tells no difference. */
static bool
check_present(const struct place *place, const char *wanted, int64_t size, bool force,
              int *ret_fd, struct api_problem *problem)
{
    struct stat st;
    if (!open_present(place, ret_fd, problem))
        return false;
    if (*ret_fd < 0 || has_bytes(*ret_fd, wanted))
        return true;
    bool differs =
        *wanted || (size >= 0 && fstat(*ret_fd, &st) == 0 && st.st_size != size);
    close(*ret_fd);
    *ret_fd = -1;
    return !differs || force || fail_other_bytes(place, problem);
}

/* Opens the hidden file, which an earlier pull may have left. Another name of that file would
   change with it. */
static bool
open_hidden(struct place *place, struct api_problem *problem)
{
    struct stat st;
    place->fd = openat(place->folder, place->hidden,
                       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (place->fd < 0 || fstat(place->fd, &st) != 0)
        return fail_place(place, problem);
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return api_fail(problem, API_IO, "%s: %s beside it has another name, too",
                        place->path, place->hidden);
    return flock(place->fd, LOCK_EX | LOCK_NB) == 0 ||
           api_fail(problem, API_IO, "%s: another pull is writing it", place->path);
}

bool
place_open(int root, const char *path, const struct qdqr_file *file, const char *key,
           bool force, struct place *ret, struct api_problem *problem)
{
    *ret = PLACE_NONE;
    if (asprintf(&ret->path, "%s/%s", path, file->name) < 0) {
        ret->path = NULL;
        return api_problem_no_memory(problem);
    }
    if (!open_folders(root, file->name, ret))
        return fail_place(ret, problem);
    if (!check_present(ret, file->digest, file->size, force, &ret->fd, problem))
        return false;
    ret->is_complete = ret->fd >= 0;
    if (ret->is_complete)
        return true;
    if (asprintf(&ret->hidden, ".%s.%s.part", ret->name, key) < 0) {
        ret->hidden = NULL;
        return api_problem_no_memory(problem);
    }
    return open_hidden(ret, problem);
}

bool
place_publish(struct place *place, const char *digest, bool force, bool *ret_new,
              struct api_problem *problem)
{
    int present;
    *ret_new = false;
    if (place->is_complete)
        return true;
    if (fsync(place->fd) != 0)
        return file_fail(place->path, problem);
    if (file_rename_new(place->folder, place->hidden, place->name))
        return *ret_new = true;
    if (errno != EEXIST)
        return file_fail(place->path, problem);
    if (!check_present(place, digest, -1, force, &present, problem))
        return false;
    if (present < 0)
        return renameat(place->folder, place->hidden, place->folder, place->name) ==
                   0 ||
               file_fail(place->path, problem);
    close(present);
    place_discard(place);
    return true;
}

void
place_take_back(const struct place *place)
{
    (void)!renameat(place->folder, place->name, place->folder, place->hidden);
}

void
place_discard(const struct place *place)
{
    if (place->hidden && place->folder >= 0)
        unlinkat(place->folder, place->hidden, 0);
}

void
place_close(struct place *place)
{
    if (place->fd >= 0)
        close(place->fd);
    if (place->folder >= 0)
        close(place->folder);
    free(place->path);
    free(place->name);
    free(place->hidden);
    *place = PLACE_NONE;
}
