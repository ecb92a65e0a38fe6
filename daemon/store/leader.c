/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/leader.h"
#include "store/inner.h"
#include "api/grow.h"

bool
store_lead(struct store *store, const char *node, struct api_problem *p)
{
    int64_t fence = 0;
    if (!store_is_shared(store))
        return true;
    lock_acquire(&store->lock);
    bind_all(&store->statements[LEAD], 1, TEXT(node), INT(store->lease_ms));
    bool ok = ask(store, LEAD, NULL, &fence, p);
    if (ok)
        store->led = fence;
    lock_release(&store->lock);
    return ok;
}

bool
store_lead_end(struct store *store, struct api_problem *p)
{
    bool ok = true;
    lock_acquire(&store->lock);
    if (store->led) {
        bind_int(&store->statements[LEAD_END], 1, store->led);
        ok = run(store, LEAD_END, p);
    }
    store->led = 0;
    lock_release(&store->lock);
    return ok;
}

bool
store_leads(struct store *store)
{
    lock_acquire(&store->lock);
    bool leads = store->led || !store_is_shared(store);
    lock_release(&store->lock);
    return leads;
}

bool
store_check_leads(struct store *store, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    bool any = false;
    bind_int(&store->statements[LEAD_LOCK], 1, store->led);
    return ask(store, LEAD_LOCK, &any, NULL, p) &&
           (any || api_problem_set(p, API_CANCELLED, QDQ_AT_NOTHING, NULL,
                                   "another daemon leads"));
}

bool
store_fold_counts(struct store *store, struct api_problem *p)
{
    bool ok = true;
    lock_acquire(&store->lock);
    if (store_is_shared(store))
        ok = run(store, RECORD_FOLD, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_still_leads(struct store *store, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bool ok = store_check_leads(store, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_each_tenant(struct store *store, void (*fn)(void *arg, const char *name),
                  void *arg, struct api_problem *p)
{
    char **names = NULL;
    size_t n = 0;
    int rc = DB_ROW;
    bool ok = true;
    if (!store_is_shared(store))
        return true;
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[TENANT_LIST];
    while (ok && (rc = step(stmt)) == DB_ROW) {
        char **grown = api_grow(names, n, 1, sizeof *names);
        if (grown)
            names = grown;
        ok = grown && (names[n] = column_text(stmt, 0, &ok));
        n += ok;
    }
    ok = ok ? rc == DB_DONE || fail(store, p) : api_problem_no_memory(p);
    done(stmt);
    lock_release(&store->lock);
    for (size_t i = 0; i < n; i++) {
        if (ok)
            fn(arg, names[i]);
        free(names[i]);
    }
    free(names);
    return ok;
}
