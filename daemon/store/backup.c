/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/backup.h"
#include "store/schema.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* how long to wait for another process that has the database locked */
#define PATIENCE_MS 10000
/* the first schema with the table `unsynced` */
#define TEXTS_SINCE 12

/* The columns that refer to blobs. */
static const struct {
    int since, until;
    const char *sql;
} names[] = {
#define NAMES(since, until, sql) {since, until, sql},
    BLOB_NAMES(NAMES)
#undef NAMES
};

#define N_NAMES (sizeof names / sizeof *names)

static bool
fail(sqlite3 *db, const char *path, struct api_problem *p)
{
    return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: %s", path,
                           db ? sqlite3_errmsg(db) : "out of memory");
}

/* Opens a database. *ret must be closed, also after an error. */
static bool
open_at(const char *path, sqlite3 **ret, int *ret_version, struct api_problem *p)
{
    *ret = NULL;
    if (sqlite3_open_v2(path, ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ||
        sqlite3_busy_timeout(*ret, PATIENCE_MS) ||
        sqlite3_exec(*ret, "PRAGMA trusted_schema = OFF", NULL, NULL, NULL))
        return fail(*ret, path, p);
    return store_schema_version(*ret, ret_version, p);
}

bool
store_backup_copy(const char *from, const char *to, struct api_problem *p)
{
    sqlite3 *db;
    int version;
    char why[256];
    bool ok = open_at(from, &db, &version, p);
    if (ok && !store_schema_copy(db, to, why, sizeof why))
        ok = api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: %s", to, why);
    sqlite3_close(db);
    return ok;
}

static bool
check(sqlite3 *db, const char *path, struct api_problem *p)
{
    sqlite3_stmt *stmt = NULL;
    const char *text = NULL;
    if (sqlite3_prepare_v2(db, "PRAGMA integrity_check(1)", -1, &stmt, NULL) ==
            SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        text = (const char *)sqlite3_column_text(stmt, 0);
    bool ok = text && !strcmp(text, "ok");
    if (!ok)
        api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s is damaged: %s", path,
                        text ? text : sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    return ok;
}

bool
store_backup_check(const char *path, struct api_problem *p)
{
    sqlite3 *db;
    int version;
    bool ok = open_at(path, &db, &version, p) && check(db, path, p);
    if (ok && version == 0)
        ok = api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                             "%s is no database of this service", path);
    sqlite3_close(db);
    return ok;
}

/* Joins all columns in one query, so that each id comes once. SQLite's names of tables have no
   mark. */
static void
make_question(int version, char *ret, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < N_NAMES; i++)
        if (names[i].since <= version && version <= names[i].until)
            at += (size_t)snprintf(ret + at, size - at, "%s%s", at ? " UNION " : "",
                                   names[i].sql);
    char *to = ret;
    for (const char *from = ret; *from; from++)
        if (*from != '@')
            *to++ = *from;
    *to = '\0';
}

/* A question about a copy. */
struct walk {
    sqlite3 *db;
    sqlite3_stmt *stmt;
    int version;
};

/* Opens a copy. walk_end() follows, also after an error. */
static bool
walk_begin(struct walk *walk, const char *path, struct api_problem *p)
{
    *walk = (struct walk){0};
    return open_at(path, &walk->db, &walk->version, p);
}

/* Asks for all ids, or, where `head` is not "", for what it selects by them. */
static bool
walk_ask(struct walk *walk, const char *head, const char *tail, const char *path,
         struct api_problem *p)
{
    char ids[1024] = "", sql[1200];
    make_question(walk->version, ids, sizeof ids);
    snprintf(sql, sizeof sql, "%s%s%s", head, ids, tail);
    return !sqlite3_prepare_v2(walk->db, sql, -1, &walk->stmt, NULL) ||
           fail(walk->db, path, p);
}

/* Steps to the next row. Returns false after the last one, and after an error. */
static bool
walk_next(struct walk *walk, const char *path, bool *ok, struct api_problem *p)
{
    int rc = *ok ? sqlite3_step(walk->stmt) : SQLITE_DONE;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        *ok = fail(walk->db, path, p);
    return rc == SQLITE_ROW;
}

static const char *
walk_text(const struct walk *walk, int column)
{
    return (const char *)sqlite3_column_text(walk->stmt, column);
}

static void
walk_end(struct walk *walk)
{
    sqlite3_finalize(walk->stmt);
    sqlite3_close(walk->db);
}

bool
store_backup_each(const char *path,
                  bool (*fn)(void *arg, const char *id, struct api_problem *p),
                  void *arg, struct api_problem *p)
{
    struct walk walk;
    bool ok = walk_begin(&walk, path, p) && walk_ask(&walk, "", "", path, p);
    while (walk_next(&walk, path, &ok, p))
        ok = fn(arg, walk_text(&walk, 0), p);
    walk_end(&walk);
    return ok;
}

bool
store_backup_texts(const char *path,
                   bool (*fn)(void *arg, const char *id, const char *text,
                              struct api_problem *p),
                   void *arg, struct api_problem *p)
{
    struct walk walk;
    bool ok = walk_begin(&walk, path, p);
    if (ok && walk.version >= TEXTS_SINCE) {
        ok = walk_ask(&walk, "SELECT id, text FROM unsynced WHERE id IN (", ")", path,
                      p);
        while (walk_next(&walk, path, &ok, p))
            ok = fn(arg, walk_text(&walk, 0), walk_text(&walk, 1), p);
    }
    walk_end(&walk);
    return ok;
}
