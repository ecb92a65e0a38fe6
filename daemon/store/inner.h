/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share: the database and how a statement is run. */
#ifndef QDQD_STORE_INNER_H
#define QDQD_STORE_INNER_H

#include "base/errno_code.h"
#include "base/lock.h"
#include "store/store.h"

#include <stdatomic.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum statement {
#define STATEMENT(name, sql) name,
#include "store/sql.h"
#undef STATEMENT
    N_STATEMENTS
};

/* SQLite's log, and how much of it is on the disk; see group_commit.c. */
struct store_log {
    int fd;
    atomic_uint_fast64_t
        committed; /* transactions; counted with the store's lock held */
    struct lock lock;
    pthread_cond_t synced_more;
    /* guarded by lock: */
    uint64_t synced, failed; /* up to which transaction; the last sync that failed */
    bool busy;               /* somebody syncs */
};

struct store {
    sqlite3 *db;
    struct store_retention retention;
    struct lock lock; /* guards db and its statements */
    sqlite3_stmt *statements[N_STATEMENTS];
    struct store_log log;
};

void store_log_init(struct store_log *log);
/* When the database at `path` has been opened and written to. */
bool store_log_open(struct store *store, const char *path, struct api_problem *p);
void store_log_fini(struct store_log *log);

static inline enum api_code
store_code(sqlite3 *db)
{
    switch (db ? sqlite3_errcode(db) : SQLITE_NOMEM) {
    case SQLITE_FULL:
        return API_DISK_FULL;
    case SQLITE_NOMEM:
        return API_NO_MEMORY;
    case SQLITE_BUSY: /* longer than we wait */
    case SQLITE_READONLY:
        return API_UNAVAILABLE;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        return errno_code(sqlite3_system_errno(db));
    default:
        return API_IO;
    }
}

static inline bool
fail(struct store *store, struct api_problem *p)
{
    return api_problem_set(p, store_code(store->db), QDQ_AT_NOTHING, NULL,
                           "the database: %s",
                           store->db ? sqlite3_errmsg(store->db) : "out of memory");
}

/* The end of a retention that counts from `kept_from`. */
static inline int64_t
expires(int64_t kept_from, int64_t retention)
{
    return kept_from && retention ? kept_from + retention : 0;
}

/* --- statements; the caller holds the lock -------------------------------- */

static inline void
bind_text(sqlite3_stmt *stmt, int i, const char *text)
{
    sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC);
}

/* Ends the use of a statement; its bindings borrow from the caller. */
static inline void
done(sqlite3_stmt *stmt)
{
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
}

/* Runs a bound statement whose rows do not matter. */
static inline bool
run(struct store *store, enum statement s, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    int rc = sqlite3_step(store->statements[s]);
    bool ok = rc == SQLITE_DONE || rc == SQLITE_ROW || fail(store, p);
    done(store->statements[s]);
    return ok;
}

/* The same; *ret_any: was there a row? Its first column goes to *ret, if not NULL. */
static inline bool
ask(struct store *store, enum statement s, bool *ret_any, int64_t *ret,
    struct api_problem *p)
{
    lock_assert_held(&store->lock);
    int rc = sqlite3_step(store->statements[s]);
    bool ok = rc == SQLITE_DONE || rc == SQLITE_ROW || fail(store, p);
    if (ok && ret_any)
        *ret_any = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW && ret)
        *ret = sqlite3_column_int64(store->statements[s], 0);
    done(store->statements[s]);
    return ok;
}

/* Ends a transaction one way or the other. */
static inline bool
finish(struct store *store, bool ok, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    if (ok && run(store, COMMIT, p))
        return true;
    struct api_problem ignored = {0};
    (void)run(store, ROLLBACK, &ignored);
    return false;
}

/* Copies a column's text; *ok is cleared when there is no memory for it. */
static inline char *
column_text(sqlite3_stmt *stmt, int i, bool *ok)
{
    const char *text = (const char *)sqlite3_column_text(stmt, i);
    char *copy = text ? strdup(text) : NULL;
    if (!copy && sqlite3_column_type(stmt, i) != SQLITE_NULL)
        *ok = false;
    return copy;
}

static inline void
column_chars(sqlite3_stmt *stmt, int i, char *ret, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(stmt, i);
    snprintf(ret, size, "%s", text ? text : "");
}

/* The rows of a model's files, as a part of a transaction; NULL: it has none. */
bool store_add_model_files(struct store *store, const char *model,
                           const struct store_model_files *files,
                           struct api_problem *p);

static inline void
bind_file(struct store *store, enum statement s, enum store_kind kind, const char *id)
{
    sqlite3_bind_int(store->statements[s], 1, (int)kind);
    bind_text(store->statements[s], 2, id);
}

#endif
