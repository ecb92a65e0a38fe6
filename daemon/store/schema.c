/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/schema.h"
#include "base/log.h"
#include "store/derive.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define N_COPIES 2 /* number of copies that are kept */
#define NAME_SIZE (PATH_MAX + 32)

static const char *const steps[] = {
#define STEP(sql) sql,
#include "store/steps.h"
#undef STEP
};

enum { SCHEMA_VERSION = sizeof steps / sizeof *steps };

/* --- the copy before a migration ----------------------------------------- */

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

/* Writes the database's contents to `to`, an empty file that only its owner may
   read. */
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

/* Removes the copies of schemas up to `newest`, except the newest few. */
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

bool
store_schema_copy(sqlite3 *db, const char *to, char *why, size_t size)
{
    char temporary[NAME_SIZE + 4];
    snprintf(temporary, sizeof temporary, "%s.tmp", to);
    bool ok = write_copy(db, temporary, why, size);
    if (ok && (!sync_path(temporary, O_RDONLY) || rename(temporary, to) ||
               !sync_folder_of(to))) {
        ok = false;
        snprintf(why, size, "%s", strerror(errno));
    }
    if (!ok)
        unlink(temporary);
    return ok;
}

static bool
keep_copy(sqlite3 *db, const char *path, int version, struct api_problem *p)
{
    char name[NAME_SIZE], why[256];
    copy_name(path, version, name);
    if (store_schema_copy(db, name, why, sizeof why)) {
        drop_old_copies(path, version);
        return true;
    }
    return api_problem_set(
        p, API_IO, QDQ_AT_NOTHING, NULL,
        "the database has schema %d, this version needs %d, and a "
        "copy of it cannot be made before (%s): it was left as it is",
        version, SCHEMA_VERSION, why);
}

/* --- the migration ------------------------------------------------------- */

bool
store_schema_version(sqlite3 *db, int *ret, struct api_problem *p)
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
    return ok &&
           ((*ret >= 0 && *ret <= SCHEMA_VERSION) ||
            api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                            "%s has schema %d, and this version of qdqd knows none "
                            "above %d: start the version that wrote it, or a newer one",
                            sqlite3_db_filename(db, "main"), *ret, SCHEMA_VERSION));
}

/* Runs all steps in one transaction. */
static bool
run_steps(sqlite3 *db, int version, struct api_problem *p)
{
    char set_version[48];
    snprintf(set_version, sizeof set_version, "PRAGMA user_version = %d",
             SCHEMA_VERSION);
    bool ok = store_derive_functions(db) &&
              sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
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

static void
log_change(const char *path, int version)
{
    char name[NAME_SIZE], quoted[LOG_QUOTED];
    copy_name(path, version, name);
    log_info("schema_changed", "from=%d to=%d copy=%s", version, SCHEMA_VERSION,
             log_quote(quoted, name));
}

bool
store_schema_bring(struct sqlite3 *db, const char *path, struct api_problem *p)
{
    int version;
    if (!store_schema_version(db, &version, p))
        return false;
    if (version == SCHEMA_VERSION)
        return true;
    if ((version && !keep_copy(db, path, version, p)) || !run_steps(db, version, p))
        return false;
    if (version)
        log_change(path, version);
    return true;
}
