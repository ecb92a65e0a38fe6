/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of the database's schema, and the migration from an older version to
   this one. */
#ifndef QDQD_STORE_SCHEMA_H
#define QDQD_STORE_SCHEMA_H

#include "api/problem.h"

#include <stddef.h>

struct sqlite3;

/*
 * Migrates an open database to this version's schema in one transaction: after an error
 * it is unchanged. A database that is not empty is copied before, to `path`.schema-N
 * (N: the schema that it has). The newest few copies are kept.
 */
bool store_schema_bring(struct sqlite3 *db, const char *path, struct api_problem *p);

/* Reads the schema that a database has; 0: none. Fails when it is of a later
   version. */
bool store_schema_version(struct sqlite3 *db, int *ret, struct api_problem *p);

/* Copies the contents of a database to the file `to`, which is replaced (mode 0600,
   durable). On failure it returns false, `why` has the reason, and there is no file. */
bool store_schema_copy(struct sqlite3 *db, const char *to, char *why, size_t size);

#endif
