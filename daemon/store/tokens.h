/* SPDX-License-Identifier: Apache-2.0 */
/* Access tokens as rows, where daemons share a record: those of all tenants are in the record
   of the tenant without a name. Their meaning is defined by tenants/tokens.h. */
#ifndef QDQD_STORE_TOKENS_H
#define QDQD_STORE_TOKENS_H

#include "store/store.h"

/* Texts are borrowed; NULL: the token has none. */
struct store_token {
    const char *name, *hash, *scopes, *tenant, *made, *limits;
};

/* Counts the changes of tokens since the record was made; 0: there was no token yet. */
bool store_tokens_changes(struct store *store, int64_t *ret, struct api_problem *p);
/* Calls `fn` with each token, in the form of a line of the file, which it may change. */
bool store_tokens_list(struct store *store, bool (*fn)(void *arg, char *line),
                       void *arg, struct api_problem *p);
/* Adds a token. *ret_new is false when there is one of this name. */
bool store_token_add(struct store *store, const struct store_token *token,
                     bool *ret_new, struct api_problem *p);
/* Changes a token's limits. *ret_was is false when there is none with the limits `from`. */
bool store_token_limit(struct store *store, const char *name, const char *from,
                       const char *to, bool *ret_was, struct api_problem *p);
/* Adds tokens, all or none, to a record that never had one. From then on it had one, also where
   n is 0. *ret_did is false where it had one before; then nothing is added. */
bool store_tokens_import(struct store *store, const struct store_token *tokens,
                         size_t n, bool *ret_did, struct api_problem *p);
bool store_token_remove(struct store *store, const char *name, bool *ret_was,
                        struct api_problem *p);

#endif
