/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs that get rows, or lose them. */
#include "config.h"
#include "base/check.h"
#include "library/inner.h"

bool
library_is_incoming(const struct library *library, const char *id)
{
    lock_assert_held(&library->lock);
    for (const struct incoming *one = library->incoming; one; one = one->next)
        for (size_t i = 0; i < one->n; i++)
            if (strcmp(one->ids[i], id) == 0)
                return true;
    return false;
}

bool
library_needs_blob(struct library *library, const char *id)
{
    return library_is_incoming(library, id) || store_needs_blob(library->store, id);
}

bool
library_is_needed(struct library *library, const char *id)
{
    lock_acquire(&library->lock);
    bool needed = library_needs_blob(library, id);
    lock_release(&library->lock);
    return needed;
}

void
library_discard(struct library *library, const char *id)
{
    if (!store_is_shared(library->store) && !library_needs_blob(library, id))
        blob_remove(library->blobs, id);
}

void
library_discard_files(struct library *library, const struct store_model_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        library_discard(library, files->items[i].digest);
}

void
library_discard_incoming(struct library *library, const struct incoming *incoming)
{
    for (size_t i = 0; i < incoming->n; i++)
        library_discard(library, incoming->ids[i]);
}

/*
 * Finds the spools whose blob is known to be durable: this daemon has synced it, or a row names
 * it, which was added after that. Where daemons share the record, asking takes longer than
 * syncing a file that has not changed. The blob stays as long as it is incoming.
 */
static bool
find_stored(struct library *library, const struct incoming *incoming,
            struct api_problem *p)
{
    lock_assert_held(&library->lock);
    for (size_t i = 0; i < incoming->n; i++) {
        const char *id = incoming->ids[i];
        bool stored = blob_is_durable(library->blobs, id);
        if (!stored && !store_is_shared(library->store) &&
            blob_exists(library->blobs, id) &&
            !store_has_blob(library->store, id, &stored, p))
            return false;
        if (stored)
            spool_set_stored(*incoming->spools[i]);
    }
    return true;
}

bool
library_publish(struct library *library, struct incoming *incoming,
                struct api_problem *p)
{
    lock_acquire(&library->lock);
    incoming->next = library->incoming;
    library->incoming = incoming;
    bool ok = find_stored(library, incoming, p);
    lock_release(&library->lock);
    ok = ok && library->blobs->ops->keep_incoming(library, incoming, p) &&
         spools_commit(incoming->spools, incoming->n, p);
    lock_acquire(&library->lock);
    struct incoming **at = &library->incoming;
    while (*at != incoming) {
        QDQD_CHECK(*at);
        at = &(*at)->next;
    }
    *at = incoming->next;
    library->stored_at = 0; /* the rows that follow have to be counted */
    return ok;
}
