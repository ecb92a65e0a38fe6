/* SPDX-License-Identifier: Apache-2.0 */
/* How the database's schema came to be, and the way of an older one to this version's. */
#ifndef QDQD_STORE_SCHEMA_H
#define QDQD_STORE_SCHEMA_H

#include "api/problem.h"

#include <stddef.h>

struct sqlite3;

/*
 * Brings an open database to this version's schema, in one transaction: after an error
 * it is what it was. A database that holds something is copied before, to
 * `path`.schema-N (N: the schema that it has), and the newest few copies are kept.
 */
bool store_schema_bring(struct sqlite3 *db, const char *path, struct api_problem *p);

/* The schema that a database has, 0: none; an error when it is of a later version. */
bool store_schema_version(struct sqlite3 *db, int *ret, struct api_problem *p);

/* Writes what a database holds to `to`, a file that is replaced (0600, durable). False:
   `why` says why not, and there is none. */
bool store_schema_copy(struct sqlite3 *db, const char *to, char *why, size_t size);

#endif
