/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/unsynced.h"
#include "store/inner.h"

bool
store_unsynced_add(struct store *store, const struct store_text *text,
                   struct api_problem *p)
{
    bind_all(&store->statements[UNSYNCED_ADD], 1, TEXT(text->id), TEXT(text->text));
    return run(store, UNSYNCED_ADD, p);
}

bool
store_unsynced_newest(struct store *store, int64_t *ret, struct api_problem *p)
{
    *ret = 0;
    lock_acquire(&store->lock);
    bool ok = store_is_shared(store) || ask(store, UNSYNCED_NEWEST, NULL, ret, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_unsynced_next(struct store *store, int64_t *seq, char ret_id[DIGEST_SIZE],
                    char **ret_text, bool *ret_any, struct api_problem *p)
{
    bool whole = true;
    *ret_any = false;
    if (store_is_shared(store))
        return true;
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[UNSYNCED_NEXT];
    bind_int(stmt, 1, *seq);
    int rc = step(stmt);
    if (rc == DB_ROW) {
        *seq = column_int(stmt, 0);
        column_chars(stmt, 1, ret_id, DIGEST_SIZE);
        *ret_text = column_text(stmt, 2, &whole);
        *ret_any = *ret_text != NULL;
    }
    bool ok = rc == DB_ROW || rc == DB_DONE || fail(store, p);
    done(stmt);
    lock_release(&store->lock);
    return ok && (whole || api_problem_no_memory(p));
}

bool
store_unsynced_drop(struct store *store, int64_t upto, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_int(&store->statements[UNSYNCED_DROP], 1, upto);
    bool ok = run(store, UNSYNCED_DROP, p);
    lock_release(&store->lock);
    return ok;
}
