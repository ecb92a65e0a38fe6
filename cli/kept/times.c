/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "kept/times.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 200, MOST_BYTES = 8 << 20 };

/* --- the folder ------------------------------------------------------------------ */

/* Makes the folders of a path behind its first `from` characters. */
static bool
make_folders(char *path, size_t from)
{
    for (char *end = path + from; end; *end = '/') {
        end = strchr(end + 1, '/');
        if (end)
            *end = '\0';
        if (mkdir(path, 0700) && errno != EEXIST)
            return false;
        if (!end)
            break;
    }
    return true;
}

/* Returns the folder, which is there then; the caller frees it. NULL: there is none. */
static char *
open_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool has_cache = cache && *cache == '/';
    const char *root = has_cache ? cache : home;
    char *path;
    if (!root || *root != '/' ||
        asprintf(&path, "%s%s/qdq/times", root, has_cache ? "" : "/.cache") < 0)
        return NULL;
    /* A home that does not exist is not made. */
    if (make_folders(path, has_cache ? 0 : strlen(root)))
        return path;
    free(path);
    return NULL;
}

/* Returns the path of the job's file; the caller frees it. NULL: there is none. */
static char *
find_path(const struct kept_times *times)
{
    char digest[DIGEST_SIZE], *path = NULL;
    const char *id = pending_id_wait(times->model_id);
    char *identity = id ? qdq_times_identity(times->spec, id) : NULL;
    char *folder = identity ? open_folder() : NULL;
    if (folder && digest_bytes(identity, strlen(identity), digest, NULL) &&
        asprintf(&path, "%s/%s", folder, strchr(digest, ':') + 1) < 0)
        path = NULL;
    free(folder);
    free(identity);
    return path;
}

int
times_open(void *arg)
{
    struct kept_times *times = arg;
    struct api_problem ignored = {0};
    struct stat st;
    char *path = find_path(times);
    if (!path || !output_open(path, &times->file, &ignored)) {
        free(path);
        return -1;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    free(path);
    const bool is_usable = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                           st.st_size <= MOST_BYTES;
    if (is_usable && !output_copy(&times->file, fd, &ignored) &&
        ftruncate(times->file.fd, 0))
        output_close(&times->file);
    if (fd >= 0)
        close(fd);
    return times->file.fd;
}

/* --- files that stay --------------------------------------------------------------- */

struct aged_file {
    char name[NAME_MAX + 1];
    struct timespec used;
};

static int
compare_ages(const void *a, const void *b)
{
    const struct timespec *x = &((const struct aged_file *)a)->used;
    const struct timespec *y = &((const struct aged_file *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? 1 : -1;
    return (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

/* Lists the files of the folder; the caller frees the list. */
static struct aged_file *
list_files(DIR *dir, size_t *ret_n)
{
    struct aged_file *files = NULL;
    size_t n = 0, capacity = 0;
    struct stat st;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(st.st_mode))
            continue;
        if (n == capacity) {
            capacity = 2 * capacity + 64;
            struct aged_file *grown = realloc(files, capacity * sizeof *files);
            if (!grown)
                break;
            files = grown;
        }
        snprintf(files[n].name, sizeof files[n].name, "%s", entry->d_name);
        files[n++].used = st.st_mtim;
    }
    *ret_n = n;
    return files;
}

/* Removes the files that were not used for longest. */
static void
trim_folder(const char *path)
{
    char *folder = strdup(path), *end = folder ? strrchr(folder, '/') : NULL;
    size_t n = 0;
    if (end)
        *end = '\0';
    DIR *dir = end ? opendir(folder) : NULL;
    struct aged_file *files = dir ? list_files(dir, &n) : NULL;
    if (n > MOST_FILES)
        qsort(files, n, sizeof *files, compare_ages);
    for (size_t i = MOST_FILES; i < n; i++)
        (void)!unlinkat(dirfd(dir), files[i].name, 0);
    free(files);
    if (dir)
        closedir(dir);
    free(folder);
}

void
times_keep(struct kept_times *times, bool measured)
{
    struct api_problem ignored = {0};
    if (times->file.fd >= 0 && measured) {
        /* A file of which a lost machine leaves a part has another sum, and counts as empty. */
        times->file.is_synced = true;
        if (output_commit(&times->file, &ignored))
            trim_folder(times->file.path);
    } else if (times->file.fd >= 0)
        (void)utimensat(AT_FDCWD, times->file.path, NULL, 0);
    output_close(&times->file);
}
