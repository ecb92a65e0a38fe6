/* SPDX-License-Identifier: Apache-2.0 */
/* qdqd --migrate-to: the records of a state folder and its access tokens go to PostgreSQL. */
#ifndef QDQD_MIGRATE_RECORD_H
#define QDQD_MIGRATE_RECORD_H

#include "api/problem.h"
#include "settings/settings.h"

struct migrated_record {
    uint64_t tenants, rows; /* tenants: with the one without a name */
    size_t tokens;
};

/*
 * Copies the rows of the state folder, and of its tenants, and the file of access tokens into the
 * database `url`, whose schemas have to be absent or without rows (IN_USE). The folder stays as
 * it is, but for a record of an older version, which is brought to this one's. No daemon uses
 * folder or database. Either everything is copied or nothing, so a call that failed can be
 * repeated.
 */
bool migrate_record(const struct settings *settings, const char *url,
                    struct migrated_record *ret, struct api_problem *p);

#endif
