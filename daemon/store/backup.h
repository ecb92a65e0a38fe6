/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the record, and what they name. Beside a daemon that uses it. */
#ifndef QDQD_STORE_BACKUP_H
#define QDQD_STORE_BACKUP_H

#include "api/problem.h"

/*
 * Writes what the database at `from` holds at one moment to `to`, which is replaced, and
 * durable when this returns. Who writes to it meanwhile need not wait.
 */
bool store_backup_copy(const char *from, const char *to, struct api_problem *p);

/* Is the database at `path` whole, and does this version know its schema? Nobody uses it. */
bool store_backup_check(const char *path, struct api_problem *p);

/*
 * Calls `fn` with the id of every blob that the copy at `path` names, once each, until it
 * says false; then false is returned with the problem that `fn` has set.
 */
bool store_backup_each(const char *path,
                       bool (*fn)(void *arg, const char *id, struct api_problem *p),
                       void *arg, struct api_problem *p);

#endif
