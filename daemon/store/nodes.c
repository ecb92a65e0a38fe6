/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/nodes.h"
#include "store/derive.h"
#include "store/inner.h"
#include "api/grow.h"

bool
store_node_seen(struct store *store, const struct api_node *node, int64_t age_ms,
                int64_t keep_ms, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_all(&store->statements[NODE_SEEN], 1, TEXT(node->id), TEXT(node->version),
             INT(age_ms), INT(node->running), INT(node->lanes),
             TEXT(store_own_processor()));
    bool ok = run(store, NODE_SEEN, p);
    if (ok) {
        bind_int(&store->statements[NODE_EXPIRE], 1, keep_ms);
        ok = run(store, NODE_EXPIRE, p);
    }
    lock_release(&store->lock);
    return ok;
}

bool
store_node_gone(struct store *store, const char *id, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_text(&store->statements[NODE_REMOVE], 1, id);
    bool ok = run(store, NODE_REMOVE, p);
    lock_release(&store->lock);
    return ok;
}

static bool
add_node(struct stmt *stmt, struct api_node **list, size_t *n, struct api_problem *p)
{
    struct api_node *grown = api_grow(*list, *n, 1, sizeof *grown);
    if (!grown)
        return api_problem_no_memory(p);
    *list = grown;
    struct api_node *node = &grown[(*n)++];
    column_chars(stmt, 0, node->id, sizeof node->id);
    column_chars(stmt, 1, node->version, sizeof node->version);
    node->started_at = column_int(stmt, 2);
    node->seen_at = column_int(stmt, 3);
    node->running = column_int(stmt, 4);
    node->lanes = column_int(stmt, 5);
    return true;
}

bool
store_nodes(struct store *store, struct api_node **ret, size_t *ret_n,
            struct api_problem *p)
{
    bool ok = true;
    int rc = DB_ROW;
    *ret = NULL;
    *ret_n = 0;
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[NODE_LIST];
    while (ok && (rc = step(stmt)) == DB_ROW)
        ok = add_node(stmt, ret, ret_n, p);
    ok = ok && (rc == DB_DONE || fail(store, p));
    done(stmt);
    lock_release(&store->lock);
    if (ok)
        return true;
    free(*ret);
    *ret = NULL;
    return false;
}

bool
store_place_keep(struct store *store, const char *mark, const char *earlier,
                 char ret[STORE_PLACE], struct api_problem *p)
{
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[PLACE_KEEP];
    bind_all(stmt, 1, TEXT(mark), TEXT(earlier));
    bool ok = step(stmt) == DB_ROW || fail(store, p);
    if (ok)
        column_chars(stmt, 0, ret, STORE_PLACE);
    done(stmt);
    lock_release(&store->lock);
    return ok;
}
