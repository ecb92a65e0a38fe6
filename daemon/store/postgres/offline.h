/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for commands that use a record in PostgreSQL without opening it as a store. The
   URLs are those without a pooler. Not thread-safe. */
#ifndef QDQD_STORE_POSTGRES_OFFLINE_H
#define QDQD_STORE_POSTGRES_OFFLINE_H

#include "store/tokens.h"

/*
 * Records of SQLite go to PostgreSQL, all of them in one transaction: a transfer that is
 * interrupted has changed nothing. Each record keeps its number, by which a bucket knows whose
 * objects it has.
 */
struct transfer;

/* Connects to the database `url` and begins. *ret must be closed,
   also after an error. */
bool transfer_open(const char *url, struct transfer **ret, struct api_problem *p);
/*
 * Copies the rows of the database file at `path` into the schema of a tenant ("": the one
 * without a name), which is made when it is absent and has no rows. The file is brought to
 * this version's schema before; no daemon uses it. *ret_rows grows by the number of rows.
 */
bool transfer_record(struct transfer *transfer, const char *path, const char *tenant,
                     uint64_t *ret_rows, struct api_problem *p);
/*
 * Adds access tokens to the schema of the tenant without a name, whose record was transferred
 * before. From then on requests need a token, also where n is 0. IN_USE: it had some before.
 */
bool transfer_tokens(struct transfer *transfer, const struct store_token *tokens,
                     size_t n, struct api_problem *p);
/* Makes it all durable. */
bool transfer_commit(struct transfer *transfer, struct api_problem *p);
/* Ends the connection; what was not committed is not there. */
void transfer_close(struct transfer **transfer);

/* Calls `fn` with the name of each tenant that has a schema ("": the one without a name), until
   `fn` returns false. Then this returns false too, with the problem that `fn` has set. */
bool survey_tenants(const char *url,
                    bool (*fn)(void *arg, const char *tenant, struct api_problem *p),
                    void *arg, struct api_problem *p);
/* The same with the id of every blob that the tenant's rows name at one moment; their schema is
   this version's. */
bool survey_blobs(const char *url, const char *tenant,
                  bool (*fn)(void *arg, const char *id, struct api_problem *p),
                  void *arg, struct api_problem *p);

#endif
