/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of the state folder, and the way back. A copy is a folder like it, with
 * `qdqd.sqlite3` and `blobs/`; the database is put there last, so a folder with one is
 * whole. Every blob's bytes are held against its name.
 */
#ifndef QDQD_BACKUP_H
#define QDQD_BACKUP_H

#include "api/problem.h"

/* What was copied. */
struct backup_done {
    uint64_t files, bytes;
};

/*
 * Copies what is kept in the folder `state` to `to`, which is made or empty. A daemon may
 * use `state`: the copy is what it had at one moment. On the same file system blobs
 * become links, which costs no room.
 */
bool backup_make(const char *state, const char *to, struct backup_done *ret,
                 struct api_problem *p);

/* Puts a copy into `state`, which is made or empty, and which no daemon uses. */
bool backup_restore(const char *from, const char *state, struct backup_done *ret,
                    struct api_problem *p);

#endif
