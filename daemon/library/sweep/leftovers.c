/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs that no row names, which a crash or an older database leaves: they are said at
   the start, and removed later. */
#include "config.h"
#include "base/clock.h"
#include "base/log.h"
#include "library/inner.h"

#define MOST_NAMED 20 /* leftovers that have a line of their own in the log */

/* A walk over the leftovers. */
struct walk {
    struct library *library;
    uint64_t n;
};

static void
name_leftover(void *arg, const char *id)
{
    struct walk *walk = arg;
    if (!library_is_needed(walk->library, id) && walk->n++ < MOST_NAMED)
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
    bool leftover = !library_needs_blob(library, id);
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
