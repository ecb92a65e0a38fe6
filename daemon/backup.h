/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backup of the state folder, and the restore. A backup is a folder with the same
 * layout, `qdqd.sqlite3` and `blobs/`. The database is put there last, so a folder that
 * has one is complete. Every blob's bytes are checked against its name.
 */
#ifndef QDQD_BACKUP_H
#define QDQD_BACKUP_H

#include "api/problem.h"

/* The amount that was copied. */
struct backup_done {
    uint64_t files, bytes;
};

/*
 * Copies the contents of the folder `state` to `to`, which is created or empty. A
 * daemon may use `state` meanwhile: the copy has the contents of one moment. On the
 * same file system blobs become hard links, which take no space. With `only_record` the blobs
 * are left out, because they are in a bucket.
 */
bool backup_make(const char *state, const char *to, bool only_record,
                 struct backup_done *ret, struct api_problem *p);

/* Restores a backup into `state`, which is created or empty and which no daemon
   uses. */
bool backup_restore(const char *from, const char *state, bool only_record,
                    struct backup_done *ret, struct api_problem *p);

#endif
