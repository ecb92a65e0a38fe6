/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit. SQLite writes committed transactions to its log without syncing it
 * (synchronous=NORMAL: it syncs the log only before it moves it to the database). A
 * thread that needs durability waits here, without any other lock: the first one syncs
 * the log for all transactions committed by then, and those that come meanwhile share
 * the next sync.
 *
 * A thread that has waited moves the log to the database when it has grown. That syncs two
 * files, so others read and write the database meanwhile, over their own connection. Only
 * what they committed meanwhile is moved with the store's lock held, and only when the log
 * is to begin anew: SQLite does so at the next commit after all of it was moved.
 */
#include "config.h"
#include "base/errno_code.h"
#include "store/log.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Pages of the log: how many more there are before they are moved, with how many it begins
   anew, and with how many the commit itself moves them, because no other thread did. */
enum { MOVE_PAGES = 1000, RESTART_PAGES = 3000, MOST_PAGES = 6000 };

/* Called after each commit, in place of SQLite's own hook, which moves the log to the
   database with the store's lock held. */
static int
on_commit(void *arg, sqlite3 *db, const char *schema, int pages)
{
    struct store_log *log = arg;
    lock_assert_held(log->store_lock);
    log->committed++;
    if (pages < log->pages)
        log->moved = 0; /* the log began anew */
    log->pages = pages;
    if (pages >= MOST_PAGES)
        (void)sqlite3_wal_checkpoint(db, schema);
    return SQLITE_OK;
}

/* --- moving the log to the database ---------------------------------------- */

/* Opens a connection of its own, which can checkpoint once it has read something. */
static bool
open_mover(const char *path, sqlite3 **ret)
{
    return sqlite3_open_v2(path, ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                           NULL) == SQLITE_OK &&
           sqlite3_exec(*ret,
                        "PRAGMA synchronous = NORMAL; SELECT 1 FROM sqlite_schema",
                        NULL, NULL, NULL) == SQLITE_OK;
}

/* Moves what has been committed. A failure is ignored: another move follows. */
static void
move_log(struct store_log *log)
{
    int pages = log->pages;
    (void)sqlite3_wal_checkpoint_v2(log->mover, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL,
                                    NULL);
    if (pages >= RESTART_PAGES) {
        lock_acquire(log->store_lock);
        (void)sqlite3_wal_checkpoint_v2(log->mover, NULL, SQLITE_CHECKPOINT_PASSIVE,
                                        NULL, NULL);
        lock_release(log->store_lock);
    }
    log->moved = pages;
}

static void
move_log_if_long(struct store_log *log)
{
    if (log->pages - log->moved < MOVE_PAGES || atomic_exchange(&log->moving, true))
        return;
    move_log(log);
    atomic_store(&log->moving, false);
}

/* --- opening and closing --------------------------------------------------- */

/* Makes the log's name in its folder durable. */
static bool
sync_folder(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool
fail_sync(struct api_problem *p)
{
    return api_problem_set(p, errno_code(errno), QDQ_AT_NOTHING, NULL,
                           "the database's log: %s", strerror(errno));
}

bool
store_log_open(struct store_log *log, sqlite3 *db, const char *path,
               struct lock *store_lock, struct api_problem *p)
{
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s-wal", path);
    log->store_lock = store_lock;
    log->fd = open(name, O_RDONLY | O_CLOEXEC);
    if (log->fd < 0 || fdatasync(log->fd) || !sync_folder(path))
        return fail_sync(p);
    if (!open_mover(path, &log->mover))
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "the database: %s",
                               log->mover ? sqlite3_errmsg(log->mover)
                                          : "out of memory");
    sqlite3_wal_hook(db, on_commit, log);
    return true;
}

void
store_log_init(struct store_log *log)
{
    log->fd = -1;
    lock_init(&log->lock, LOCK_STORE_LOG);
    pthread_cond_init(&log->synced_more, NULL);
}

void
store_log_fini(struct store_log *log)
{
    sqlite3_close(log->mover);
    if (log->fd >= 0)
        close(log->fd);
    pthread_cond_destroy(&log->synced_more);
    lock_fini(&log->lock);
}

/* --- syncing --------------------------------------------------------------- */

/*
 * Syncs for all waiting threads. The caller holds the lock, which is released during
 * the sync. A failure is reported to all threads that share it; the next thread tries
 * again.
 */
static bool
sync_for_all(struct store_log *log, struct api_problem *p)
{
    lock_assert_held(&log->lock);
    log->busy = true;
    uint64_t upto = log->committed;
    lock_release(&log->lock);
    bool ok = fdatasync(log->fd) == 0 || fail_sync(p);
    lock_acquire(&log->lock);
    log->busy = false;
    if (ok)
        log->synced = upto;
    else
        log->failed = upto;
    pthread_cond_broadcast(&log->synced_more);
    return ok;
}

bool
store_log_sync(struct store_log *log, struct api_problem *p)
{
    uint64_t wanted = log->committed;
    bool ok = true;
    lock_acquire(&log->lock);
    while (ok && log->synced < wanted) {
        if (!log->busy)
            ok = sync_for_all(log, p);
        else
            lock_wait(&log->lock, &log->synced_more);
        if (ok && log->synced < wanted && log->failed >= wanted)
            ok = api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                 "the database's log cannot be written to the disk");
    }
    lock_release(&log->lock);
    move_log_if_long(log);
    return ok;
}
