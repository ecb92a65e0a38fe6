/* SPDX-License-Identifier: Apache-2.0 */
/* Observations of earlier jobs: their blobs together with their rows. */
#include "config.h"
#include "base/clock.h"
#include "library/inner.h"

#include <string.h>
#include <unistd.h>

enum { MOST_OBSERVATIONS = 10000 }; /* limit of rows */

bool
library_observations_get(struct library *library, const char *key, struct spool *spool,
                         char ret_id[DIGEST_SIZE], struct api_problem *p)
{
    int fd = -1;
    bool any = false;
    char found[DIGEST_SIZE] = "";
    ret_id[0] = '\0';
    lock_acquire(&library->lock);
    bool ok =
        store_observations_use(library->store, key, clock_wall_ms(), ret_id, &any, p);
    if (ok && any)
        fd = blobs_open_file(library->blobs, ret_id);
    lock_release(&library->lock);
    /* A blob without a file may be in a bucket, which is asked without the lock. */
    ok = ok && (!any || ((fd >= 0 || blob_open(library->blobs, ret_id, &fd, p)) &&
                         spool_fill(spool, fd, found, p)));
    if (strcmp(ret_id, found) != 0)
        ret_id[0] = '\0';
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Removes the observations that were not used for longest. The caller holds the
   lock. */
static bool
trim(struct library *library, int64_t bytes, struct api_problem *p)
{
    lock_assert_held(&library->lock);
    char blob[DIGEST_SIZE];
    bool any = true, ok = true;
    while (ok && any) {
        ok = store_observations_evict(library->store, bytes, MOST_OBSERVATIONS, blob,
                                      &any, p);
        if (ok && any)
            library_discard(library, blob);
    }
    return ok;
}

bool
library_observations_keep(struct library *library, const struct store_observations *row,
                          struct spool **spool, int64_t bytes, struct api_problem *p)
{
    struct store_observations full = *row;
    char before[DIGEST_SIZE];
    bool had = false, stored = false;
    full.size = spool_size(*spool);
    memcpy(full.blob, spool_id(*spool), sizeof full.blob);
    struct incoming incoming = {.n = 1, .spools = &spool, .ids = &full.blob};
    if (!blobs_has_room(library->blobs, 0, p))
        return false;
    bool ok =
        library_publish(library, &incoming, p) &&
        store_observations_use(library->store, row->key, clock_wall_ms(), before, &had,
                               p) &&
        store_observations_put(library->store, &full, clock_wall_ms(), &stored, p);
    library_discard(library, full.blob);
    if (had)
        library_discard(library, before);
    ok = ok && trim(library, bytes, p);
    lock_release(&library->lock);
    return ok;
}

bool
library_observations_trim(struct library *library, int64_t bytes, struct api_problem *p)
{
    lock_acquire(&library->lock);
    bool ok = trim(library, bytes, p);
    lock_release(&library->lock);
    return ok;
}
