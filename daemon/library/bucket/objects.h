/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of a tenant's blobs in a bucket, and the two that belong to the removal of a blob
 * (sweep/bucket_objects.c): its mark, and the announcement of its removal.
 */
#ifndef QDQD_LIBRARY_BUCKET_OBJECTS_H
#define QDQD_LIBRARY_BUCKET_OBJECTS_H

#include "library/blob.h"
#include "library/bucket/bucket.h"

/* in the keys of marks and announcements, behind the tenant */
#define MARKS "marks/"
#define REMOVALS "removals/"

#define STALE_S 60 /* since an announcement, until it delays nobody any more */

/* Writes the key of a tenant's blob, of its mark, or of the announcement of its removal. */
void object_key(const struct blobs *blobs, const char *id, char ret[BUCKET_KEY]);
void object_mark_key(const struct blobs *blobs, const char *id, char ret[BUCKET_KEY]);
void object_removal_key(const struct blobs *blobs, const char *id,
                        char ret[BUCKET_KEY]);

/* Finds when an object was stored, by the bucket's time; 0 when there is none. */
bool object_find_moment(const struct bucket *bucket, const char *key, int64_t *ret,
                        int64_t *ret_now, struct api_problem *p);
/* Stores an object without bytes. */
bool object_put_empty(const struct bucket *bucket, const char *key, bool *ret_was_there,
                      struct api_problem *p);
/* Stores the file of a finished spool as the object of its blob. The caller holds no lock of the
   library. UNAVAILABLE. */
bool object_upload(struct blobs *blobs, const struct spool *spool,
                   struct api_problem *p);

#endif
