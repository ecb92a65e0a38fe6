/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that a daemon knows, and who a request is from. */
#include "config.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "settings/settings.h"
#include "store/tokens.h"
#include "tenants/token_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#define SETTLED_MS 100 /* age from which any change of the file changes its timestamp */
#define FRESH_MS 250   /* for which what the rows said holds */

struct tokens {
    char path[TOKEN_PATH];
    struct store *store; /* the tokens are rows there; NULL: in the file */
    struct lock lock;
    /* guarded by lock: */
    struct stat seen; /* status of the file when it was read */
    bool settled;     /* a later change of the file shows in `seen` */
    int64_t asked_at; /* steady clock of the last look at the rows; 0: there was none */
    int64_t changes;  /* the rows' number of changes when they were read */
    bool needed, broken;
    struct token *list;
    size_t n;
    struct tenants *tenants; /* the tenants that get the limits; NULL: not bound yet */
};

/* Passes the limits of the tokens to the tenants. The caller holds the lock. */
static bool
pass_limits(struct tokens *tokens, struct api_problem *p)
{
    lock_assert_held(&tokens->lock);
    struct tenant_own *own =
        tokens->tenants ? calloc(tokens->n + 1, sizeof *own) : NULL;
    size_t n = 0;
    if (!own)
        return !tokens->tenants || api_problem_no_memory(p);
    for (size_t i = 0; i < tokens->n; i++) {
        const struct token *token = &tokens->list[i];
        size_t at = 0;
        if (!token_has_limits(&token->limits))
            continue;
        while (at < n && strcmp(own[at].name, token->tenant) != 0)
            at++;
        if (at == n)
            snprintf(own[n++].name, TENANT_SIZE, "%s", token->tenant);
        token_limits_tighten(&own[at].limits, &token->limits);
    }
    tenants_limit(tokens->tenants, own, n);
    return true;
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/*
 * Returns whether any later change would change the file's timestamp. Timestamps
 * advance in ticks, so a file that was changed just now may change again with the same
 * timestamp.
 */
static bool
is_settled(const struct stat *st)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = ((int64_t)now.tv_sec - st->st_ctim.tv_sec) * 1000 +
                  (now.tv_nsec - st->st_ctim.tv_nsec) / 1000000;
    return age > SETTLED_MS;
}

/* Replaces the tokens by those that were read. The caller holds the lock. */
static bool
take(struct tokens *tokens, bool ok, struct token *list, size_t n,
     struct api_problem *p)
{
    lock_assert_held(&tokens->lock);
    free(tokens->list);
    tokens->list = ok ? list : NULL;
    tokens->n = ok ? n : 0;
    /* the old limits stay while the tokens cannot be read */
    return ok && pass_limits(tokens, p);
}

/* Reads the rows if they have changed since they were read; asks that now and then. The
   caller holds the lock. */
static bool
refresh_rows(struct tokens *tokens, bool now, struct api_problem *p)
{
    lock_assert_held(&tokens->lock);
    struct token *list = NULL;
    size_t n = 0;
    int64_t changes, asked_at = clock_steady_ms();
    bool known = tokens->asked_at && !tokens->broken;
    if (known && !now && asked_at - tokens->asked_at < FRESH_MS)
        return true;
    bool ok = store_tokens_changes(tokens->store, &changes, p);
    if (!ok || !known || changes != tokens->changes) {
        ok = ok && token_rows_read(tokens->store, &list, &n, p);
        ok = take(tokens, ok, list, n, p);
    }
    if (ok) {
        tokens->asked_at = asked_at;
        tokens->changes = changes;
        tokens->needed = tokens->needed || changes > 0;
    }
    tokens->broken = !ok;
    return ok;
}

/* Reads the file if it has changed since it was read. The caller holds the lock. */
static bool
refresh_file(struct tokens *tokens, struct api_problem *p)
{
    lock_assert_held(&tokens->lock);
    struct stat st = {0};
    struct token *list;
    size_t n;
    bool there;
    if (stat(tokens->path, &st) && errno != ENOENT)
        memset(&st, 0, sizeof st);
    if (tokens->settled && !tokens->broken && same_file(&st, &tokens->seen))
        return true;
    bool ok = token_file_read(tokens->path, &list, &n, &there, p);
    ok = take(tokens, ok, list, n, p);
    tokens->needed = tokens->needed || there;
    tokens->broken = !ok;
    tokens->seen = st;
    tokens->settled = is_settled(&st);
    return ok;
}

/* Reads the tokens if they have changed; rows are looked at `now`, or now and then. */
static bool
refresh(struct tokens *tokens, bool now, struct api_problem *p)
{
    return tokens->store ? refresh_rows(tokens, now, p) : refresh_file(tokens, p);
}

/* Opens the tokens of a file or of a record, which it takes ownership of. */
static bool
open_either(const char *path, struct store *store, struct tokens **ret,
            struct api_problem *p)
{
    struct tokens *tokens = calloc(1, sizeof *tokens);
    if (!tokens) {
        store_close(&store);
        return api_problem_no_memory(p);
    }
    snprintf(tokens->path, sizeof tokens->path, "%s", path);
    tokens->store = store;
    lock_init(&tokens->lock, LOCK_TOKENS);
    if (!tokens_reload(tokens, p)) {
        tokens_close(&tokens);
        return false;
    }
    *ret = tokens;
    return true;
}

bool
tokens_open(const char *path, struct tokens **ret, struct api_problem *p)
{
    return open_either(path, NULL, ret, p);
}

bool
tokens_open_set(const struct settings *settings, struct tokens **ret,
                struct api_problem *p)
{
    char path[TOKEN_PATH];
    struct store *store;
    size_t n = 0;
    if (!tokens_path(settings, path, p) || !token_rows_open(settings, &store, p))
        return false;
    if (store && !token_rows_import(store, path, &n, p)) {
        store_close(&store);
        return false;
    }
    if (n)
        log_info("tokens_taken_over", "n=%zu", n);
    return open_either(path, store, ret, p);
}

bool
tokens_bind(struct tokens *tokens, struct tenants *tenants, struct api_problem *p)
{
    lock_acquire(&tokens->lock);
    tokens->tenants = tenants;
    bool ok = pass_limits(tokens, p);
    lock_release(&tokens->lock);
    return ok;
}

bool
tokens_reload(struct tokens *tokens, struct api_problem *p)
{
    lock_acquire(&tokens->lock);
    bool ok = refresh(tokens, true, p);
    lock_release(&tokens->lock);
    return ok;
}

void
tokens_close(struct tokens **tokens)
{
    if (!*tokens)
        return;
    store_close(&(*tokens)->store);
    lock_fini(&(*tokens)->lock);
    free((*tokens)->list);
    free(*tokens);
    *tokens = NULL;
}

size_t
tokens_count(struct tokens *tokens)
{
    lock_acquire(&tokens->lock);
    size_t n = tokens->n;
    lock_release(&tokens->lock);
    return n;
}

/* Returns the token of "Bearer TOKEN", or NULL where there is none. */
static const char *
bearer(const char *authorization)
{
    static const char word[] = "Bearer";
    size_t len = sizeof word - 1;
    if (!authorization || strncasecmp(authorization, word, len) != 0 ||
        authorization[len] != ' ')
        return NULL;
    authorization += len;
    return authorization + strspn(authorization, " ");
}

/* Compares with every token, so that the time does not reveal which one matched. */
static const struct token *
match(const struct tokens *tokens, const char *hash)
{
    const struct token *found = NULL;
    for (size_t i = 0; i < tokens->n; i++)
        if (digest_is_same(tokens->list[i].hash, hash))
            found = &tokens->list[i];
    return found;
}

/* Refuses a request while the tokens cannot be read; the log says so at the first one. */
static bool
refuse_unreadable(const struct api_problem *problem, bool was_broken,
                  struct api_problem *p)
{
    char quoted[LOG_QUOTED];
    if (!was_broken)
        log_error("tokens_unreadable", "detail=%s", log_quote(quoted, problem->detail));
    return api_problem_set(p,
                           problem->code == API_UNAVAILABLE ? API_UNAVAILABLE : API_IO,
                           QDQ_AT_NOTHING, NULL, "the access tokens cannot be read");
}

bool
tokens_check_rows(struct tokens *tokens, struct api_problem *p)
{
    struct api_problem problem = {0};
    lock_acquire(&tokens->lock);
    bool was_broken = tokens->broken;
    bool readable = !tokens->store || refresh(tokens, false, &problem);
    lock_release(&tokens->lock);
    return readable || refuse_unreadable(&problem, was_broken, p);
}

bool
tokens_check(struct tokens *tokens, const char *authorization, struct token *ret,
             struct api_problem *p)
{
    char hash[DIGEST_SIZE];
    struct api_problem problem = {0};
    const char *text = bearer(authorization);
    if (text && !digest_of(text, strlen(text), hash))
        return api_problem_no_memory(p);
    lock_acquire(&tokens->lock);
    bool was_broken = tokens->broken;
    bool readable = refresh(tokens, false, &problem);
    const struct token *found = text && readable ? match(tokens, hash) : NULL;
    /* A token that is not known may have been added a moment ago. */
    if (text && readable && !found && tokens->store) {
        readable = refresh(tokens, true, &problem);
        found = readable ? match(tokens, hash) : NULL;
    }
    bool needed = tokens->needed;
    *ret = found ? *found : (struct token){.scopes = TOKEN_ADMIN};
    lock_release(&tokens->lock);
    if (!readable)
        return refuse_unreadable(&problem, was_broken, p);
    return !needed || found ||
           api_problem_set(p, API_UNAUTHORIZED, QDQ_AT_NOTHING, NULL,
                           text ? "the access token is not known"
                                : "this needs an access token: Authorization: Bearer");
}

bool
tokens_hold(struct tokens *tokens, const struct token *who)
{
    struct api_problem problem = {0};
    lock_acquire(&tokens->lock);
    bool holds = !refresh(tokens, false, &problem);
    const struct token *found = holds ? NULL : match(tokens, who->hash);
    if (!*who->hash)
        holds = holds || !tokens->needed;
    else if (found)
        holds = found->scopes == who->scopes && !strcmp(found->tenant, who->tenant);
    lock_release(&tokens->lock);
    return holds;
}
