/* SPDX-License-Identifier: Apache-2.0 */
/* Access tokens as rows of a record that daemons share: every daemon sees a change. The
   functions are those of the file (tenants/tokens.h). */
#ifndef QDQD_TENANTS_TOKEN_ROWS_H
#define QDQD_TENANTS_TOKEN_ROWS_H

#include "tenants/tokens.h"

struct store;
struct transfer;

/* Opens the record that has the tokens; *ret is NULL where they are in a file: with SQLite,
   and where the setting auth.tokens names one. */
bool token_rows_open(const struct settings *settings, struct store **ret,
                     struct api_problem *p);
bool token_rows_read(struct store *store, struct token **ret, size_t *ret_n,
                     struct api_problem *p);
bool token_rows_add(struct store *store, struct token *token, char ret[TOKEN_SIZE],
                    struct api_problem *p);
bool token_rows_limit(struct store *store, const char *name,
                      const struct tenant_limits *limits, struct api_problem *p);
bool token_rows_remove(struct store *store, const char *name, struct api_problem *p);
/* Adds the tokens of a file, all or none, to a record that never had one, so that a daemon whose
   record moves is not open to everybody; not even where the file has no tokens any more. *ret_n
   is their number. */
bool token_rows_import(struct store *store, const char *path, size_t *ret_n,
                       struct api_problem *p);
/* The same as a part of a transfer of all records. IN_USE: the database had tokens before. */
bool token_rows_transfer(struct transfer *transfer, const char *path, size_t *ret_n,
                         struct api_problem *p);

#endif
