/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/hooked.h"
#include "store/inner.h"

static void
bind_hooked(struct store *store, enum statement s, const struct store_hooked *seen)
{
    bind_text(&store->statements[s], 1, seen->hook);
    bind_text(&store->statements[s], 2, seen->model);
    bind_text(&store->statements[s], 3, seen->version);
}

bool
store_hooked_add(struct store *store, const struct store_hooked *seen, const char *key,
                 char ret_key[HOOKED_KEY], bool *ret_done, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_hooked(store, HOOKED_ADD, seen);
    bind_text(&store->statements[HOOKED_ADD], 4, key);
    bool ok = run(store, HOOKED_ADD, p);
    if (ok) {
        struct stmt *stmt = &store->statements[HOOKED_GET];
        bind_hooked(store, HOOKED_GET, seen);
        ok = step(stmt) == DB_ROW || fail(store, p);
        if (ok) {
            column_chars(stmt, 0, ret_key, HOOKED_KEY);
            *ret_done = (int)column_int(stmt, 1);
        }
        done(stmt);
    }
    lock_release(&store->lock);
    return ok;
}

bool
store_hooked_done(struct store *store, const struct store_hooked *seen,
                  struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_hooked(store, HOOKED_DONE, seen);
    bool ok = run(store, HOOKED_DONE, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_hooked_first(struct store *store, const char *hook, const char *model,
                   int64_t *ret, struct api_problem *p)
{
    *ret = -1;
    lock_acquire(&store->lock);
    bind_text(&store->statements[HOOKED_FIRST], 1, hook);
    bind_text(&store->statements[HOOKED_FIRST], 2, model);
    bool ok = ask(store, HOOKED_FIRST, NULL, ret, p);
    lock_release(&store->lock);
    return ok;
}
