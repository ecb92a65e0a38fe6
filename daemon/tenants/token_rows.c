/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/token_rows.h"
#include "settings/settings.h"
#include "store/postgres/offline.h"
#include "store/tokens.h"
#include "api/grow.h"

#include <stdlib.h>
#include <string.h>

bool
token_rows_open(const struct settings *settings, struct store **ret,
                struct api_problem *p)
{
    const struct store_place place = {
        .url = settings->store_url,
        .direct_url = *settings->store_direct_url ? settings->store_direct_url : NULL,
        .lease_ms = settings->cluster_lease * 1000,
    };
    *ret = NULL;
    return !*settings->store_url || *settings->auth_tokens ||
           store_open_at(&place, ret, p);
}

struct list {
    struct token *items;
    size_t n;
};

static bool
add_line(void *arg, char *line)
{
    struct list *list = arg;
    struct token *grown = api_grow(list->items, list->n, 1, sizeof *grown);
    if (!grown)
        return false;
    list->items = grown;
    if (!token_parse(line, &grown[list->n]))
        return false;
    list->n++;
    return true;
}

bool
token_rows_read(struct store *store, struct token **ret, size_t *ret_n,
                struct api_problem *p)
{
    struct list list = {NULL, 0};
    *ret = NULL;
    *ret_n = 0;
    if (!store_tokens_list(store, add_line, &list, p)) {
        free(list.items);
        return false;
    }
    *ret = list.items;
    *ret_n = list.n;
    return true;
}

/* The texts that a row has in the place of a token's numbers. */
struct texts {
    char scopes[TOKEN_SCOPES], limits[TOKEN_LIMITS];
};

/* Returns the row of a token, which borrows from the token and from `texts`. */
static struct store_token
row_of(const struct token *token, struct texts *texts)
{
    token_scopes_print(token->scopes, texts->scopes);
    token_limits_print(&token->limits, texts->limits);
    return (struct store_token){.name = token->name,
                                .hash = token->hash,
                                .scopes = texts->scopes,
                                .tenant = *token->tenant ? token->tenant : NULL,
                                .made = token->made,
                                .limits = *texts->limits ? texts->limits : NULL};
}

static bool
add_row(struct store *store, const struct token *token, bool *ret_new,
        struct api_problem *p)
{
    struct texts texts;
    const struct store_token row = row_of(token, &texts);
    return store_token_add(store, &row, ret_new, p);
}

bool
token_rows_add(struct store *store, struct token *token, char ret[TOKEN_SIZE],
               struct api_problem *p)
{
    bool is_new;
    return token_check_limited(token, p) && token_make_secret(token, ret, p) &&
           add_row(store, token, &is_new, p) &&
           (is_new ||
            api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                            "%s: there is a token of this name", token->name));
}

static bool
fail_unknown(const char *name, struct api_problem *p)
{
    return api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                           "%s: there is no token of this name", name);
}

bool
token_rows_limit(struct store *store, const char *name,
                 const struct tenant_limits *limits, struct api_problem *p)
{
    struct token *list;
    size_t n, i = 0;
    char from[TOKEN_LIMITS], to[TOKEN_LIMITS];
    bool was = false;
    if (!token_rows_read(store, &list, &n, p))
        return false;
    while (i < n && strcmp(list[i].name, name) != 0)
        i++;
    bool ok = i < n || fail_unknown(name, p);
    if (ok) {
        token_limits_print(&list[i].limits, from);
        token_limits_set(&list[i].limits, limits);
        token_limits_print(&list[i].limits, to);
        ok = token_check_limited(&list[i], p) &&
             store_token_limit(store, name, *from ? from : NULL, *to ? to : NULL, &was,
                               p) &&
             (was || api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                                     "%s: its limits were changed meanwhile", name));
    }
    free(list);
    return ok;
}

bool
token_rows_remove(struct store *store, const char *name, struct api_problem *p)
{
    bool was;
    return store_token_remove(store, name, &was, p) && (was || fail_unknown(name, p));
}

/* --- the tokens of a file --------------------------------------------------- */

/* The tokens of a file and their rows. */
struct file_rows {
    struct token *tokens;
    struct texts *texts;
    struct store_token *rows;
    size_t n;
    bool there; /* the file exists */
};

static void
file_rows_fini(struct file_rows *rows)
{
    free(rows->tokens);
    free(rows->texts);
    free(rows->rows);
}

/* Must be followed by file_rows_fini(), also after an error. */
static bool
file_rows_read(struct file_rows *ret, const char *path, struct api_problem *p)
{
    *ret = (struct file_rows){0};
    if (!token_file_read(path, &ret->tokens, &ret->n, &ret->there, p))
        return false;
    ret->texts = calloc(ret->n + 1, sizeof *ret->texts);
    ret->rows = calloc(ret->n + 1, sizeof *ret->rows);
    if (!ret->texts || !ret->rows)
        return api_problem_no_memory(p);
    for (size_t i = 0; i < ret->n; i++)
        ret->rows[i] = row_of(&ret->tokens[i], &ret->texts[i]);
    return true;
}

bool
token_rows_import(struct store *store, const char *path, size_t *ret_n,
                  struct api_problem *p)
{
    struct file_rows file;
    int64_t changes;
    bool did = false;
    *ret_n = 0;
    if (!store_tokens_changes(store, &changes, p))
        return false;
    if (changes)
        return true;
    bool ok = file_rows_read(&file, path, p) &&
              (!file.there || store_tokens_import(store, file.rows, file.n, &did, p));
    *ret_n = ok && did ? file.n : 0;
    file_rows_fini(&file);
    return ok;
}

bool
token_rows_transfer(struct transfer *transfer, const char *path, size_t *ret_n,
                    struct api_problem *p)
{
    struct file_rows file;
    bool ok = file_rows_read(&file, path, p) &&
              (!file.there || transfer_tokens(transfer, file.rows, file.n, p));
    *ret_n = ok ? file.n : 0;
    file_rows_fini(&file);
    return ok;
}
