/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "kept/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

enum { MOST_FILES = 200 };

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

char *
kept_folder_open(const char *name)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool has_cache = cache && *cache == '/';
    const char *root = has_cache ? cache : home;
    char *path;
    if (!root || *root != '/' ||
        asprintf(&path, "%s%s/qdq/%s", root, has_cache ? "" : "/.cache", name) < 0)
        return NULL;
    /* A home that does not exist is not made. */
    if (make_folders(path, has_cache ? 0 : strlen(root)))
        return path;
    free(path);
    return NULL;
}

char *
kept_folder_path(const char *name, const char *identity)
{
    char digest[DIGEST_SIZE], *path = NULL;
    char *folder = kept_folder_open(name);
    if (folder && digest_bytes(identity, strlen(identity), digest, NULL) &&
        asprintf(&path, "%s/%s", folder, strchr(digest, ':') + 1) < 0)
        path = NULL;
    free(folder);
    return path;
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

void
kept_folder_trim(const char *path)
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
