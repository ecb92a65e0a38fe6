/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removal of blobs that no row names, where daemons share the record and the blobs are files
 * in a folder. Another daemon may store the same bytes at any moment: it finds the file, and
 * adds its row a little later. So a blob without a row gets a mark in the record, and is
 * removed when the mark is older than the grace period and there is still no row. A daemon
 * that stores a blob removes its mark before it gives the file its name, and so waits for a
 * removal that is under way.
 *
 * A removal takes the blob's name away before its transaction ends, and the file after that.
 * A daemon that stood still meanwhile finds that its transaction was ended, and gives the
 * name back.
 */
#include "config.h"
#include "base/clock.h"
#include "base/log.h"
#include "library/inner.h"
#include "store/leader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name of a blob that is set aside is that of no blob. */
static void
aside_name(const char *id, char ret[NAME_SIZE])
{
    snprintf(ret, NAME_SIZE, "%.2s/.%s", blob_hex(id), blob_hex(id));
}

static void
set_aside(void *arg, const char *id)
{
    struct library *library = arg;
    char name[NAME_SIZE], aside[NAME_SIZE];
    blob_name(id, name);
    aside_name(id, aside);
    (void)renameat(library->blobs->dir, name, library->blobs->dir, aside);
}

/* Gives the name back, unless somebody has stored the same bytes since. */
static void
give_back(struct library *library, const char *id)
{
    char name[NAME_SIZE], aside[NAME_SIZE];
    blob_name(id, name);
    aside_name(id, aside);
    if (linkat(library->blobs->dir, aside, library->blobs->dir, name, 0) == 0 ||
        errno == EEXIST)
        (void)unlinkat(library->blobs->dir, aside, 0);
}

static void
remove_aside(struct library *library, const char *id)
{
    struct stat st;
    char aside[NAME_SIZE];
    aside_name(id, aside);
    bool found = fstatat(library->blobs->dir, aside, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (found && unlinkat(library->blobs->dir, aside, 0) == 0)
        library->blobs->used -= (uint64_t)st.st_size;
    log_info("leftover_removed", "id=%s tenant=%s", id, library_tenant(library));
}

struct walk {
    struct library *library;
    struct store_blob_sweep sweep;
    struct api_problem problem;
};

static void
sweep_one(void *arg, const char *id)
{
    struct walk *walk = arg;
    struct library *library = walk->library;
    bool gone = false;
    if (walk->problem.set || store_needs_blob(library->store, id))
        return;
    lock_acquire(&library->lock);
    bool ok = library_is_incoming(library, id) ||
              store_sweep_blob(library->store, id, &walk->sweep, &gone, &walk->problem);
    if (gone && ok)
        remove_aside(library, id);
    else if (gone)
        give_back(library, id);
    lock_release(&library->lock);
}

/* Returns whether a look is due; the next one follows after a part of the grace period. */
static bool
is_due(int64_t grace, int64_t *at)
{
    if (clock_steady_ms() < *at)
        return false;
    *at = library_next_look(grace);
    return true;
}

bool
shared_folder_recount(struct library *library, int64_t grace, struct api_problem *p)
{
    return !is_due(grace, &library->count_at) || blobs_recount(library->blobs, p);
}

bool
shared_folder_sweep(struct library *library, int64_t grace, struct api_problem *p)
{
    struct walk walk = {.library = library,
                        .sweep = {clock_wall_ms(), grace, set_aside, library}};
    if (!is_due(grace, &library->sweep_at))
        return true;
    bool ok = blobs_each(library->blobs, sweep_one, &walk, p);
    if (walk.problem.set)
        *p = walk.problem;
    return ok && !walk.problem.set;
}
