/* SPDX-License-Identifier: Apache-2.0 */
/* Stored files without a database get rows in a new one. */
#include "config.h"
#include "base/clock.h"
#include "library/inner.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A walk over the blobs that no row names. */
struct walk {
    struct library *library;
    uint64_t n; /* those that got a row */
    struct api_problem problem;
};

static void
adopt_leftover(void *arg, const char *id)
{
    struct walk *walk = arg;
    struct library *library = walk->library;
    struct store_file file = {.created_at = clock_wall_ms()};
    struct stat st;
    bool is_new;
    int fd;
    if (walk->problem.set || library_is_needed(library, id) ||
        !blob_read(library->blobs, id, &fd, &walk->problem)) {
        if (walk->problem.code == API_DAMAGED)
            walk->problem = (struct api_problem){0};
        return;
    }
    snprintf(file.id, sizeof file.id, "%s", id);
    file.size = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    close(fd);
    walk->n +=
        store_file_add(library->store, STORE_BLOB, &file, &is_new, &walk->problem);
}

bool
library_adopt(const char *path, uint64_t *ret_n, struct api_problem *p)
{
    struct walk walk = {0};
    if (!library_open_at(path, &(struct library_place){.adopt = true}, &walk.library,
                         p))
        return false;
    bool ok = blobs_each(walk.library->blobs, adopt_leftover, &walk, p);
    if (ok && walk.problem.set) {
        *p = walk.problem;
        ok = false;
    }
    ok = ok && store_sync(walk.library->store, p);
    *ret_n = walk.n;
    library_close(&walk.library);
    return ok;
}
