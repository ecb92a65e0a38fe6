/* SPDX-License-Identifier: Apache-2.0 */
/* How SQLite carries out each statement of the store: none reads a table whole that grows with the
   jobs, but those listed here. */
#include "config.h"

#include "stored_jobs.h"
#include "store/db.h"
#include "store/dialect_sqlite.h"
#include "store/columns.h"

#include <sqlite3.h>
#include <string.h>

static const struct statement_text {
    const char *name, *sql;
} texts[] = {
#define STATEMENT(name, sql) {#name, sql},
#include "store/sql.h"
#undef STATEMENT
};

/* These tables are read whole: their size does not follow from the number of jobs, or the statement
   does so on purpose. */
static const struct {
    const char *statement; /* NULL: any */
    const char *what;
} whole[] = {
    {NULL, "CONSTANT ROW"},
    {NULL, "("},
    {NULL, "json_each"},
    {NULL, "clock"},      /* one row */
    {NULL, "record"},     /* one row */
    {NULL, "webhooks"},   /* as the operator has configured them */
    {NULL, "waiting"},    /* two rows */
    {NULL, "first"},      /* one row */
    {"ANY_ROW", "files"}, /* ends at the first row, as the next one does */
    {"ANY_ROW", "jobs"},
    {"OBSERVATIONS_EVICT", "observations"}, /* limits.observations bounds it */
    {"AMOUNTS", "observations"},            /* sums for /metrics, as the next ones */
    {"AMOUNTS", "results"},
    {"JOB_STATES", "counted"},
    {"JOB_STATES", "jobs USING COVERING INDEX"},
    {"FETCH_RECOVER", "jobs USING INDEX jobs_fetching"}, /* those that fetch */
    {"DELIVERY_RECOVER", "deliveries"},                  /* when the daemon starts */
};

static bool
is_expected(const char *statement, const char *what)
{
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((!whole[i].statement || strcmp(whole[i].statement, statement) == 0) &&
            strncmp(what, whole[i].what, strlen(whole[i].what)) == 0)
            return true;
    return false;
}

/* Prepares the statement's plan; tables have a mark before their names. */
static sqlite3_stmt *
explain(sqlite3 *db, const struct statement_text *text)
{
    static char sql[1 << 14];
    sqlite3_stmt *stmt;
    size_t n = (size_t)snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN ");
    ck_assert_uint_lt(n + strlen(text->sql), sizeof sql);
    for (const char *c = text->sql; *c; c++)
        if (*c != '@')
            sql[n++] = *c;
    sql[n] = '\0';
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK, "%s: %s",
                  text->name, sqlite3_errmsg(db));
    return stmt;
}

static void
expect_indexes(sqlite3 *db, const struct statement_text *text)
{
    enum { DETAIL = 3 };
    sqlite3_stmt *stmt = explain(db, text);
    while (stmt && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *detail = (const char *)sqlite3_column_text(stmt, DETAIL);
        ck_assert_msg(strncmp(detail, "SCAN ", 5) != 0 ||
                          is_expected(text->name, detail + 5),
                      "%s reads a whole table: %s", text->name, detail);
    }
    sqlite3_finalize(stmt);
}

UNIT_TEST(no_table_is_read_whole)
{
    sqlite3 *db;
    char file[256];
    const struct store_place place = {.path = scratch_path("plans")};
    struct store *local;
    snprintf(file, sizeof file, "%s", place.path);
    ck_assert(store_open_at(&place, &local, &problem));
    ck_assert_int_eq(sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL),
                     SQLITE_OK);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].sql)
            expect_indexes(db, &texts[i]);
    sqlite3_close(db);
    store_close(&local);
}

UNIT_SUITE("daemon/store statements", .setup = set_up, .teardown = tear_down)
