/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs that no row names, which a crash or an older database leaves: they are said at
   the start, and removed or adopted later. */
#include "config.h"
#include "base/clock.h"
#include "base/log.h"
#include "library/library_inner.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_NAMED 20 /* leftovers that have a line of their own in the log */

/* A walk over the leftovers. */
struct walk {
    struct library *library;
    uint64_t n;
    struct api_problem problem;
};

/* Returns whether no row names the blob and no thread is publishing it. */
static bool
is_leftover(struct library *library, const char *id)
{
    lock_acquire(&library->lock);
    bool leftover =
        !library_is_incoming(library, id) && !store_needs_blob(library->store, id);
    lock_release(&library->lock);
    return leftover;
}

static void
name_leftover(void *arg, const char *id)
{
    struct walk *walk = arg;
    if (is_leftover(walk->library, id) && walk->n++ < MOST_NAMED)
        log_info("leftover_found", "id=%s tenant=%s", id,
                 library_tenant(walk->library));
}

bool
library_find_leftovers(struct library *library, struct api_problem *p)
{
    struct walk walk = {.library = library};
    library->opened_at = clock_steady_ms();
    if (!blobs_each(library->blobs, name_leftover, &walk, p))
        return false;
    library->has_leftovers = walk.n > 0;
    if (walk.n)
        log_info("leftovers_found", "n=%llu tenant=%s", (unsigned long long)walk.n,
                 library_tenant(library));
    return true;
}

static void
remove_leftover(void *arg, const char *id)
{
    struct walk *walk = arg;
    struct library *library = walk->library;
    lock_acquire(&library->lock);
    bool leftover =
        !library_is_incoming(library, id) && !store_needs_blob(library->store, id);
    if (leftover) {
        log_info("leftover_removed", "id=%s tenant=%s", id, library_tenant(library));
        blob_remove(library->blobs, id);
    }
    lock_release(&library->lock);
    walk->n += leftover;
}

bool
library_remove_leftovers(struct library *library, int64_t grace, struct api_problem *p)
{
    struct walk walk = {.library = library};
    if (!library->has_leftovers || clock_steady_ms() - library->opened_at < grace)
        return true;
    library->has_leftovers = false;
    return blobs_each(library->blobs, remove_leftover, &walk, p);
}

static void
adopt_leftover(void *arg, const char *id)
{
    struct walk *walk = arg;
    struct library *library = walk->library;
    struct store_file file = {.created_at = clock_wall_ms()};
    struct stat st;
    bool is_new;
    int fd;
    if (walk->problem.set || !is_leftover(library, id) ||
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
