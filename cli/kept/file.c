/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "kept/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kept/folder.h"

/* Opens the file itself; -1 where there is none that may be read. */
static int
open_file(const char *path, size_t most)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 ||
        (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= (off_t)most))
        return fd;
    close(fd);
    return -1;
}

void
kept_file_open(const char *folder, const char *identity, size_t most,
               struct output *ret)
{
    struct api_problem ignored = {0};
    char *path = kept_folder_path(folder, identity);
    const int fd =
        path && output_open(path, ret, &ignored) ? open_file(path, most) : -1;
    if (fd >= 0 && !output_copy(ret, fd, &ignored) && ftruncate(ret->fd, 0))
        output_close(ret);
    if (fd >= 0)
        close(fd);
    free(path);
}

/* Returns whether both files have the same n bytes. */
static bool
are_same(int a, int b, size_t n)
{
    char *bytes = malloc(2 * n);
    const bool ret = bytes && pread(a, bytes, n, 0) == (ssize_t)n &&
                     pread(b, bytes + n, n, 0) == (ssize_t)n &&
                     memcmp(bytes, bytes + n, n) == 0;
    free(bytes);
    return ret;
}

/* Returns whether the copy has bytes, and others than the file. */
static bool
is_changed(const struct output *file, size_t most)
{
    struct stat st, before;
    const int fd = open_file(file->path, most);
    bool ret = fstat(file->fd, &st) == 0 && st.st_size > 0 && st.st_size <= (off_t)most;
    if (ret && fd >= 0 && fstat(fd, &before) == 0 && before.st_size == st.st_size)
        ret = !are_same(file->fd, fd, (size_t)st.st_size);
    if (fd >= 0)
        close(fd);
    return ret;
}

void
kept_file_close(struct output *file, bool is_wanted, size_t most)
{
    struct api_problem ignored = {0};
    if (file->fd >= 0 && is_wanted && is_changed(file, most)) {
        /* A file of which a lost machine leaves a part has another sum, and counts as empty. */
        file->is_synced = true;
        if (output_commit(file, &ignored))
            kept_folder_trim(file->path);
    } else if (file->fd >= 0)
        (void)utimensat(AT_FDCWD, file->path, NULL, 0);
    output_close(file);
}
