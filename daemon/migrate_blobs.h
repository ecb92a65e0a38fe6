/* SPDX-License-Identifier: Apache-2.0 */
/* qdqd --blobs: the stored files of a state folder go to a bucket. */
#ifndef QDQD_MIGRATE_BLOBS_H
#define QDQD_MIGRATE_BLOBS_H

#include "api/problem.h"
#include "settings/settings.h"

struct migrated_blobs {
    uint64_t files, bytes;
    uint64_t
        damaged; /* files whose bytes are not those of their name, which stay behind */
};

/*
 * Stores the files of the state folder, and of its tenants, in the bucket `url`, whose server
 * and credentials are those of the settings. Nothing is removed: the folder is a warm cache
 * afterwards. No daemon may use the folder. A call that failed can be repeated; objects that
 * are there stay.
 */
bool migrate_blobs(const struct settings *settings, const char *url,
                   struct migrated_blobs *ret, struct api_problem *p);

#endif
