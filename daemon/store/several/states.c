/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of a job with their states, locked for a transaction that ends several of them. */
#include "config.h"
#include "store/inner.h"
#include "api/grow.h"

bool
store_lock_targets(struct store *store, const char *job, struct store_targets *ret,
                   struct api_problem *p)
{
    struct stmt *stmt = &store->statements[TARGETS_LOCK];
    bool ok = true;
    int rc = DB_ROW;
    *ret = (struct store_targets){.n = 0};
    bind_text(stmt, 1, job);
    while (ok && (rc = step(stmt)) == DB_ROW) {
        struct store_target_state *grown =
            api_grow(ret->items, ret->n, 1, sizeof *ret->items);
        ok = grown || api_problem_no_memory(p);
        if (!ok)
            break;
        ret->items = grown;
        column_chars(stmt, 0, grown[ret->n].id, JOB_ID_SIZE);
        grown[ret->n++].state = api_job_state_parse(borrow_text(stmt, 1));
    }
    ok = ok && (rc == DB_DONE || fail(store, p));
    done(stmt);
    if (!ok) {
        free(ret->items);
        *ret = (struct store_targets){.n = 0};
    }
    return ok;
}
