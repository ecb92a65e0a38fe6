/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket that keeps the blobs instead of the local folder. The functions are those of
 * carriers/bucket.h, which has processes that may open connections; this folder may not.
 *
 * Keys: TENANT/HEX is a blob, with "_" for the tenant without a name, and TENANT/marks/HEX
 * says since when no row names that blob, TENANT/removals/HEX that it is being removed
 * (sweep/bucket_objects.c). TENANT/record/NUMBER names the database whose rows they are.
 *
 * Errors: UNAVAILABLE when the bucket cannot be used at this moment, whatever the reason.
 * Any thread may call. A caller holds no lock of the library or the record.
 */
#ifndef QDQD_LIBRARY_BUCKET_BUCKET_H
#define QDQD_LIBRARY_BUCKET_BUCKET_H

#include "api/digest.h"
#include "api/problem.h"

#include <stdatomic.h>

#define BUCKET_KEY 192
#define BUCKET_TOKEN 4096

struct cache;

enum bucket_op {
    BUCKET_PUT,
    BUCKET_GET,
    BUCKET_FIND,
    BUCKET_REMOVE,
    BUCKET_LIST,
    BUCKET_N_OPS
};

/* The requests to the bucket since the start. Any thread counts and reads. */
struct bucket_figures {
    atomic_int_fast64_t requests[BUCKET_N_OPS]; /* one that was repeated counts once */
    atomic_int_fast64_t failed[BUCKET_N_OPS];   /* of these, without an answer */
    atomic_int_fast64_t
        us[BUCKET_N_OPS];               /* time of all, with their wait for a process */
    atomic_int_fast64_t sent, received; /* bytes of objects */
};

struct bucket_object {
    const char *key;
    int64_t size, modified; /* bytes; seconds since 1970, of the bucket's clock */
};

/* A time by the bucket's clock. */
struct bucket_while {
    int64_t since; /* seconds since 1970 */
    int seconds;
};

typedef void (*bucket_visit_fn)(void *arg, const struct bucket_object *object);

struct bucket {
    /* Stores a file under a key, unless the key has an object: *ret_was_there. */
    bool (*put)(void *arg, const char *key, int fd, const char *digest,
                bool *ret_was_there, struct api_problem *p);
    /* Writes an object to an empty file. NOT_FOUND. */
    bool (*get)(void *arg, const char *key, int fd, struct api_problem *p);
    bool (*find)(void *arg, const char *key, bool *ret_there, struct api_problem *p);
    /* Removes an object, if it is there. */
    bool (*remove)(void *arg, const char *key, struct api_problem *p);
    /* Does the same within that time; afterwards the bucket refuses it, however late the request
       reaches it: *ret_in_time. */
    bool (*remove_by)(void *arg, const char *key, const struct bucket_while *when,
                      bool *ret_in_time, struct api_problem *p);
    /* Visits one page of the keys that begin with `prefix`, in their order; `token` is ""
       for the first page and behind the last one. *ret_now is the bucket's time. */
    bool (*list)(void *arg, const char *prefix, char token[BUCKET_TOKEN],
                 bucket_visit_fn visit, void *visit_arg, int64_t *ret_now,
                 struct api_problem *p);
    /* Returns whether the last request was answered. */
    bool (*is_reachable)(void *arg);
    void *arg;
    struct cache *cache; /* of all tenants; the owner of the bucket frees it */
    const struct bucket_figures *figures; /* likewise */
};

#endif
