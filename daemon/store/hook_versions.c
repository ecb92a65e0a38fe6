/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/hook_versions.h"
#include "store/inner.h"

static void
bind_version(struct store *store, enum statement s,
             const struct store_hook_version *seen)
{
    bind_all(&store->statements[s], 1, TEXT(seen->hook), TEXT(seen->model),
             TEXT(seen->version));
}

bool
store_hook_version_add(struct store *store, const struct store_hook_version *seen,
                       const char *key, char ret_key[HOOK_VERSION_KEY], bool *ret_done,
                       struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_version(store, HOOK_VERSION_ADD, seen);
    bind_text(&store->statements[HOOK_VERSION_ADD], 4, key);
    bool ok = run(store, HOOK_VERSION_ADD, p);
    if (ok) {
        struct stmt *stmt = &store->statements[HOOK_VERSION_GET];
        bind_version(store, HOOK_VERSION_GET, seen);
        ok = step(stmt) == DB_ROW || fail(store, p);
        if (ok) {
            column_chars(stmt, 0, ret_key, HOOK_VERSION_KEY);
            *ret_done = (int)column_int(stmt, 1);
        }
        done(stmt);
    }
    lock_release(&store->lock);
    return ok;
}

bool
store_hook_version_done(struct store *store, const struct store_hook_version *seen,
                        struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_version(store, HOOK_VERSION_DONE, seen);
    bool ok = run(store, HOOK_VERSION_DONE, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_hook_version_first(struct store *store, const char *hook, const char *model,
                         int64_t *ret, struct api_problem *p)
{
    *ret = -1;
    lock_acquire(&store->lock);
    bind_all(&store->statements[HOOK_VERSION_FIRST], 1, TEXT(hook), TEXT(model));
    bool ok = ask(store, HOOK_VERSION_FIRST, NULL, ret, p);
    lock_release(&store->lock);
    return ok;
}
