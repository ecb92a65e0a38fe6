/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/postgres/offline.h"
#include "store/backup.h"
#include "store/derive.h"
#include "store/postgres/inner.h"
#include "store/store.h"
#include "api/grow.h"
#include "api/utf8.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQL_SIZE 2048
#define CHUNK (64 << 10) /* bytes of rows that are sent at once */
#define ASK_MS 600000    /* a large record takes a while */
#define PAGE "10000"     /* rows that are read at once */
#define UNNAMED "qdqd"   /* the schema of the tenant without a name */

struct transfer {
    PGconn *conn;
    char *url;
};

/* A row of a table while it is written as COPY wants it. */
struct text {
    char *bytes;
    size_t len;
};

static bool
fail(const struct transfer *transfer, const char *schema, struct api_problem *p)
{
    const char *text = PQerrorMessage(transfer->conn);
    size_t len = strlen(text);
    /* Behind the first line stands the row that is refused. */
    return api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "PostgreSQL, the schema %s: %.*s", schema,
                           (int)(len ? len - 1 : 0), text);
}

static bool
fail_source(sqlite3 *db, const char *path, struct api_problem *p)
{
    return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: %s", path,
                           db ? sqlite3_errmsg(db) : "out of memory");
}

/* Runs SQL with marks. *ret, unless NULL, is the number in its first row, or 0. */
static bool
execute(struct transfer *transfer, const char *schema, const char *sql, int64_t *ret,
        struct api_problem *p)
{
    char *text = postgres_translate(sql, schema);
    if (!text)
        return api_problem_no_memory(p);
    PGresult *result = PQexec(transfer->conn, text);
    ExecStatusType status = PQresultStatus(result);
    bool ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
              status == PGRES_COPY_IN || fail(transfer, schema, p);
    if (ok && ret)
        *ret = PQntuples(result) ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    free(text);
    return ok;
}

/* --- one table ------------------------------------------------------------- */

static bool
text_add(struct text *text, const char *bytes, size_t n)
{
    char *grown = api_grow(text->bytes, text->len, n + 1, 1);
    if (!grown)
        return false;
    text->bytes = grown;
    memcpy(text->bytes + text->len, bytes, n);
    text->len += n;
    text->bytes[text->len] = '\0';
    return true;
}

/* Adds a value in COPY's text format. */
static bool
add_value(struct text *text, const char *value, size_t n)
{
    bool ok = true;
    for (size_t i = 0, begin = 0; ok && i <= n; i++) {
        const char *escaped = i == n             ? ""
                              : value[i] == '\\' ? "\\\\"
                              : value[i] == '\t' ? "\\t"
                              : value[i] == '\n' ? "\\n"
                              : value[i] == '\r' ? "\\r"
                                                 : NULL;
        if (!escaped)
            continue;
        ok = text_add(text, value + begin, i - begin) &&
             text_add(text, escaped, strlen(escaped));
        begin = i + 1;
    }
    return ok;
}

/* Adds a text of an earlier version, which may have kept bytes that are not UTF-8. */
static bool
add_repaired(struct text *text, const char *value)
{
    if (api_utf8_is_valid(value))
        return add_value(text, value, strlen(value));
    char *copy = api_utf8_repair(value);
    bool ok = copy && add_value(text, copy, strlen(copy));
    free(copy);
    return ok;
}

static bool
add_row(struct text *text, sqlite3_stmt *stmt)
{
    bool ok = true;
    for (int i = 0; ok && i < sqlite3_column_count(stmt); i++) {
        const char *value = (const char *)sqlite3_column_text(stmt, i);
        ok = (i == 0 || text_add(text, "\t", 1)) &&
             (value ? add_repaired(text, value) : text_add(text, "\\N", 2));
    }
    return ok && text_add(text, "\n", 1);
}

/* Sends the rows of a statement. */
static bool
send_rows(struct transfer *transfer, const char *schema, sqlite3_stmt *stmt,
          uint64_t *ret_rows, struct api_problem *p)
{
    struct text text = {0};
    bool ok = true;
    int rc;
    while (ok && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        ok = add_row(&text, stmt) || api_problem_no_memory(p);
        if (ok && text.len >= CHUNK) {
            ok = PQputCopyData(transfer->conn, text.bytes, (int)text.len) == 1 ||
                 fail(transfer, schema, p);
            text.len = 0;
        }
        ++*ret_rows;
    }
    if (ok && rc != SQLITE_DONE)
        ok = fail_source(sqlite3_db_handle(stmt), schema, p);
    if (ok && text.len)
        ok = PQputCopyData(transfer->conn, text.bytes, (int)text.len) == 1 ||
             fail(transfer, schema, p);
    free(text.bytes);
    return ok;
}

/* Ends COPY and reads whether it was done. */
static bool
end_copy(struct transfer *transfer, const char *schema, bool ok, struct api_problem *p)
{
    PGresult *result;
    if (PQputCopyEnd(transfer->conn, ok ? NULL : "the rows cannot be read") != 1)
        return fail(transfer, schema, p);
    while ((result = PQgetResult(transfer->conn))) {
        if (PQresultStatus(result) != PGRES_COMMAND_OK)
            ok = fail(transfer, schema, p);
        PQclear(result);
    }
    return ok;
}

/* Lists the columns that a table has on both sides, with commas between. */
static bool
list_columns(struct transfer *transfer, const char *schema, sqlite3 *db,
             const char *table, char *ret, size_t size, struct api_problem *p)
{
    sqlite3_stmt *stmt = NULL;
    size_t at = 0;
    ret[0] = '\0';
    bool ok = sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?1)", -1,
                                 &stmt, NULL) == SQLITE_OK &&
              sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC) == SQLITE_OK;
    if (!ok)
        fail_source(db, table, p);
    while (ok && sqlite3_step(stmt) == SQLITE_ROW && at < size) {
        const char *name = (const char *)sqlite3_column_text(stmt, 0);
        char sql[512];
        int64_t any;
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM pg_catalog.pg_attribute WHERE attrelid ="
                 " '@%s'::regclass AND attname = '%s' AND NOT attisdropped",
                 table, name);
        ok = execute(transfer, schema, sql, &any, p);
        if (ok && any)
            at += (size_t)snprintf(ret + at, size - at, "%s%s", at ? ", " : "", name);
    }
    sqlite3_finalize(stmt);
    return ok;
}

/* The column of jobs that only a shared record has. A job whose inputs are not fetched yet gets
   it with them. */
#define PROCESSOR                                                      \
    ", CASE WHEN state IN ('queued', 'running') AND fetching = 0 THEN" \
    " processor(coalesce(effective_spec, spec), calibration) END"

/* Copies a table as it is: no trigger counts or dates its rows anew. */
static bool
copy_table(struct transfer *transfer, const char *schema, sqlite3 *db,
           const char *table, uint64_t *ret_rows, struct api_problem *p)
{
    char columns[SQL_SIZE / 2], sql[SQL_SIZE];
    bool is_jobs = !strcmp(table, "jobs");
    sqlite3_stmt *stmt = NULL;
    int64_t any = 0;
    snprintf(sql, sizeof sql, "ALTER TABLE @%s DISABLE TRIGGER USER", table);
    bool ok = execute(transfer, schema, sql, NULL, p);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM (SELECT 1 FROM @%s LIMIT 1) AS one",
             table);
    ok = ok && execute(transfer, schema, sql, &any, p);
    if (ok && any)
        return api_problem_set(
            p, API_IN_USE, QDQ_AT_NOTHING, NULL,
            "store.url: the schema %s has rows of %s already; nothing "
            "was copied",
            schema, table);
    ok = ok && list_columns(transfer, schema, db, table, columns, sizeof columns, p);
    if (ok) {
        snprintf(sql, sizeof sql, "SELECT %s%s FROM %s", columns,
                 is_jobs ? PROCESSOR : "", table);
        ok = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK ||
             fail_source(db, table, p);
    }
    snprintf(sql, sizeof sql, "COPY @%s(%s%s) FROM STDIN", table, columns,
             is_jobs ? ", processor" : "");
    if (ok && execute(transfer, schema, sql, NULL, p)) {
        ok = send_rows(transfer, schema, stmt, ret_rows, p);
        ok = end_copy(transfer, schema, ok, p);
    } else {
        ok = false;
    }
    sqlite3_finalize(stmt);
    snprintf(sql, sizeof sql, "ALTER TABLE @%s ENABLE TRIGGER USER", table);
    return ok && execute(transfer, schema, sql, NULL, p);
}

/* --- one record ------------------------------------------------------------ */

/* The tables that both sides have. Webhooks are set at each start. */
static const char *const tables[] = {
    "files", "jobs", "observations", "model_files", "fetched", "deliveries", "hooked"};

/* Sets what triggers and sequences would have set, and the record's number. */
static bool
finish_schema(struct transfer *transfer, const char *schema, int64_t bytes,
              uint32_t number, struct api_problem *p)
{
    char sql[SQL_SIZE];
    snprintf(sql, sizeof sql,
             "SELECT setval(pg_get_serial_sequence('@jobs', 'seq'),"
             " (SELECT coalesce(max(seq), 0) + 1 FROM @jobs), false),"
             " setval(pg_get_serial_sequence('@deliveries', 'seq'),"
             " (SELECT coalesce(max(seq), 0) + 1 FROM @deliveries), false);"
             "DELETE FROM @record_parts; INSERT INTO @record_parts VALUES(0, %lld);"
             "UPDATE @version SET number = %u",
             (long long)bytes, (unsigned)number);
    return execute(transfer, schema, sql, NULL, p);
}

/* Reads the bytes of the jobs' rows, as the file has counted them. */
static bool
read_bytes(sqlite3 *db, const char *path, int64_t *ret, struct api_problem *p)
{
    sqlite3_stmt *stmt = NULL;
    bool ok = sqlite3_prepare_v2(db, "SELECT bytes FROM record", -1, &stmt, NULL) ==
                  SQLITE_OK &&
              sqlite3_step(stmt) == SQLITE_ROW;
    if (ok)
        *ret = sqlite3_column_int64(stmt, 0);
    else
        fail_source(db, path, p);
    sqlite3_finalize(stmt);
    return ok;
}

/* Brings the file to this version's schema, as a daemon does, and reads its number. */
static bool
prepare_file(const char *path, uint32_t *ret_number, struct api_problem *p)
{
    struct store *store = NULL;
    struct store_identity identity = {0};
    bool ok = store_open(path, &store, p) && store_identify(store, &identity, p);
    store_close(&store);
    *ret_number = identity.number;
    return ok;
}

bool
transfer_record(struct transfer *transfer, const char *path, const char *tenant,
                uint64_t *ret_rows, struct api_problem *p)
{
    char schema[POSTGRES_SCHEMA];
    sqlite3 *db = NULL;
    uint32_t number;
    int64_t bytes = 0;
    if (!prepare_file(path, &number, p) || !postgres_schema_name(tenant, schema, p) ||
        !postgres_schema_bring(transfer->url, schema, false, p))
        return false;
    bool ok = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                              NULL) == SQLITE_OK &&
              store_derive_functions(db);
    if (!ok)
        fail_source(db, path, p);
    for (size_t i = 0; ok && i < sizeof tables / sizeof *tables; i++)
        ok = copy_table(transfer, schema, db, tables[i], ret_rows, p);
    ok = ok && read_bytes(db, path, &bytes, p) &&
         finish_schema(transfer, schema, bytes, number, p);
    sqlite3_close(db);
    return ok;
}

/* --- access tokens --------------------------------------------------------- */

/* Adds a text, or that there is none, and what separates it from the next one. */
static bool
add_word(struct text *text, const char *word, const char *separator)
{
    return (word ? add_value(text, word, strlen(word)) : text_add(text, "\\N", 2)) &&
           text_add(text, separator, 1);
}

static bool
add_token(struct text *text, const struct store_token *token)
{
    return add_word(text, token->name, "\t") && add_word(text, token->hash, "\t") &&
           add_word(text, token->scopes, "\t") && add_word(text, token->tenant, "\t") &&
           add_word(text, token->made, "\t") && add_word(text, token->limits, "\n");
}

/* Sends the rows of tokens. */
static bool
copy_tokens(struct transfer *transfer, const struct store_token *tokens, size_t n,
            struct api_problem *p)
{
    struct text text = {0};
    bool ok = execute(
        transfer, UNNAMED,
        "COPY @tokens(name, hash, scopes, tenant, made, limits) FROM STDIN", NULL, p);
    if (!ok)
        return false;
    for (size_t i = 0; ok && i < n; i++)
        ok = add_token(&text, &tokens[i]) || api_problem_no_memory(p);
    if (ok && text.len)
        ok = PQputCopyData(transfer->conn, text.bytes, (int)text.len) == 1 ||
             fail(transfer, UNNAMED, p);
    ok = end_copy(transfer, UNNAMED, ok, p);
    free(text.bytes);
    return ok;
}

bool
transfer_tokens(struct transfer *transfer, const struct store_token *tokens, size_t n,
                struct api_problem *p)
{
    int64_t first;
    return execute(transfer, UNNAMED,
                   "UPDATE @token_changes SET changes = 1 WHERE changes = 0"
                   " RETURNING changes",
                   &first, p) &&
           (first || api_problem_set(p, API_IN_USE, QDQ_AT_NOTHING, NULL,
                                     "store.url: the schema " UNNAMED
                                     " has or had access tokens already; nothing was "
                                     "copied")) &&
           copy_tokens(transfer, tokens, n, p);
}

/* --- all of them ----------------------------------------------------------- */

bool
transfer_open(const char *url, struct transfer **ret, struct api_problem *p)
{
    struct postgres_failure failure;
    *ret = calloc(1, sizeof **ret);
    if (!*ret || !((*ret)->url = strdup(url)))
        return api_problem_no_memory(p);
    (*ret)->conn = postgres_connect(url, &failure);
    if (!(*ret)->conn)
        return api_problem_set(p, failure.code, QDQ_AT_NOTHING, NULL, "PostgreSQL: %s",
                               failure.text);
    /* A copy takes as long as it takes. */
    PQsetnonblocking((*ret)->conn, 0);
    return execute(*ret, UNNAMED,
                   "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0;"
                   " SET LOCAL statement_timeout = 0",
                   NULL, p);
}

bool
transfer_commit(struct transfer *transfer, struct api_problem *p)
{
    return execute(transfer, UNNAMED, "COMMIT", NULL, p);
}

void
transfer_close(struct transfer **transfer)
{
    if (!*transfer)
        return;
    PQfinish((*transfer)->conn);
    free((*transfer)->url);
    free(*transfer);
    *transfer = NULL;
}

/* --- what is in a record --------------------------------------------------- */

static const struct {
    int until;
    const char *sql;
} names[] = {
#define NAMES(since, until, sql) {until, sql},
    BLOB_NAMES(NAMES)
#undef NAMES
};

typedef bool (*visit_fn)(void *arg, const char *text, struct api_problem *p);

/* Runs SQL. Returns NULL after an error. */
static PGresult *
ask(PGconn *conn, const char *sql, struct api_problem *p)
{
    struct postgres_failure failure;
    PGresult *result = postgres_ask(conn, &(struct postgres_query){.sql = sql, .n = -1},
                                    ASK_MS, &failure);
    if (!result)
        api_problem_set(p, failure.code, QDQ_AT_NOTHING, NULL, "store.url: %s",
                        failure.text);
    return result;
}

/* Calls `fn` with the first column of every row of a query, which are those of one moment. */
static bool
visit(const char *url, const char *sql, visit_fn fn, void *arg, struct api_problem *p)
{
    struct postgres_failure failure;
    char begin[2 * SQL_SIZE];
    int n = 1;
    PGconn *conn = postgres_connect(url, &failure);
    if (!conn)
        return api_problem_set(p, failure.code, QDQ_AT_NOTHING, NULL, "store.url: %s",
                               failure.text);
    snprintf(begin, sizeof begin, "BEGIN READ ONLY; DECLARE rows CURSOR FOR %s", sql);
    PGresult *result = ask(conn, begin, p);
    bool ok = result != NULL;
    PQclear(result);
    while (ok && n) {
        result = ask(conn, "FETCH " PAGE " FROM rows", p);
        ok = result != NULL;
        n = ok ? PQntuples(result) : 0;
        for (int i = 0; ok && i < n; i++)
            ok = fn(arg, PQgetvalue(result, i, 0), p);
        PQclear(result);
    }
    PQfinish(conn);
    return ok;
}

bool
survey_blobs(const char *url, const char *tenant, visit_fn fn, void *arg,
             struct api_problem *p)
{
    char schema[POSTGRES_SCHEMA], sql[SQL_SIZE];
    size_t at = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].until == INT_MAX)
            at += (size_t)snprintf(sql + at, sizeof sql - at, "%s%s",
                                   at ? " UNION " : "", names[i].sql);
    if (!postgres_schema_name(tenant, schema, p))
        return false;
    char *text = postgres_translate(sql, schema);
    bool ok = text ? visit(url, text, fn, arg, p) : api_problem_no_memory(p);
    free(text);
    return ok;
}

bool
survey_tenants(const char *url, visit_fn fn, void *arg, struct api_problem *p)
{
    return visit(url,
                 "SELECT substr(schemaname, 6) FROM pg_catalog.pg_tables"
                 " WHERE tablename = 'version'"
                 " AND (schemaname = 'qdqd' OR schemaname LIKE 'qdqd-%')"
                 " ORDER BY schemaname",
                 fn, arg, p);
}
