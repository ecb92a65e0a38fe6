/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to PostgreSQL, and the schema of a tenant there. */
#ifndef QDQD_STORE_POSTGRES_INNER_H
#define QDQD_STORE_POSTGRES_INNER_H

#include "store/store.h"

#include <libpq-fe.h>

#define POSTGRES_TEXT 512  /* bytes of an error's text */
#define POSTGRES_SCHEMA 64 /* bytes of a schema's name */

struct postgres_failure {
    enum api_code code;
    bool lost; /* the connection is of no more use */
    char text[POSTGRES_TEXT];
};

/* Connects within a few seconds. Returns NULL and fills the failure when that fails. */
PGconn *postgres_connect(const char *url, struct postgres_failure *failure);

/* A statement with its parameters, as PQsendQueryParams() has them; n = -1: several
   statements without parameters. */
struct postgres_query {
    const char *name; /* of a prepared statement; NULL: the statement is `sql` */
    const char *sql;
    int n;
    const Oid *types;
    const char *const *values;
};

/* Runs a query. Returns NULL after an error, or when there is no answer within `ms`. */
PGresult *postgres_ask(PGconn *conn, const struct postgres_query *query, int64_t ms,
                       struct postgres_failure *failure);

/* Has the server parse a statement, which then has a name on this connection. Returns false
   after an error, or when there is no answer within `ms`. */
bool postgres_prepare(PGconn *conn, const struct postgres_query *query, int64_t ms,
                      struct postgres_failure *failure);
/* Sets up a connection without a pooler: a transaction that stands still is ended. The plan
   of a statement is made once, for all parameters, and uses an index where there is one. The
   tables may be empty when it is made. */
bool postgres_set_up(PGconn *conn, int64_t ms, struct postgres_failure *failure);
/* Finds out whether a pooler answers in the place of the server: it gives its own number as
   that of the server's process. */
bool postgres_find_pooler(PGconn *conn, int64_t ms, bool *ret,
                          struct postgres_failure *failure);

/* Writes the name of a tenant's schema. */
bool postgres_schema_name(const char *tenant, char ret[POSTGRES_SCHEMA],
                          struct api_problem *p);
/* Returns a copy of the SQL with the schema where it has marks, and with PostgreSQL's
   names of parameters. The caller frees it. NULL: out of memory. */
char *postgres_translate(const char *sql, const char *schema);
/* Brings the schema to this version: one node does so, and the others wait, but not for long
   where `brief`. Fails when the schema is of a later version. */
bool postgres_schema_bring(const char *url, const char *schema, bool brief,
                           struct api_problem *p);

#endif
