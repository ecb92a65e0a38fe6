/* SPDX-License-Identifier: Apache-2.0 */
/* qdqd --check-store: does each row have its blob, and each blob a row? */
#ifndef QDQD_CHECK_STORE_H
#define QDQD_CHECK_STORE_H

#include "api/problem.h"
#include "settings/settings.h"

#include <stdio.h>

struct store_checked {
    uint64_t blobs;   /* that rows name */
    uint64_t missing; /* of these, without bytes */
    uint64_t orphans; /* blobs that no row names */
};

/*
 * Compares the record of each tenant with its stored files, in the folder or in the bucket, and
 * prints a line for each fault: "missing TENANT ID" or "orphan TENANT ID"; the tenant without a
 * name is "-". A daemon may run meanwhile: what it adds or removes during the check is no fault.
 * Bytes are not read.
 */
bool check_store(const struct settings *settings, FILE *out, struct store_checked *ret,
                 struct api_problem *p);

#endif
