/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs that are kept in the files of the state folder alone. */
#include "config.h"
#include "base/log.h"
#include "base/sync.h"
#include "library/inner.h"
#include "store/leader.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static bool
open_absent(struct blobs *blobs, const char *id, int *ret, struct api_problem *p)
{
    (void)ret;
    return blobs_is_set_aside(blobs, id)
               ? blobs_fail_damaged(id, p)
               : api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                                 "there is no blob %s", id);
}

static bool
is_kept(struct blobs *blobs, const char *id, uint64_t size)
{
    uint64_t found;
    lock_acquire(&blobs->naming);
    bool kept = blobs_is_verified(blobs, id, &found) && found == size;
    lock_release(&blobs->naming);
    return kept;
}

static bool
set_aside(struct blobs *blobs, const char *id, const char *name)
{
    return renameat(blobs->dir, name, blobs->damaged, blob_hex(id)) == 0;
}

static void
report_damaged(struct blobs *blobs, const char *id, uint64_t size)
{
    blobs->n_damaged++;
    log_error("blob_damaged", "id=%s size=%llu moved_to=damaged/%s", id,
              (unsigned long long)size, blob_hex(id));
    if (blobs->on_damaged)
        blobs->on_damaged(blobs->damaged_arg, id);
}

static bool
sync_replacement(int fd)
{
    return fdatasync(fd) == 0;
}

/* Opens the folder that holds a blob. */
static int
open_folder_of(struct blobs *blobs, const char *id)
{
    char folder[4];
    snprintf(folder, sizeof folder, "%.2s", blob_hex(id));
    return openat(blobs->dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int
open_file_of(struct blobs *blobs, const char *id)
{
    char name[NAME_SIZE];
    blob_name(id, name);
    return openat(blobs->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* Does so with up to SYNC_MOST / 2 blobs, all at once. */
static bool
sync_blobs(struct blobs *blobs, const char *const *ids, size_t n)
{
    int fds[SYNC_MOST] = {-1};
    size_t opened = 0;
    int error = 0;
    for (size_t i = 0; i < 2 * n && !error; i++) {
        const char *id = ids[i / 2];
        fds[opened] = i % 2 ? open_folder_of(blobs, id) : open_file_of(blobs, id);
        if (fds[opened] < 0)
            error = errno;
        else
            opened++;
    }
    if (!error)
        error = sync_together(fsync, fds, opened);
    for (size_t i = 0; i < n && !error; i++)
        blobs_set_durable(blobs, ids[i], fds[2 * i]);
    while (opened)
        close(fds[--opened]);
    errno = error;
    return !error;
}

/* Where rows count, files without one are removed by the sweep alone. */
static bool
evicts_later(const struct blobs *blobs)
{
    return blobs->limits.rows != NULL;
}

static bool
has_blobs(struct blobs *blobs)
{
    return blobs_used(blobs) > 0;
}

static bool
keep_incoming(struct library *library, struct incoming *incoming, struct api_problem *p)
{
    if (incoming->deferred)
        deferred_choose(library, incoming);
    return !store_is_shared(library->store) ||
           store_unmark_blobs(library->store, incoming->ids, incoming->n, p);
}

static bool
has_part(struct library *library, const char *id)
{
    return blob_exists(library->blobs, id);
}

static bool
is_shared(const struct library *library)
{
    return store_is_shared(library->store);
}

static bool
tidy(struct library *library, int64_t grace, struct api_problem *p)
{
    return library_remove_leftovers(library, grace, p) &&
           (!is_shared(library) || shared_folder_recount(library, grace, p));
}

static bool
sweep(struct library *library, int64_t grace, bool *ret_more, struct api_problem *p)
{
    *ret_more = false;
    return !is_shared(library) || shared_folder_sweep(library, grace, p);
}

const struct blob_store_ops blobs_in_folder = {
    .open_absent = open_absent,
    .is_kept = is_kept,
    .set_aside = set_aside,
    .report_damaged = report_damaged,
    .sync_replacement = sync_replacement,
    .sync = sync_blobs,
    .has_blobs = has_blobs,
    .find_leftovers = library_find_leftovers,
    .keep_incoming = keep_incoming,
    .has_part = has_part,
    .counts_rows = is_shared,
    .evicts_later = evicts_later,
    .tidy = tidy,
    .sweep = sweep,
};
