/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/tokens.h"
#include "store/inner.h"

bool
store_tokens_changes(struct store *store, int64_t *ret, struct api_problem *p)
{
    *ret = 0;
    lock_acquire(&store->lock);
    bool ok = ask(store, TOKEN_CHANGES, NULL, ret, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_tokens_list(struct store *store, bool (*fn)(void *arg, char *line), void *arg,
                  struct api_problem *p)
{
    bool ok = true;
    int rc = DB_ROW;
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[TOKEN_LIST];
    while (ok && (rc = step(stmt)) == DB_ROW) {
        char *line = column_text(stmt, 0, &ok);
        if (!line)
            ok = api_problem_no_memory(p);
        else if (!fn(arg, line))
            ok = api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                 "a row of the table tokens is no token");
        free(line);
    }
    ok = ok && (rc == DB_DONE || fail(store, p));
    done(stmt);
    lock_release(&store->lock);
    return ok;
}

/* Adds a token. The caller holds the lock. */
static bool
add(struct store *store, const struct store_token *token, bool *ret_new,
    struct api_problem *p)
{
    lock_assert_held(&store->lock);
    bind_all(&store->statements[TOKEN_ADD], 1, TEXT(token->name), TEXT(token->hash),
             TEXT(token->scopes), TEXT(token->tenant), TEXT(token->made),
             TEXT(token->limits));
    return change(store, TOKEN_ADD, ret_new, p);
}

bool
store_token_add(struct store *store, const struct store_token *token, bool *ret_new,
                struct api_problem *p)
{
    lock_acquire(&store->lock);
    bool ok = add(store, token, ret_new, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_tokens_import(struct store *store, const struct store_token *tokens, size_t n,
                    bool *ret_did, struct api_problem *p)
{
    bool is_new;
    *ret_did = false;
    lock_acquire(&store->lock);
    bool ok = run(store, BEGIN, p);
    if (ok) {
        ok = change(store, TOKENS_BEGIN, ret_did, p);
        for (size_t i = 0; ok && *ret_did && i < n; i++)
            ok = add(store, &tokens[i], &is_new, p);
        ok = finish(store, ok, p);
    }
    lock_release(&store->lock);
    return ok;
}

bool
store_token_limit(struct store *store, const char *name, const char *from,
                  const char *to, bool *ret_was, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_all(&store->statements[TOKEN_LIMIT], 1, TEXT(name), TEXT(to), TEXT(from));
    bool ok = change(store, TOKEN_LIMIT, ret_was, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_token_remove(struct store *store, const char *name, bool *ret_was,
                   struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_text(&store->statements[TOKEN_REMOVE], 1, name);
    bool ok = change(store, TOKEN_REMOVE, ret_was, p);
    lock_release(&store->lock);
    return ok;
}
