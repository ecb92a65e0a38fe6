/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "kept/digests.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "kept/folder.h"

enum {
    LEAST_BYTES =
        1 << 20, /* of a file whose digest takes longer than a look into the folder */
    SETTLED_SECONDS =
        2, /* after which a further change has another time on every file system */
    MOST_TEXT = 256
};

/* Prints the facts by which a file is known again. Returns false where they do not fit. */
static bool
print_facts(const struct stat *st, char ret[MOST_TEXT])
{
    const int n = snprintf(ret, MOST_TEXT, "qdq digest 1\n%jd %jd.%09ld %jd.%09ld\n",
                           (intmax_t)st->st_size, (intmax_t)st->st_mtim.tv_sec,
                           st->st_mtim.tv_nsec, (intmax_t)st->st_ctim.tv_sec,
                           st->st_ctim.tv_nsec);
    return n > 0 && n < MOST_TEXT - DIGEST_SIZE;
}

/* Returns whether a time lies far enough before `now` that a later change has another one. */
static bool
is_settled(const struct timespec *changed, time_t now)
{
    return changed->tv_sec < now - SETTLED_SECONDS;
}

/* Returns whether the times of the file tell every change of it. */
static bool
is_told_by_times(int fd, const struct stat *st, time_t now)
{
    struct statfs fs;
    return S_ISREG(st->st_mode) && st->st_size >= LEAST_BYTES &&
           is_settled(&st->st_mtim, now) && is_settled(&st->st_ctim, now) &&
           fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type != TMPFS_MAGIC &&
           (unsigned long)fs.f_type != RAMFS_MAGIC;
}

/* Returns the path of the file's record; the caller frees it. NULL: there is no folder. */
static char *
find_record(const struct stat *st)
{
    char *folder = kept_folder_open("digests"), *path = NULL;
    if (folder && asprintf(&path, "%s/%jx-%jx", folder, (uintmax_t)st->st_dev,
                           (uintmax_t)st->st_ino) < 0)
        path = NULL;
    free(folder);
    return path;
}

/* Reads the digest from a record of the same facts. Returns false where there is none. */
static bool
read_record(const char *record, const char *facts, char ret[DIGEST_SIZE])
{
    char text[MOST_TEXT];
    const int fd = open(record, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    const size_t len = strlen(facts);
    if (fd >= 0)
        close(fd);
    if (n <= 0 || (size_t)n <= len || memcmp(text, facts, len) != 0)
        return false;
    text[n] = '\0';
    char *digest = text + len, *end = strchr(digest, '\n');
    if (!end || end[1] || end - digest >= DIGEST_SIZE)
        return false;
    *end = '\0';
    if (!digest_is_id(digest))
        return false;
    memcpy(ret, digest, strlen(digest) + 1);
    (void)utimensat(AT_FDCWD, record, NULL, 0); /* it was used */
    return true;
}

/* Writes the record under another name and gives it its own then. A failure is none of the
   command's. */
static void
write_record(const char *record, const char *facts, const char *digest)
{
    char text[MOST_TEXT], *temporary;
    const int n = snprintf(text, sizeof text, "%s%s\n", facts, digest);
    if (asprintf(&temporary, "%s.XXXXXX", record) < 0)
        return;
    const int fd = mkostemp(temporary, O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, (size_t)n) == n;
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    if (ok && rename(temporary, record) == 0)
        kept_folder_trim(record);
    else if (fd >= 0)
        (void)unlink(temporary);
    free(temporary);
}

bool
kept_digest(int fd, const char *path, char ret[DIGEST_SIZE],
            struct api_problem *problem)
{
    struct stat st, after;
    char facts[MOST_TEXT], later[MOST_TEXT];
    if (fstat(fd, &st) != 0 || !is_told_by_times(fd, &st, time(NULL)) ||
        !print_facts(&st, facts))
        return digest_file(fd, path, ret, problem);
    char *record = find_record(&st);
    bool ok = record && read_record(record, facts, ret);
    if (!ok) {
        ok = digest_file(fd, path, ret, problem);
        if (ok && record && fstat(fd, &after) == 0 && print_facts(&after, later) &&
            strcmp(facts, later) == 0)
            write_record(record, facts, ret);
    }
    free(record);
    return ok;
}
