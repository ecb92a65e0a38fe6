/* SPDX-License-Identifier: Apache-2.0 */
/* The record in a file of SQLite (WAL). */
#include "config.h"
#include "base/errno_code.h"
#include "store/db.h"
#include "store/dialect_sqlite.h"
#include "store/columns.h"
#include "store/log.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* How long to wait for a backup, which reads at the same time and which the lock of
   the state folder does not keep out. It holds the database for moments only. */
#define PATIENCE_MS 5000

static const char *const sql_of[N_STATEMENTS] = {
#define STATEMENT(name, sql) [name] = sql,
#include "store/sql.h"
#undef STATEMENT
};

struct sqlite {
    struct db base;
    sqlite3 *db;
    sqlite3_stmt *statements[N_STATEMENTS];
    struct store_log log;
};

static struct sqlite *
sqlite_of(struct db *db)
{
    return (struct sqlite *)db;
}

/* --- errors --------------------------------------------------------------- */

static enum api_code
code_of(sqlite3 *db)
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
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
        return API_INTERNAL;
    default:
        return API_IO;
    }
}

static bool
set_problem(struct db *db, struct api_problem *p)
{
    sqlite3 *inner = sqlite_of(db)->db;
    return api_problem_set(p, code_of(inner), QDQ_AT_NOTHING, NULL, "the database: %s",
                           inner ? sqlite3_errmsg(inner) : "out of memory");
}

/* --- statements ----------------------------------------------------------- */

static void
bind_int(struct db *db, enum statement s, int i, int64_t value)
{
    sqlite3_bind_int64(sqlite_of(db)->statements[s], i, value);
}

static void
bind_text(struct db *db, enum statement s, int i, const char *text)
{
    sqlite3_bind_text(sqlite_of(db)->statements[s], i, text, -1, SQLITE_STATIC);
}

static int
step(struct db *db, enum statement s)
{
    int rc = sqlite3_step(sqlite_of(db)->statements[s]);
    if (rc == SQLITE_DONE && s == COMMIT)
        db_answered();
    return rc == SQLITE_ROW ? DB_ROW : rc == SQLITE_DONE ? DB_DONE : DB_FAILED;
}

static int64_t
column_int(struct db *db, enum statement s, int i)
{
    return sqlite3_column_int64(sqlite_of(db)->statements[s], i);
}

static const char *
column_text(struct db *db, enum statement s, int i)
{
    return (const char *)sqlite3_column_text(sqlite_of(db)->statements[s], i);
}

static void
done(struct db *db, enum statement s)
{
    sqlite3_reset(sqlite_of(db)->statements[s]);
    sqlite3_clear_bindings(sqlite_of(db)->statements[s]);
}

static int64_t
changes(struct db *db)
{
    return sqlite3_changes(sqlite_of(db)->db);
}

/* --- the database itself -------------------------------------------------- */

static bool
sync_log(struct db *db, struct api_problem *p)
{
    return store_log_sync(&sqlite_of(db)->log, p);
}

static bool
checkpoint(struct db *db, struct api_problem *p)
{
    return sqlite3_wal_checkpoint_v2(sqlite_of(db)->db, NULL, SQLITE_CHECKPOINT_RESTART,
                                     NULL, NULL) == SQLITE_OK ||
           set_problem(db, p);
}

/* Reads the number of the database; 0: it has none yet. */
static bool
read_number(struct db *db, uint32_t *ret, struct api_problem *p)
{
    sqlite3_stmt *stmt = NULL;
    bool ok = !sqlite3_prepare_v2(sqlite_of(db)->db, "PRAGMA application_id", -1, &stmt,
                                  NULL) &&
              sqlite3_step(stmt) == SQLITE_ROW;
    if (ok)
        *ret = (uint32_t)sqlite3_column_int(stmt, 0);
    else
        set_problem(db, p);
    sqlite3_finalize(stmt);
    return ok;
}

static bool
choose_number(struct db *db, uint32_t *ret, struct api_problem *p)
{
    char sql[64];
    if (getrandom(ret, sizeof *ret, 0) != sizeof *ret)
        return api_problem_set(p, API_INTERNAL, QDQ_AT_NOTHING, NULL,
                               "no random bytes: %s", strerror(errno));
    *ret = (*ret & 0x7fffffff) | 1;
    snprintf(sql, sizeof sql, "PRAGMA application_id = %u", (unsigned)*ret);
    return sqlite3_exec(sqlite_of(db)->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
           set_problem(db, p);
}

static bool
identify(struct db *db, uint32_t *ret, bool *ret_new, struct api_problem *p)
{
    *ret = 0;
    if (!read_number(db, ret, p))
        return false;
    *ret_new = *ret == 0;
    return *ret || choose_number(db, ret, p);
}

/* --- opening and closing -------------------------------------------------- */

static void
close_file(struct db **db)
{
    struct sqlite *old = sqlite_of(*db);
    for (int i = 0; i < N_STATEMENTS; i++)
        sqlite3_finalize(old->statements[i]);
    store_log_fini(&old->log);
    sqlite3_close(old->db);
    free(old);
    *db = NULL;
}

static const struct db_class sqlite_class = {
    .bind_int = bind_int,
    .bind_text = bind_text,
    .step = step,
    .column_int = column_int,
    .column_text = column_text,
    .done = done,
    .changes = changes,
    .fail = set_problem,
    .sync = sync_log,
    .identify = identify,
    .checkpoint = checkpoint,
    .close = close_file,
};

/* Makes the database file. SQLite gives its other files the same permissions. */
static void
make_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

/* Prepares a statement, whose names of tables have a mark before them. */
static bool
prepare(struct sqlite *sqlite, enum statement s, struct api_problem *p)
{
    char *sql = strdup(sql_of[s]), *to = sql;
    if (!sql)
        return api_problem_no_memory(p);
    for (const char *from = sql; *from; from++)
        if (*from != '@')
            *to++ = *from;
    *to = '\0';
    bool ok = sqlite3_prepare_v3(sqlite->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                 &sqlite->statements[s], NULL) == SQLITE_OK ||
              set_problem(&sqlite->base, p);
    free(sql);
    return ok;
}

static bool
open_file(struct sqlite *sqlite, const char *path, struct lock *lock,
          struct api_problem *p)
{
    make_file(path);
    if (sqlite3_open_v2(
            path, &sqlite->db,
            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) ||
        sqlite3_busy_timeout(sqlite->db, PATIENCE_MS) ||
        sqlite3_exec(sqlite->db,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                     "PRAGMA trusted_schema = OFF",
                     NULL, NULL, NULL))
        return set_problem(&sqlite->base, p);
    if (!store_schema_bring(sqlite->db, path, p))
        return false;
    /* SQLite keeps the pages that a statement may have to restore. It keeps them in memory from
       here on, because a file for them would be made in the system's temporary folder at nearly
       each commit. The steps of the schema may sort whole tables, for which a file is right. */
    if (sqlite3_exec(sqlite->db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL))
        return set_problem(&sqlite->base, p);
    for (int i = 0; i < N_STATEMENTS; i++)
        if (!prepare(sqlite, (enum statement)i, p))
            return false;
    return store_log_open(&sqlite->log, sqlite->db, path, lock, p);
}

bool
db_open_sqlite(const char *path, struct lock *lock, struct db **ret,
               struct api_problem *p)
{
    struct sqlite *sqlite = calloc(1, sizeof *sqlite);
    if (!sqlite)
        return api_problem_no_memory(p);
    sqlite->base.class = &sqlite_class;
    store_log_init(&sqlite->log);
    *ret = &sqlite->base;
    if (open_file(sqlite, path, lock, p))
        return true;
    close_file(ret);
    return false;
}
