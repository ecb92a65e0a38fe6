/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `struct store` that its own files share: the database and how a
   statement is run. */
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

/* SQLite's log, and the amount of it that is on the disk; see group_commit.c. */
struct store_log {
    int fd;
    atomic_uint_fast64_t
        committed; /* number of transactions; written with the store's lock held */
    struct lock lock;
    pthread_cond_t synced_more;
    /* guarded by lock: */
    /* the last transaction that is on the disk, and that of the last sync that
       failed */
    uint64_t synced, failed;
    bool busy; /* a thread is syncing */
};

struct store {
    sqlite3 *db;
    struct store_retention retention;
    struct lock lock; /* guards db and its statements */
    sqlite3_stmt *statements[N_STATEMENTS];
    struct store_log log;
};

void store_log_init(struct store_log *log);
/* Opens the log of the database at `path`, which has been opened and written to. */
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
    case SQLITE_BUSY: /* the database stayed locked for longer than PATIENCE_MS */
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

/* Returns the end of a retention that counts from `kept_from`. */
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

/* Resets a statement after its use. Its bindings borrow from the caller. */
static inline void
done(sqlite3_stmt *stmt)
{
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
}

/* Runs a bound statement and ignores its rows. */
static inline bool
run(struct store *store, enum statement s, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    int rc = sqlite3_step(store->statements[s]);
    bool ok = rc == SQLITE_DONE || rc == SQLITE_ROW || fail(store, p);
    done(store->statements[s]);
    return ok;
}

/* Runs a bound statement. *ret_any is whether there was a row; the row's first
   column goes to *ret if `ret` is not NULL. */
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

/* Commits a transaction, or rolls it back when `ok` is false or the commit fails. */
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

/* Copies a column's text. Sets *ok to false when there is no memory for it. */
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

/* Adds the rows of a model's files, as a part of a transaction. NULL: the model is
   one file. */
bool store_add_model_files(struct store *store, const char *model,
                           const struct store_model_files *files,
                           struct api_problem *p);

/* Steps a statement with the columns of a job once (store.c). *ret_any is false when there
   is no row. */
bool store_read_job(struct store *store, enum statement s, struct store_job *ret,
                    bool *ret_any, struct api_problem *p);
/* When another job has the same identity, copies its result to the job, or joins them
   (store.c). A part of a transaction. */
bool store_settle_job(struct store *store, const struct store_job *job,
                      const char *identity, enum store_added *ret,
                      struct api_problem *p);

static inline void
bind_file(struct store *store, enum statement s, enum store_kind kind, const char *id)
{
    sqlite3_bind_int(store->statements[s], 1, (int)kind);
    bind_text(store->statements[s], 2, id);
}

#endif
