/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "kept/times.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kept/folder.h"

enum { MOST_BYTES = 8 << 20 };

/* Returns the path of the job's file; the caller frees it. NULL: there is none. */
static char *
find_path(const struct kept_times *times)
{
    char digest[DIGEST_SIZE], *path = NULL;
    const char *id = pending_id_wait(times->model_id);
    char *identity = id ? qdq_times_identity(times->spec, id) : NULL;
    char *folder = identity ? kept_folder_open("times") : NULL;
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

void
times_keep(struct kept_times *times, bool measured)
{
    struct api_problem ignored = {0};
    if (times->file.fd >= 0 && measured) {
        /* A file of which a lost machine leaves a part has another sum, and counts as empty. */
        times->file.is_synced = true;
        if (output_commit(&times->file, &ignored))
            kept_folder_trim(times->file.path);
    } else if (times->file.fd >= 0)
        (void)utimensat(AT_FDCWD, times->file.path, NULL, 0);
    output_close(&times->file);
}
