/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's log, and the amount of it that is on the disk; see group_commit.c. */
#ifndef QDQD_STORE_LOG_H
#define QDQD_STORE_LOG_H

#include "api/problem.h"
#include "base/lock.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct store_log {
    int fd;
    struct lock *store_lock;
    sqlite3
        *mover; /* moves the log to the database; used by the thread that set moving */
    atomic_bool moving;
    /* Written with the store's lock held: the number of transactions, the pages of the log,
       and those of them that were there at the last move. */
    atomic_uint_fast64_t committed;
    atomic_int pages, moved;
    struct lock lock;
    pthread_cond_t synced_more;
    /* guarded by lock: */
    /* the last transaction that is on the disk, and that of the last sync that
       failed */
    uint64_t synced, failed;
    bool busy; /* a thread is syncing */
};

void store_log_init(struct store_log *log);
/* Opens the log of the database at `path`, which has been opened and written to. */
bool store_log_open(struct store_log *log, sqlite3 *db, const char *path,
                    struct lock *store_lock, struct api_problem *p);
/* Waits until all transactions that were committed before are on the disk. */
bool store_log_sync(struct store_log *log, struct api_problem *p);
void store_log_fini(struct store_log *log);

#endif
