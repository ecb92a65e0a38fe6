/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/scripts.h"
#include "settings/settings.h"
#include "qdq/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
fail(struct api_problem *p, const char *what)
{
    return api_problem_set(p, errno == ENOMEM ? API_NO_MEMORY : API_IO, QDQ_AT_NOTHING,
                           NULL, "%s: %s", what, strerror(errno));
}

static int
is_script(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 4 && !strcmp(entry->d_name + len - 4, ".lua");
}

/* Adds the length before the bytes, so that no two folders hash the same bytes. */
static bool
add_bytes(struct digest *digest, const void *data, uint64_t len, bool *ok)
{
    *ok = *ok && digest_update(digest, &len, sizeof len) &&
          digest_update(digest, data, len);
    return *ok;
}

static bool
add_file(struct digest *digest, int dir, const char *name)
{
    char chunk[8192];
    ssize_t n;
    bool ok = true;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    add_bytes(digest, name, strlen(name), &ok);
    while ((n = read(fd, chunk, sizeof chunk)) > 0 && ok)
        add_bytes(digest, chunk, (uint64_t)n, &ok);
    add_bytes(digest, NULL, 0, &ok);
    close(fd);
    return ok && n == 0;
}

bool
scripts_digest(const char *folder, char ret[DIGEST_SIZE], struct api_problem *p)
{
    struct dirent **entries = NULL;
    ret[0] = '\0';
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT || !*folder || fail(p, folder);
    int n = scandirat(dir, ".", &entries, is_script, alphasort);
    struct digest *digest = digest_new();
    bool ok = n >= 0 && digest;
    for (int i = 0; i < n; i++) {
        ok = ok && add_file(digest, dir, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    ok = (ok && (n == 0 || digest_finish(digest, ret))) || fail(p, folder);
    digest_free(&digest);
    close(dir);
    return ok;
}

/* Appends size and time of a library behind `before`, if there is such a file. */
static void
add_identity(const char *library, const char *before, char ret[RUNTIME_SIZE])
{
    struct stat st;
    size_t n = strlen(ret);
    if (strchr(library, '/') && stat(library, &st) == 0)
        snprintf(ret + n, RUNTIME_SIZE - n, "%s%lld %lld.%09ld", before,
                 (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                 st.st_mtim.tv_nsec);
}

void
runtime_identity(const struct settings *settings, char ret[RUNTIME_SIZE])
{
    const struct qdq_runtime_row *row;
    char before[64];
    ret[0] = '\0';
    add_identity(settings->engine_runtime, "", ret);
    for (size_t i = 0; (row = qdq_runtime_row(i)); i++) {
        snprintf(before, sizeof before, "; %s ", row->title);
        if (row->own_process)
            add_identity(settings_library(settings, row->name), before, ret);
    }
}
