/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record in PostgreSQL. Each store has one connection, which it opens again when it
 * was lost. Statements name their schema, and behind a pooler none is prepared, so that it
 * may give each transaction another connection. Without a pooler the server parses and
 * plans each statement once for a connection, which takes more time than running it.
 */
#include "config.h"
#include "base/clock.h"
#include "store/db.h"
#include "store/postgres/dialect.h"
#include "store/columns.h"
#include "store/postgres/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMS = 24, INT8 = 20, TEXT = 25 };

#define ANSWER_MS 4000 /* longest wait for the answer to a statement */
#define AGAIN_MS 300   /* least time between two attempts to connect */

static const char *const sql_of[N_STATEMENTS] = {
#define STATEMENT(name, sql) [name] = sql,
#include "store/sql.h"
#undef STATEMENT
};

/* Begins a transaction where a pooler answers. One that stands still, because its node does, is
   ended: its locks would keep the other nodes waiting. Without a pooler the whole session has
   that limit (postgres_set_up()). */
#define BEGIN_BEHIND_POOLER \
    "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 4000"

struct query {
    char *sql;
    int n; /* number of parameters */
    Oid types[MOST_PARAMS];
    const char *values[MOST_PARAMS];
    char name[8]; /* of the prepared statement */
    char numbers[MOST_PARAMS][24];
    PGresult *result; /* NULL: it was not run yet */
    int row;
    bool is_prepared; /* on this connection, for parameters of these types */
    int prepared_n;
    Oid prepared_types[MOST_PARAMS];
};

struct postgres {
    struct db base;
    char *url;
    char schema[POSTGRES_SCHEMA];
    PGconn *conn; /* NULL: it is not connected */
    bool in_transaction;
    bool has_pooler;  /* between this connection and the server */
    int64_t tried_at; /* steady clock; time of the last attempt to connect */
    int64_t changed;
    struct postgres_failure failure;
    struct query queries[N_STATEMENTS];
};

static struct postgres *
postgres_of(struct db *db)
{
    return (struct postgres *)db;
}

static bool
set_problem(struct db *db, struct api_problem *p)
{
    const struct postgres_failure *failure = &postgres_of(db)->failure;
    return api_problem_set(p, failure->code, QDQ_AT_NOTHING, NULL, "the database: %s",
                           failure->text);
}

/* --- parameters and columns ------------------------------------------------ */

static void
bind(struct db *db, enum statement s, int i, Oid type, const char *value)
{
    struct query *query = &postgres_of(db)->queries[s];
    query->types[i - 1] = type;
    query->values[i - 1] = value;
    if (i > query->n)
        query->n = i;
}

static void
bind_int(struct db *db, enum statement s, int i, int64_t value)
{
    char *number = postgres_of(db)->queries[s].numbers[i - 1];
    snprintf(number, sizeof postgres_of(db)->queries[s].numbers[0], "%lld",
             (long long)value);
    bind(db, s, i, INT8, number);
}

static void
bind_text(struct db *db, enum statement s, int i, const char *text)
{
    bind(db, s, i, TEXT, text);
}

static const char *
column_text(struct db *db, enum statement s, int i)
{
    const struct query *query = &postgres_of(db)->queries[s];
    return i < PQnfields(query->result) && !PQgetisnull(query->result, query->row, i)
               ? PQgetvalue(query->result, query->row, i)
               : NULL;
}

/* A boolean is 0 or 1. */
static int64_t
column_int(struct db *db, enum statement s, int i)
{
    const char *text = column_text(db, s, i);
    return !text ? 0 : *text == 't' ? 1 : strtoll(text, NULL, 10);
}

static void
done(struct db *db, enum statement s)
{
    struct query *query = &postgres_of(db)->queries[s];
    PQclear(query->result);
    query->result = NULL;
    memset(query->types, 0, sizeof query->types);
    memset(query->values, 0, sizeof query->values);
    query->n = query->row = 0;
}

static int64_t
changes(struct db *db)
{
    return postgres_of(db)->changed;
}

/* --- running a statement --------------------------------------------------- */

static void
disconnect(struct postgres *postgres)
{
    PQfinish(postgres->conn);
    postgres->conn = NULL;
    for (int s = 0; s < N_STATEMENTS; s++)
        postgres->queries[s].is_prepared = false;
}

/* Prepares a statement if it is one that the server plans, and if it can be run as prepared.
   Returns false after an error. */
static bool
prepare(struct postgres *postgres, enum statement s, int64_t ms, bool *ret)
{
    static const char *const planned[] = {"SELECT", "INSERT", "UPDATE", "DELETE",
                                          "WITH"};
    struct query *query = &postgres->queries[s];
    const struct postgres_query sent = {
        .name = query->name, .sql = query->sql, .n = query->n, .types = query->types};
    size_t i = 0;
    while (i < sizeof planned / sizeof *planned &&
           strncmp(query->sql, planned[i], strlen(planned[i])) != 0)
        i++;
    *ret = false;
    if (postgres->has_pooler || i == sizeof planned / sizeof *planned)
        return true;
    if (!query->is_prepared) {
        if (!postgres_prepare(postgres->conn, &sent, ms, &postgres->failure))
            return false;
        query->is_prepared = true;
        query->prepared_n = query->n;
        memcpy(query->prepared_types, query->types, sizeof query->types);
    }
    *ret = query->prepared_n == query->n &&
           memcmp(query->prepared_types, query->types, sizeof query->types) == 0;
    return true;
}

/* Finds out about a pooler, and sets up a connection without one. */
static bool
begin_session(struct postgres *postgres)
{
    return postgres_find_pooler(postgres->conn, ANSWER_MS, &postgres->has_pooler,
                                &postgres->failure) &&
           (postgres->has_pooler ||
            postgres_set_up(postgres->conn, ANSWER_MS, &postgres->failure));
}

/* Connects, unless that failed a moment ago, or the thread must not wait for so long. */
static bool
connect_again(struct postgres *postgres)
{
    int64_t now = clock_steady_ms();
    if (postgres->conn)
        return true;
    if (db_longest_wait()) {
        postgres->failure = (struct postgres_failure){
            .code = API_UNAVAILABLE, .lost = true, .text = "it is not connected"};
        return false;
    }
    if (postgres->tried_at && now - postgres->tried_at < AGAIN_MS)
        return false;
    postgres->conn = postgres_connect(postgres->url, &postgres->failure);
    if (postgres->conn && !begin_session(postgres))
        disconnect(postgres);
    postgres->tried_at = postgres->conn ? 0 : clock_steady_ms();
    return postgres->conn;
}

static bool
ask_once(struct postgres *postgres, enum statement s)
{
    struct query *query = &postgres->queries[s];
    struct postgres_query sent = {
        .sql = s == BEGIN && postgres->has_pooler ? BEGIN_BEHIND_POOLER : query->sql,
        .n = s == BEGIN ? -1 : query->n,
        .types = query->types,
        .values = query->values,
    };
    int64_t most = db_longest_wait();
    int64_t ms = most && most < ANSWER_MS ? most : ANSWER_MS;
    bool is_prepared = false;
    if (prepare(postgres, s, ms, &is_prepared)) {
        sent.name = is_prepared ? query->name : NULL;
        query->result = postgres_ask(postgres->conn, &sent, ms, &postgres->failure);
    }
    if (query->result) {
        db_answered();
        return true;
    }
    if (postgres->failure.lost)
        disconnect(postgres);
    return false;
}

/*
 * Runs a statement. Outside of a transaction a lost connection is opened again, and a
 * statement that changes nothing is sent once more. Inside, its loss ends the
 * transaction.
 */
static bool
run_query(struct postgres *postgres, enum statement s)
{
    struct query *query = &postgres->queries[s];
    if (postgres->in_transaction && !postgres->conn)
        return false;
    if (!connect_again(postgres))
        return false;
    if (ask_once(postgres, s))
        return true;
    bool harmless = s == BEGIN || !strncmp(query->sql, "SELECT", 6);
    return !postgres->in_transaction && harmless && !postgres->conn &&
           connect_again(postgres) && ask_once(postgres, s);
}

static int
step(struct db *db, enum statement s)
{
    struct postgres *postgres = postgres_of(db);
    struct query *query = &postgres->queries[s];
    if (query->result)
        return ++query->row < PQntuples(query->result) ? DB_ROW : DB_DONE;
    bool ok = run_query(postgres, s);
    if (s == BEGIN)
        postgres->in_transaction = ok;
    if (s == COMMIT || s == ROLLBACK)
        postgres->in_transaction = false;
    if (!ok)
        return DB_FAILED;
    /* COMMIT of a transaction that has failed rolls it back. */
    if (s == COMMIT && strcmp(PQcmdStatus(query->result), "COMMIT") != 0) {
        snprintf(postgres->failure.text, POSTGRES_TEXT, "the transaction was ended");
        postgres->failure.code = API_UNAVAILABLE;
        return DB_FAILED;
    }
    if (s != COMMIT)
        postgres->changed = strtoll(PQcmdTuples(query->result), NULL, 10);
    return PQntuples(query->result) ? DB_ROW : DB_DONE;
}

/* --- the database itself --------------------------------------------------- */

/* The server syncs each commit before it answers. */
static bool
sync_nothing(struct db *db, struct api_problem *p)
{
    (void)db;
    (void)p;
    return true;
}

static bool
identify(struct db *db, uint32_t *ret, bool *ret_new, struct api_problem *p)
{
    int rc = step(db, IDENTIFY);
    if (rc == DB_ROW)
        *ret = (uint32_t)column_int(db, IDENTIFY, 0);
    done(db, IDENTIFY);
    *ret_new = false;
    return rc == DB_ROW || set_problem(db, p);
}

static void
close_postgres(struct db **db)
{
    struct postgres *old = postgres_of(*db);
    disconnect(old);
    for (int i = 0; i < N_STATEMENTS; i++) {
        PQclear(old->queries[i].result);
        free(old->queries[i].sql);
    }
    free(old->url);
    free(old);
    *db = NULL;
}

static const struct db_class postgres_class = {
    .bind_int = bind_int,
    .bind_text = bind_text,
    .step = step,
    .column_int = column_int,
    .column_text = column_text,
    .done = done,
    .changes = changes,
    .fail = set_problem,
    .sync = sync_nothing,
    .identify = identify,
    .checkpoint = sync_nothing,
    .close = close_postgres,
    .is_shared = true,
};

static bool
open_schema(struct postgres *postgres, const struct store_place *place,
            struct api_problem *p)
{
    const char *direct = place->direct_url ? place->direct_url : place->url;
    if (!(postgres->url = strdup(place->url)))
        return api_problem_no_memory(p);
    if (!postgres_schema_name(place->tenant, postgres->schema, p) ||
        !postgres_schema_bring(direct, postgres->schema, place->brief, p))
        return false;
    for (int i = 0; i < N_STATEMENTS; i++) {
        struct query *query = &postgres->queries[i];
        snprintf(query->name, sizeof query->name, "s%d", i);
        if (!(query->sql = postgres_translate(sql_of[i], postgres->schema)))
            return api_problem_no_memory(p);
    }
    return connect_again(postgres) || set_problem(&postgres->base, p);
}

bool
db_open_postgres(const struct store_place *place, struct db **ret,
                 struct api_problem *p)
{
    struct postgres *postgres = calloc(1, sizeof *postgres);
    if (!postgres)
        return api_problem_no_memory(p);
    postgres->base.class = &postgres_class;
    *ret = &postgres->base;
    if (open_schema(postgres, place, p))
        return true;
    close_postgres(ret);
    return false;
}
