/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/folder/state_folder.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_MS = 2000 };

#define BLOBS "blobs"
#define RECORD "record"
#define RECORD_SIZE 9 /* eight hex digits and a line feed */

static bool
fail(struct api_problem *p, const char *path, const char *what)
{
    return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: %s: %s", path, what,
                           strerror(errno));
}

static bool
is_empty(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    bool empty = stream != NULL;
    if (!stream && fd >= 0)
        close(fd);
    for (struct dirent *entry; stream && (entry = readdir(stream));)
        empty = empty && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."));
    if (stream)
        closedir(stream);
    return empty;
}

/* Returns whether a daemon has used the folder, whose record may be elsewhere. */
static bool
is_used(int dir)
{
    return faccessat(dir, FOLDER_DATABASE, F_OK, 0) == 0 ||
           faccessat(dir, BLOBS, F_OK, 0) == 0;
}

/* Closes the state folder to other users when it was made with another mode. A
   folder that holds foreign files is left unchanged: it may be the wrong folder. */
static bool
restrict_permissions(int dir, const char *path, struct api_problem *p)
{
    struct stat st;
    if (fstat(dir, &st))
        return fail(p, path, "looking at the state folder");
    if ((st.st_mode & 077) == 0)
        return true;
    if (!is_used(dir) && !is_empty(dir)) {
        log_info("state_folder_open", "mode=%03o", (unsigned)st.st_mode & 0777);
        return true;
    }
    return fchmod(dir, 0700) == 0 || fail(p, path, "closing it to others");
}

/* Waits for the lock for a moment: a daemon that was killed while it started a worker
   leaves its descriptor to that process until exec() closes it. */
bool
folder_lock(int dir, const char *path, struct api_problem *p)
{
    if (faccessat(dir, ".", W_OK, AT_EACCESS))
        return fail(p, path, "writing to the state folder");
    for (int64_t began = clock_steady_ms(); flock(dir, LOCK_EX | LOCK_NB);) {
        const struct timespec pause = {.tv_nsec = 20 * 1000000};
        if (errno != EWOULDBLOCK)
            return fail(p, path, "locking the state folder");
        if (clock_steady_ms() - began > LOCK_MS)
            return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                   "%s: another daemon uses this state folder", path);
        nanosleep(&pause, NULL);
    }
    return true;
}

bool
folder_open(const char *path, int *ret, struct api_problem *p)
{
    if (mkdir(path, 0700) && errno != EEXIST)
        return fail(p, path, "making the state folder");
    *ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret < 0)
        return fail(p, path, "opening the state folder");
    return restrict_permissions(*ret, path, p) && folder_lock(*ret, path, p);
}

/* --- the record that belongs to the blobs --------------------------------- */

static bool
refuse(const char *path, const char *what, struct api_problem *p)
{
    return api_problem_set(
        p, API_IO, QDQ_AT_NOTHING, NULL,
        "%s: there are stored files, but " FOLDER_DATABASE
        " %s. Put the right database "
        "back, or restore a backup into an empty folder (qdqd --restore DIR), or keep "
        "the files without their jobs (qdqd --adopt)",
        path, what);
}

bool
folder_check_database(int dir, const char *path, bool has_blobs, struct api_problem *p)
{
    struct stat st;
    bool there = fstatat(dir, FOLDER_DATABASE, &st, 0) == 0;
    if (!there && errno != ENOENT)
        return fail(p, path, "looking at the database");
    if (!has_blobs || (there && st.st_size > 0))
        return true;
    return refuse(path, there ? "is empty" : "is missing", p);
}

/* Reads the name of the record that the blobs belong to; "" when there is none. */
static bool
read_record(int dir, const char *path, char ret[RECORD_SIZE + 1], struct api_problem *p)
{
    ret[0] = '\0';
    int fd = openat(dir, RECORD, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || fail(p, path, "reading the file " RECORD);
    ssize_t n = read(fd, ret, RECORD_SIZE);
    ret[n > 0 ? n : 0] = '\0';
    bool ok = n >= 0 || fail(p, path, "reading the file " RECORD);
    close(fd);
    return ok;
}

static bool
write_record(int dir, const char *path, const char *text, struct api_problem *p)
{
    int fd = openat(dir, RECORD ".tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
              fsync(fd) == 0 && renameat(dir, RECORD ".tmp", dir, RECORD) == 0 &&
              fsync(dir) == 0;
    if (!ok)
        fail(p, path, "writing the file " RECORD);
    if (fd >= 0)
        close(fd);
    return ok;
}

bool
folder_check_record(int dir, const char *path, struct store *store, bool has_blobs,
                    bool adopt, struct api_problem *p)
{
    char named[RECORD_SIZE + 1], own[RECORD_SIZE + 1];
    struct store_identity identity;
    if (!store_identify(store, &identity, p) || !read_record(dir, path, named, p))
        return false;
    snprintf(own, sizeof own, "%08x\n", (unsigned)identity.number);
    if (!strcmp(own, named))
        return true;
    /* A database without a number is older than numbers: the copy from before a change of
       the schema, for example, which an operator puts back. */
    if (has_blobs && !adopt && *named && !identity.is_new)
        return refuse(path, "is that of other files", p);
    if (has_blobs && !adopt && !identity.has_rows)
        return refuse(path, "has no rows", p);
    return write_record(dir, path, own, p);
}
