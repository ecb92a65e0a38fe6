/* SPDX-License-Identifier: Apache-2.0 */
/* How a record is opened and closed, and what holds for all of it. */
#include "config.h"
#include "store/inner.h"

bool
store_open_at(const struct store_place *place, struct store **ret,
              struct api_problem *p)
{
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return api_problem_no_memory(p);
    lock_init(&store->lock, LOCK_STORE);
    if (!(place->url ? db_open_postgres(place, &store->db, p)
                     : db_open_sqlite(place->path, &store->lock, &store->db, p))) {
        store_close(&store);
        return false;
    }
    store->lease_ms = place->lease_ms;
    store->hints = place->url && place->direct_url;
    for (int i = 0; i < N_STATEMENTS; i++)
        store->statements[i] = (struct stmt){.db = store->db,
                                             .name = (enum statement)i,
                                             .lock = &store->lock,
                                             .lacks_memory = &store->lacks_memory};
    *ret = store;
    return true;
}

bool
store_open(const char *path, struct store **ret, struct api_problem *p)
{
    return store_open_at(&(struct store_place){.path = path}, ret, p);
}

void
store_close(struct store **store)
{
    if (!*store)
        return;
    if ((*store)->db)
        (*store)->db->class->close(&(*store)->db);
    lock_fini(&(*store)->lock);
    free(*store);
    *store = NULL;
}

bool
store_is_shared(const struct store *store)
{
    return store->db->class->is_shared;
}

bool
store_sync(struct store *store, struct api_problem *p)
{
    return store->db->class->sync(store->db, p);
}

void
store_set_retention(struct store *store, const struct store_retention *retention)
{
    store->retention.jobs = retention->jobs;
    store->retention.files = retention->files;
}
