/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a database and the blobs that they name. A daemon may use the database
   meanwhile. */
#ifndef QDQD_STORE_BACKUP_H
#define QDQD_STORE_BACKUP_H

#include "api/problem.h"

/*
 * Writes the contents of the database at `from`, as of one moment, to `to`. An existing
 * `to` is replaced. The copy is durable when this returns. Writers of the database do
 * not wait for it.
 */
bool store_backup_copy(const char *from, const char *to, struct api_problem *p);

/* Checks that the database at `path` is whole and that this version knows its
   schema. No process uses it meanwhile. */
bool store_backup_check(const char *path, struct api_problem *p);

/*
 * Calls `fn` once with the id of every blob that the copy at `path` names, until `fn`
 * returns false. Then this returns false too, with the problem that `fn` has set.
 */
bool store_backup_each(const char *path,
                       bool (*fn)(void *arg, const char *id, struct api_problem *p),
                       void *arg, struct api_problem *p);

#endif
