/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of a bucket (S3), one by one and by their keys. A handle keeps its connection,
 * so that many requests need one handshake.
 *
 * Errors and threads: as remote.h says; a handle belongs to one thread at a time.
 */
#ifndef REMOTE_BUCKET_H
#define REMOTE_BUCKET_H

#include "remote/remote.h"

#define QDQR_TOKEN 4096 /* most bytes of a list's token, with its NUL */

struct qdqr_bucket;

/* Opens a bucket, a remote of kind "s3". Borrows both arguments. No connection is made. */
bool qdqr_bucket_open(const struct qdqr_remote *remote, struct qdqr_call *call,
                      struct qdqr_bucket **ret, struct api_problem *problem);
void qdqr_bucket_close(struct qdqr_bucket **bucket);

/*
 * Stores a file under a key that has no object yet; `digest` ("sha256:...") is that of its
 * bytes. *ret_was_there: the key has an object, which stays as it is. A large file goes in
 * parts, after a look whether the object is there. A conflict with another upload of the key
 * (status 409) is tried again a few times.
 */
bool qdqr_object_put(struct qdqr_bucket *bucket, const char *key, int fd,
                     const char *digest, bool *ret_was_there,
                     struct api_problem *problem);
/* Writes an object to an empty file that is open for reading and writing. REMOTE_NOT_FOUND. */
bool qdqr_object_get(struct qdqr_bucket *bucket, const char *key, int fd,
                     struct api_problem *problem);
/* Returns in *ret_there whether a key has an object. */
bool qdqr_object_find(struct qdqr_bucket *bucket, const char *key, bool *ret_there,
                      struct api_problem *problem);
/* Removes an object. One that is not there is a success. */
bool qdqr_object_remove(struct qdqr_bucket *bucket, const char *key,
                        struct api_problem *problem);

/* A time by the bucket's clock. */
struct qdqr_while {
    int64_t since; /* seconds since 1970 */
    int seconds;
};

/* Does the same, if the request reaches the bucket within that time; afterwards the bucket refuses
   it, and *ret_in_time is false. */
bool qdqr_object_remove_by(struct qdqr_bucket *bucket, const char *key,
                           const struct qdqr_while *when, bool *ret_in_time,
                           struct api_problem *problem);

struct qdqr_object {
    const char *key;
    int64_t size;
    int64_t modified; /* seconds since 1970, of the bucket's clock */
};

typedef bool (*qdqr_object_fn)(void *arg, const struct qdqr_object *object,
                               struct api_problem *problem);

/*
 * Calls `visit` with the objects of one page of the list of keys that begin with `prefix`, in
 * their order, until it returns false. `token` is "" for the first page, and becomes that of
 * the next page, or "" behind the last one. *ret_now is the bucket's time.
 */
bool qdqr_object_list(struct qdqr_bucket *bucket, const char *prefix,
                      char token[QDQR_TOKEN], qdqr_object_fn visit, void *arg,
                      int64_t *ret_now, struct api_problem *problem);

#endif
