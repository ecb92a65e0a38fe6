/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/clock.h"
#include "library/inner.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 20 /* that an upload waits for the end of a removal */
#define LOOK_MS 100

void
object_key(const struct blobs *blobs, const char *id, char ret[BUCKET_KEY])
{
    snprintf(ret, BUCKET_KEY, "%.100s/%.64s", blobs->tenant, blob_hex(id));
}

void
object_mark_key(const struct blobs *blobs, const char *id, char ret[BUCKET_KEY])
{
    snprintf(ret, BUCKET_KEY, "%.100s/" MARKS "%.64s", blobs->tenant, blob_hex(id));
}

void
object_removal_key(const struct blobs *blobs, const char *id, char ret[BUCKET_KEY])
{
    snprintf(ret, BUCKET_KEY, "%.100s/" REMOVALS "%.64s", blobs->tenant, blob_hex(id));
}

/* The bucket's time of one object. */
struct moment {
    const char *key;
    int64_t modified; /* 0: there is no such object */
};

static void
note_moment(void *arg, const struct bucket_object *object)
{
    struct moment *moment = arg;
    if (strcmp(object->key, moment->key) == 0)
        moment->modified = object->modified;
}

bool
object_find_moment(const struct bucket *bucket, const char *key, int64_t *ret,
                   int64_t *ret_now, struct api_problem *p)
{
    struct moment moment = {key, 0};
    char token[BUCKET_TOKEN] = "";
    if (!bucket->list(bucket->arg, key, token, note_moment, &moment, ret_now, p))
        return false;
    *ret = moment.modified;
    return true;
}

bool
object_put_empty(const struct bucket *bucket, const char *key, bool *ret_was_there,
                 struct api_problem *p)
{
    char digest[DIGEST_SIZE];
    int fd = memfd_create("mark", MFD_CLOEXEC);
    if (fd < 0)
        return blobs_fail(p, "making a temporary file");
    bool ok = (digest_of("", 0, digest) || api_problem_no_memory(p)) &&
              bucket->put(bucket->arg, key, fd, digest, ret_was_there, p);
    close(fd);
    return ok;
}

/* Waits until no removal of the blob is announced. UNAVAILABLE when that takes too long. */
static bool
await_removal(struct blobs *blobs, const char *id, struct api_problem *p)
{
    const struct timespec pause = {0, LOOK_MS * 1000000};
    const struct bucket *bucket = blobs->bucket;
    int64_t began = clock_steady_ms(), since, now;
    char removal[BUCKET_KEY];
    object_removal_key(blobs, id, removal);
    for (;;) {
        if (!object_find_moment(bucket, removal, &since, &now, p))
            return false;
        if (!since || now - since > STALE_S)
            return true;
        if (clock_steady_ms() - began > PATIENCE_S * 1000)
            return api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                                   "an earlier copy of %s is being removed from the "
                                   "bucket",
                                   id);
        nanosleep(&pause, NULL);
    }
}

/* Makes sure that the object of a file, which was there, stays: takes its mark away, waits for a
   removal of it, and stores it again where it is gone. */
static bool
keep(struct blobs *blobs, const char *id, int fd, struct api_problem *p)
{
    const struct bucket *bucket = blobs->bucket;
    char key[BUCKET_KEY], mark[BUCKET_KEY];
    bool marked, there, was_there;
    object_key(blobs, id, key);
    object_mark_key(blobs, id, mark);
    return bucket->find(bucket->arg, mark, &marked, p) &&
           (!marked || bucket->remove(bucket->arg, mark, p)) &&
           await_removal(blobs, id, p) && bucket->find(bucket->arg, key, &there, p) &&
           (there || bucket->put(bucket->arg, key, fd, id, &was_there, p));
}

/* A note of damage says that the object has other bytes: then it is stored anew. */
bool
object_upload(struct blobs *blobs, const struct spool *spool, struct api_problem *p)
{
    lock_assert_none(LOCK_LIBRARY);
    const struct bucket *bucket = blobs->bucket;
    const char *id = spool_id(spool);
    char key[BUCKET_KEY];
    bool was_there = false;
    object_key(blobs, id, key);
    if (blobs_is_set_aside(blobs, id) && !bucket->remove(bucket->arg, key, p))
        return false;
    return bucket->put(bucket->arg, key, spool_fd(spool), id, &was_there, p) &&
           (!was_there || keep(blobs, id, spool_fd(spool), p));
}
