/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bucket of blobs (blobs.url): a few threads, each with a carrier process that keeps a
 * connection to it. Other threads wait for their request, like for a disk. A request is tried
 * again once or twice before it fails; while requests fail, and now and then when there are
 * none, a thread asks whether the bucket is back.
 */
#ifndef QDQD_CARRIERS_BUCKET_H
#define QDQD_CARRIERS_BUCKET_H

#include "library/bucket/bucket.h"
#include "settings/settings.h"

struct bucket_pool;

/* Checks the section [blobs] without a connection. */
bool bucket_check(const struct settings *settings, char error[SETTINGS_ERROR]);
/* Starts the threads; *ret stays NULL where blobs.url is empty. Borrows the settings. */
bool bucket_open(const struct settings *settings, struct bucket_pool **ret,
                 struct api_problem *p);
/* Returns the functions of a bucket, which live as long as the pool. NULL for NULL. */
const struct bucket *bucket_calls(struct bucket_pool *pool);
/* Fails what waits from now on, because the daemon stops. */
void bucket_stop(struct bucket_pool *pool);
/* Waits for the threads. Nobody may call the bucket any more. */
void bucket_close(struct bucket_pool **pool);

#endif
