/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store_schema.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define N_COPIES 2 /* that are kept */
#define NAME_SIZE (PATH_MAX + 32)

/*
 * How the schema came to be: step n makes of schema n the next one. What was released is
 * never changed, only added to. kind: enum store_kind. The error's code is its slug,
 * which is stable.
 */
static const char *const steps[] = {
    "CREATE TABLE files("
    "  kind INTEGER NOT NULL, id TEXT NOT NULL, size INTEGER NOT NULL,"
    "  created_at INTEGER NOT NULL, info TEXT, PRIMARY KEY(kind, id)) WITHOUT ROWID;"
    "CREATE TABLE jobs("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
    "  state TEXT NOT NULL, priority INTEGER NOT NULL, attempts INTEGER NOT NULL,"
    "  created_at INTEGER NOT NULL, started_at INTEGER NOT NULL DEFAULT 0,"
    "  ended_at INTEGER NOT NULL DEFAULT 0, model TEXT NOT NULL, calibration TEXT,"
    "  spec TEXT, labels TEXT, result_model TEXT, result_size INTEGER, report TEXT,"
    "  summary TEXT, error_code TEXT, error_kind INTEGER, error_where TEXT,"
    "  error_detail TEXT);"
    "CREATE INDEX jobs_queue ON jobs(state, priority DESC, seq);"
    "CREATE INDEX jobs_result ON jobs(result_model);"
    "CREATE INDEX jobs_report ON jobs(report);",
    "ALTER TABLE jobs ADD COLUMN frozen TEXT;"
    "CREATE INDEX jobs_frozen ON jobs(frozen);",
    "CREATE TABLE observations("
    "  key TEXT PRIMARY KEY, model TEXT NOT NULL, calibration TEXT, blob TEXT NOT NULL,"
    "  size INTEGER NOT NULL, used_at INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX observations_model ON observations(model);"
    "CREATE INDEX observations_calibration ON observations(calibration);"
    "CREATE INDEX observations_blob ON observations(blob);"
    "CREATE INDEX observations_used ON observations(used_at);"
    "ALTER TABLE jobs ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE jobs ADD COLUMN changes INTEGER NOT NULL DEFAULT 1;"
    "UPDATE jobs SET changes = 2 * attempts + CASE state WHEN 'queued' THEN 1"
    "  WHEN 'running' THEN 2 ELSE 2 + (started_at > 0) END;"
    "ALTER TABLE jobs ADD COLUMN idempotency_key TEXT;"
    "ALTER TABLE jobs ADD COLUMN asked TEXT;"
    "ALTER TABLE jobs ADD COLUMN identity TEXT;"
    "ALTER TABLE jobs ADD COLUMN waits_for TEXT;"
    "ALTER TABLE jobs ADD COLUMN cached_from TEXT;"
    "CREATE UNIQUE INDEX jobs_key ON jobs(idempotency_key)"
    "  WHERE idempotency_key IS NOT NULL;"
    "CREATE INDEX jobs_identity ON jobs(identity) WHERE identity IS NOT NULL;"
    "CREATE INDEX jobs_waits ON jobs(waits_for) WHERE waits_for IS NOT NULL;",
};

enum { SCHEMA_VERSION = sizeof steps / sizeof *steps };

/* --- the copy ------------------------------------------------------------- */

static void
copy_name(const char *path, int version, char ret[NAME_SIZE])
{
    snprintf(ret, NAME_SIZE, "%s.schema-%d", path, version);
}

/* Makes a file or a folder durable. */
static bool
sync_path(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool
sync_folder_of(const char *path)
{
    char copy[NAME_SIZE];
    snprintf(copy, sizeof copy, "%s", path);
    return sync_path(dirname(copy), O_RDONLY | O_DIRECTORY);
}

/* Writes what the database holds into `to`, an empty file that only we may read. */
static bool
write_copy(sqlite3 *db, const char *to, char *why, size_t size)
{
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", to);
    bool made = fd >= 0 && sql;
    if (!made)
        snprintf(why, size, "%s", sql ? strerror(errno) : "out of memory");
    if (fd >= 0)
        close(fd);
    bool ok = made && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
    if (made && !ok)
        snprintf(why, size, "%s", sqlite3_errmsg(db));
    sqlite3_free(sql);
    return ok;
}

/* Of the copies of schemas up to `newest` the newest stay. */
static void
drop_old_copies(const char *path, int newest)
{
    char name[NAME_SIZE];
    int kept = 0;
    for (int version = newest; version > 0; version--) {
        copy_name(path, version, name);
        if (access(name, F_OK) == 0 && ++kept > N_COPIES)
            unlink(name);
    }
}

/* A copy is there as a whole or not at all. */
static bool
keep_copy(sqlite3 *db, const char *path, int version, struct api_problem *p)
{
    char name[NAME_SIZE], temporary[NAME_SIZE + 4], why[256];
    copy_name(path, version, name);
    snprintf(temporary, sizeof temporary, "%s.tmp", name);
    bool ok = write_copy(db, temporary, why, sizeof why);
    if (ok && (!sync_path(temporary, O_RDONLY) || rename(temporary, name) ||
               !sync_folder_of(path))) {
        ok = false;
        snprintf(why, sizeof why, "%s", strerror(errno));
    }
    if (ok) {
        drop_old_copies(path, version);
        return true;
    }
    unlink(temporary);
    return api_problem_set(
        p, API_IO, QDQ_AT_NOTHING, NULL,
        "the database has schema %d, this version needs %d, and a "
        "copy of it cannot be made before (%s): it was left as it is",
        version, SCHEMA_VERSION, why);
}

/* --- the way -------------------------------------------------------------- */

static bool
read_version(sqlite3 *db, int *ret, struct api_problem *p)
{
    sqlite3_stmt *stmt = NULL;
    bool ok = !sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL) &&
              sqlite3_step(stmt) == SQLITE_ROW;
    if (ok)
        *ret = sqlite3_column_int(stmt, 0);
    else
        api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "the database: %s",
                        sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    return ok;
}

/* All steps or none. */
static bool
take_steps(sqlite3 *db, int version, struct api_problem *p)
{
    char set_version[48];
    snprintf(set_version, sizeof set_version, "PRAGMA user_version = %d",
             SCHEMA_VERSION);
    bool ok = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
    for (int i = version; ok && i < SCHEMA_VERSION; i++)
        ok = sqlite3_exec(db, steps[i], NULL, NULL, NULL) == SQLITE_OK;
    if (ok && sqlite3_exec(db, set_version, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
        return true;
    api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                    "the database cannot be brought from schema %d to %d and was left "
                    "as it is: %s",
                    version, SCHEMA_VERSION, sqlite3_errmsg(db));
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return false;
}

bool
store_schema_bring(struct sqlite3 *db, const char *path, struct api_problem *p)
{
    int version;
    if (!read_version(db, &version, p))
        return false;
    if (version < 0 || version > SCHEMA_VERSION)
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                               "the database has schema %d, this version knows %d",
                               version, SCHEMA_VERSION);
    return version == SCHEMA_VERSION ||
           ((!version || keep_copy(db, path, version, p)) &&
            take_steps(db, version, p));
}
