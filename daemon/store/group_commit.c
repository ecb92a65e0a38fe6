/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit. SQLite writes committed transactions to its log without syncing it
 * (synchronous=NORMAL: it syncs the log only before it moves it to the database). A
 * thread that needs durability waits here, without any other lock: the first one syncs
 * the log for all transactions committed by then, and those that come meanwhile share
 * the next sync.
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

#define CHECKPOINT 1000 /* pages of the log before a checkpoint; SQLite's default */

/* Called after each commit. Replaces SQLite's own hook and likewise moves the log to
   the database when it is long. */
static int
on_commit(void *arg, sqlite3 *db, const char *schema, int pages)
{
    struct store_log *log = arg;
    lock_assert_held(log->store_lock);
    log->committed++;
    if (pages >= CHECKPOINT)
        (void)sqlite3_wal_checkpoint(db, schema);
    return SQLITE_OK;
}

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
    if (log->fd >= 0)
        close(log->fd);
    pthread_cond_destroy(&log->synced_more);
    lock_fini(&log->lock);
}

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
    return ok;
}
