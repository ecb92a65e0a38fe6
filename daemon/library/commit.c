/* SPDX-License-Identifier: Apache-2.0 */
/* Finished spools become blobs. */
#include "config.h"
#include "base/sync.h"
#include "library/inner.h"

#include <errno.h>
#include <unistd.h>

/* blobs that are synced at once, each with its folder */
enum { SYNC_BLOBS = SYNC_MOST / 2 };

/* Makes the blobs of the spools durable, except those that are so already. */
static bool
sync_committed(struct spool **const *spools, size_t n)
{
    struct blobs *blobs = (*spools[0])->blobs;
    const char *ids[SYNC_BLOBS];
    for (size_t at = 0; at < n;) {
        size_t some = 0;
        for (; at < n && some < SYNC_BLOBS; at++)
            if (!(*spools[at])->stored && !(*spools[at])->is_deferred)
                ids[some++] = (*spools[at])->id;
        if (some && !blobs->ops->sync(blobs, ids, some))
            return false;
    }
    return true;
}

/* Returns whether the blob's name is for this spool: no file has it, or a damaged one, or
   one that was not verified. *ret_before is the size of the file that has it. */
static bool
takes_name(const struct spool *s, uint64_t *ret_before)
{
    lock_assert_held(&s->blobs->naming);
    bool is_verified = blobs_is_verified(s->blobs, s->id, ret_before);
    return !is_verified || *ret_before != s->size || s->replaces;
}

/*
 * Makes a spool ready to get its blob's name, if it will get it. One that replaces a file is
 * synced: a row may name that file, and after a loss of power its name must not stand for
 * fewer bytes.
 */
static bool
prepare_naming(struct spool *s, struct api_problem *p)
{
    struct blobs *blobs = s->blobs;
    uint64_t before;
    lock_acquire(&blobs->naming);
    bool takes = takes_name(s, &before);
    lock_release(&blobs->naming);
    if (takes && s->is_lent && !spool_copy_lent(s, p))
        return false;
    return !takes || !before || !blobs->ops->sync_replacement ||
           blobs->ops->sync_replacement(s->fd) || blobs_fail(p, "storing a file");
}

/* Renames a finished spool to its blob's name, unless the blob exists and was verified.
   A damaged file of that name is forgotten. */
static bool
name_blob(struct spool *s)
{
    struct blobs *blobs = s->blobs;
    char name[NAME_SIZE];
    uint64_t before;
    bool ok = true;
    blob_name(s->id, name);
    lock_acquire(&blobs->naming);
    bool takes = takes_name(s, &before);
    if (takes && s->is_lent) {
        errno = EAGAIN; /* its blob was set aside a moment ago */
        ok = false;
    } else if (takes) {
        s->stored = false;
        ok = renameat(blobs->tmp, s->name, blobs->dir, name) == 0;
        if (ok) {
            s->name[0] = '\0';
            blobs->used += s->size - before;
            blobs_set_verified(blobs, s->id, s->fd);
            (void)unlinkat(blobs->damaged, blob_hex(s->id), 0);
        }
    }
    lock_release(&blobs->naming);
    return ok;
}

bool
spools_commit(struct spool **const *spools, size_t n, struct api_problem *p)
{
    for (size_t i = 0; i < n; i++) {
        if (!prepare_naming(*spools[i], p))
            return false;
        if (!name_blob(*spools[i]))
            return blobs_fail(p, "storing a file");
    }
    if (n && (*spools[0])->blobs->ops->sync && !sync_committed(spools, n))
        return blobs_fail(p, "storing a file");
    for (size_t i = 0; i < n; i++)
        spool_discard(spools[i]);
    return true;
}

bool
spool_commit(struct spool **spool, struct api_problem *p)
{
    return spools_commit(&spool, 1, p);
}
