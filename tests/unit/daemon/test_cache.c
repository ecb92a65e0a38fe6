/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose blobs are in a bucket: the order of bytes and rows, the cache, and the removal
   by mark and grace period. The bucket is in memory, and the test sets its clock. */
#include "config.h"
#include "library/bucket/cache.h"
#include "library/library.h"
#include "daemon.h"
#include "settings/settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define MOST 32
#define GRACE_S 1000

/* --- the bucket ----------------------------------------------------------- */

static struct object {
    char key[BUCKET_KEY];
    char bytes[256];
    size_t size;
    int64_t modified;
} objects[MOST];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t now;
static atomic_int n_gets, n_puts;
static atomic_bool gone, slow;
static void (*before_remove)(void);
static void (*before_remove_by)(const char *key);
static void (*after_put)(const char *key);
static void (*before_list)(const char *prefix);

static struct object *
object_of(const char *key)
{
    for (size_t i = 0; i < MOST; i++)
        if (*objects[i].key && strcmp(objects[i].key, key) == 0)
            return &objects[i];
    return NULL;
}

static bool
has_object(const char *key)
{
    pthread_mutex_lock(&mutex);
    bool there = object_of(key);
    pthread_mutex_unlock(&mutex);
    return there;
}

static bool
say_gone(struct api_problem *p)
{
    return api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL, "it is gone");
}

static bool
put(void *arg, const char *key, int fd, const char *digest, bool *ret_was_there,
    struct api_problem *p)
{
    (void)arg, (void)digest;
    n_puts++;
    if (gone)
        return say_gone(p);
    pthread_mutex_lock(&mutex);
    struct object *object = object_of(key);
    *ret_was_there = object;
    for (size_t i = 0; !object && i < MOST; i++)
        if (!*objects[i].key)
            object = &objects[i];
    if (!*ret_was_there && object) {
        snprintf(object->key, sizeof object->key, "%s", key);
        object->size = (size_t)pread(fd, object->bytes, sizeof object->bytes, 0);
        object->modified = now;
    }
    pthread_mutex_unlock(&mutex);
    if (after_put)
        after_put(key);
    return true;
}

static bool
get(void *arg, const char *key, int fd, struct api_problem *p)
{
    const struct timespec while_others_ask = {0, 50000000};
    (void)arg;
    n_gets++;
    if (gone)
        return say_gone(p);
    if (slow)
        nanosleep(&while_others_ask, NULL);
    pthread_mutex_lock(&mutex);
    const struct object *object = object_of(key);
    bool ok =
        object && pwrite(fd, object->bytes, object->size, 0) == (ssize_t)object->size;
    pthread_mutex_unlock(&mutex);
    return ok || api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL, "no object");
}

static bool
find(void *arg, const char *key, bool *ret_there, struct api_problem *p)
{
    (void)arg;
    *ret_there = has_object(key);
    return !gone || say_gone(p);
}

static bool
remove_object(void *arg, const char *key, struct api_problem *p)
{
    void (*call)(void) = before_remove;
    (void)arg;
    if (gone)
        return say_gone(p);
    before_remove = NULL;
    if (call)
        call();
    pthread_mutex_lock(&mutex);
    struct object *object = object_of(key);
    if (object)
        object->key[0] = '\0';
    pthread_mutex_unlock(&mutex);
    return true;
}

static bool
remove_by(void *arg, const char *key, const struct bucket_while *when,
          bool *ret_in_time, struct api_problem *p)
{
    if (before_remove_by)
        before_remove_by(key);
    *ret_in_time = now <= when->since + when->seconds;
    return !*ret_in_time || remove_object(arg, key, p);
}

static bool
list(void *arg, const char *prefix, char token[BUCKET_TOKEN], bucket_visit_fn visit,
     void *visit_arg, int64_t *ret_now, struct api_problem *p)
{
    (void)arg;
    if (gone)
        return say_gone(p);
    if (before_list)
        before_list(prefix);
    token[0] = '\0';
    *ret_now = now;
    for (size_t i = 0; i < MOST; i++)
        if (*objects[i].key && strncmp(objects[i].key, prefix, strlen(prefix)) == 0)
            visit(visit_arg,
                  &(struct bucket_object){objects[i].key, (int64_t)objects[i].size,
                                          objects[i].modified});
    return true;
}

static bool
is_reachable(void *arg)
{
    (void)arg;
    return !gone;
}

/* --- the library ---------------------------------------------------------- */

static struct bucket bucket = {put,  get,          find, remove_object, remove_by,
                               list, is_reachable, NULL, NULL,          NULL};
static const struct library_place place = {.bucket = &bucket, .tenant = "t"};
static _Atomic int64_t most_bytes;
static struct library *library;
static struct settings settings;
static struct api_problem problem;

static void
reopen(void)
{
    library_close(&library);
    ck_assert_msg(library_open_at(scratch_path("state"), &place, &library, &problem),
                  "%s", problem.detail);
    sweep_configure(library, &settings);
}

static void
set_up(void)
{
    scratch_make();
    memset(objects, 0, sizeof objects);
    problem = (struct api_problem){0};
    settings = (struct settings){.retention_leftovers = GRACE_S};
    now = 1000000;
    most_bytes = 1 << 20;
    gone = slow = false;
    n_gets = n_puts = 0;
    before_remove = NULL;
    after_put = NULL;
    before_list = NULL;
    bucket.cache = cache_new(&most_bytes);
    ck_assert_ptr_nonnull(bucket.cache);
    reopen();
}

static void
tear_down(void)
{
    library_close(&library);
    cache_free(&bucket.cache);
    scratch_remove();
}

static bool
add(const char *text, char id[DIGEST_SIZE])
{
    struct store_file file = {0};
    struct spool *spool;
    bool is_new;
    ck_assert(spool_open(library_blobs(library), &spool, &problem));
    ck_assert(spool_write(spool, text, strlen(text), &problem));
    ck_assert(spool_finish(spool, &problem));
    snprintf(id, DIGEST_SIZE, "%s", spool_id(spool));
    bool ok = library_add(library, STORE_BLOB, &spool, NULL, &file, &is_new, &problem);
    spool_discard(&spool);
    store_file_fini(&file);
    return ok;
}

static void
key_of(const char *id, char ret[BUCKET_KEY])
{
    snprintf(ret, BUCKET_KEY, "t/%s", strchr(id, ':') + 1);
}

static void
mark_of(const char *id, char ret[BUCKET_KEY])
{
    snprintf(ret, BUCKET_KEY, "t/marks/%s", strchr(id, ':') + 1);
}

static bool
reads(const char *id, const char *wanted)
{
    char text[256] = "";
    int fd;
    problem = (struct api_problem){0};
    if (!blob_read(library_blobs(library), id, &fd, &problem))
        return false;
    bool same = read(fd, text, sizeof text) == (ssize_t)strlen(wanted) &&
                strcmp(text, wanted) == 0;
    close(fd);
    return same;
}

/* Sweeps when the bucket's clock says `at`. A new library looks at once. */
static void
sweep(int64_t at)
{
    bool more;
    now = at;
    reopen();
    ck_assert_msg(sweep_round(library, &settings, 0, &more, &problem), "%s",
                  problem.detail);
}

/* --- bytes before rows ---------------------------------------------------- */

UNIT_TEST(rows_follow_bytes)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY];
    gone = true;
    ck_assert(!add("a", id));
    ck_assert_int_eq(problem.code, API_UNAVAILABLE);
    ck_assert(!store_needs_blob(library_store(library), id));
    problem = (struct api_problem){0};
    gone = false;
    ck_assert(add("a", id));
    key_of(id, key);
    ck_assert(has_object(key));
    ck_assert(store_needs_blob(library_store(library), id));
}

/* --- the cache ------------------------------------------------------------ */

UNIT_TEST(files_are_fetched)
{
    char id[DIGEST_SIZE];
    ck_assert(add("abc", id));
    ck_assert(reads(id, "abc"));
    ck_assert_int_eq(n_gets, 0);
    ck_assert_int_eq(cache_evict(bucket.cache, 1), 3);
    ck_assert_int_eq(blobs_used(library_blobs(library)), 0);
    ck_assert(reads(id, "abc"));
    ck_assert(reads(id, "abc"));
    ck_assert_int_eq(n_gets, 1);
    cache_evict(bucket.cache, 1);
    gone = true;
    ck_assert(!reads(id, "abc"));
    ck_assert_int_eq(problem.code, API_UNAVAILABLE);
    gone = false;
    ck_assert(reads(id, "abc"));
}

static void *
read_one(void *arg)
{
    const char *id = arg;
    struct api_problem p = {0};
    int fd;
    bool ok = blob_read(library_blobs(library), id, &fd, &p);
    if (ok)
        close(fd);
    return ok ? arg : NULL;
}

UNIT_TEST(one_fetch_for_all)
{
    char id[DIGEST_SIZE];
    pthread_t threads[6];
    ck_assert(add("abc", id));
    cache_evict(bucket.cache, 1);
    slow = true;
    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_one, id), 0);
    for (size_t i = 0; i < 6; i++) {
        void *result;
        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        ck_assert_ptr_eq(result, id);
    }
    ck_assert_int_eq(n_gets, 1);
}

UNIT_TEST(files_in_use_stay)
{
    char used[DIGEST_SIZE], idle[DIGEST_SIZE];
    int fd, other;
    ck_assert(add("used", used));
    ck_assert(add("idle", idle));
    ck_assert(blob_read(library_blobs(library), used, &fd, &problem));
    other = dup(fd); /* as a worker has it */
    close(fd);
    ck_assert_int_eq(cache_evict(bucket.cache, 100), 4);
    ck_assert_int_eq(blobs_used(library_blobs(library)), 4);
    close(other);
    ck_assert_int_eq(cache_evict(bucket.cache, 100), 4);
}

UNIT_TEST(the_least_recently_used_goes)
{
    const struct timespec tick = {0, 20000000};
    char ids[3][DIGEST_SIZE];
    const char *const texts[] = {"0000", "1111", "2222"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert(add(texts[i], ids[i]));
        nanosleep(&tick, NULL);
    }
    ck_assert(reads(ids[0], "0000"));
    most_bytes = 8;
    ck_assert_int_eq(cache_evict(bucket.cache, 0), 4);
    ck_assert(reads(ids[0], "0000") && reads(ids[2], "2222"));
    ck_assert_int_eq(n_gets, 0);
    ck_assert(reads(ids[1], "1111"));
    ck_assert_int_eq(n_gets, 1);
    ck_assert_int_le(cache_used(bucket.cache), 8);
}

UNIT_TEST(wrong_bytes_come_in)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    object_of(key)->bytes[1] = 'x';
    cache_evict(bucket.cache, 1);
    ck_assert(!reads(id, "abc"));
    ck_assert_int_eq(problem.code, API_DAMAGED);
    ck_assert_int_eq(blobs_used(library_blobs(library)), 0);
    problem = (struct api_problem){0};
    ck_assert(add("abc", id));
    ck_assert_int_eq(object_of(key)->bytes[1], 'b');
    ck_assert(reads(id, "abc"));
}

/* --- removal -------------------------------------------------------------- */

static void
remove_row(const char *id)
{
    ck_assert(library_remove(library, STORE_BLOB, id, STORE_REQUEST, &problem));
}

UNIT_TEST(mark_and_grace)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY], mark[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    mark_of(id, mark);
    sweep(now + 10 * GRACE_S);
    ck_assert(has_object(key) && !has_object(mark));
    remove_row(id);
    ck_assert(has_object(key));
    sweep(now);
    ck_assert(has_object(key) && has_object(mark));
    sweep(now + GRACE_S - 1);
    ck_assert(has_object(key) && has_object(mark));
    sweep(now + 1);
    ck_assert(!has_object(key) && !has_object(mark));
}

/* Stores the blob of a mark anew, `late` after the mark. */
static void
store_again(int64_t late)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY], mark[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    mark_of(id, mark);
    remove_row(id);
    sweep(now + GRACE_S);
    ck_assert(has_object(mark));
    now += late;
    ck_assert(add("abc", id));
    ck_assert(has_object(key) && !has_object(mark));
    sweep(now + 3 * GRACE_S);
    ck_assert(has_object(key) && !has_object(mark));
}

UNIT_TEST(stored_again_early)
{
    store_again(1);
}

UNIT_TEST(stored_again_late)
{
    store_again(GRACE_S - 1);
}

static void
remove_the_object(void)
{
    for (size_t i = 0; i < MOST; i++)
        if (!strstr(objects[i].key, "marks") && !strstr(objects[i].key, "record"))
            objects[i].key[0] = '\0';
}

/* Another node removes the object at the worst moment: between the upload that found it there and
   the row. */
UNIT_TEST(removed_while_stored)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    remove_row(id);
    sweep(now + GRACE_S);
    now += GRACE_S;
    before_remove = remove_the_object;
    ck_assert(add("abc", id));
    ck_assert(has_object(key));
    cache_evict(bucket.cache, 1);
    ck_assert(reads(id, "abc"));
}

/* Stores an object of another node. */
static void
put_other(const char *key)
{
    size_t i = 0;
    while (*objects[i].key)
        i++;
    objects[i] = (struct object){.modified = now};
    snprintf(objects[i].key, sizeof objects[i].key, "%s", key);
}

/* Ends the removal of another node when it is looked for the third time. */
static void
end_removal(const char *prefix)
{
    static int n;
    if (!strstr(prefix, "/removals/") || ++n % 3)
        return;
    remove_the_object(); /* and the announcement */
}

/* However long the other node's removal takes, the object is there afterwards. */
UNIT_TEST(a_slow_removal_is_waited_for)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY], removal[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    remove_row(id);
    sweep(now + GRACE_S);
    now += GRACE_S;
    snprintf(removal, sizeof removal, "t/removals/%s", strchr(id, ':') + 1);
    put_other(removal);
    before_list = end_removal;
    ck_assert(add("abc", id));
    ck_assert(has_object(key) && !has_object(removal));
}

/* An upload did not want to wait for the other node's removal, and took the mark with it. The
   next one waits. */
UNIT_TEST(a_slow_removal_without_a_mark)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY], removal[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    remove_row(id);
    snprintf(removal, sizeof removal, "t/removals/%s", strchr(id, ':') + 1);
    put_other(removal);
    before_list = end_removal;
    ck_assert(add("abc", id));
    ck_assert(has_object(key) && !has_object(removal));
}

static void
remove_what_was_put(const char *key)
{
    after_put = NULL;
    (void)key;
    remove_the_object();
}

/* The other node's removal ends, with that of the mark, when the upload has found the object. */
UNIT_TEST(removed_before_the_mark_is_looked_for)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    remove_row(id);
    after_put = remove_what_was_put;
    ck_assert(add("abc", id));
    ck_assert(has_object(key));
}

/* The announcement of a daemon that died delays nobody. */
UNIT_TEST(a_stale_removal)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY], removal[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    remove_row(id);
    sweep(now + GRACE_S);
    snprintf(removal, sizeof removal, "t/removals/%s", strchr(id, ':') + 1);
    put_other(removal);
    sweep(now + GRACE_S);
    ck_assert(has_object(key) && !has_object(removal));
    sweep(now + GRACE_S);
    ck_assert(!has_object(key) && !has_object(removal));
    ck_assert(add("abc", id));
    remove_row(id);
    sweep(now + GRACE_S);
    put_other(removal);
    now += GRACE_S;
    ck_assert(add("abc", id));
    ck_assert(has_object(key) && has_object(removal));
    sweep(now + GRACE_S);
    ck_assert(has_object(key) && !has_object(removal));
}

/* Stands still before the object is removed, until the announcement is stale; the blob is stored
   meanwhile. */
static void
stand_still(const char *key)
{
    char id[DIGEST_SIZE];
    before_remove_by = NULL;
    ck_assert(!strstr(key, "/removals/"));
    now += 61;
    ck_assert(add("abc", id));
}

/* A daemon that wakes between its last check and its request removes nothing. */
UNIT_TEST(a_late_removal_is_refused)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    remove_row(id);
    sweep(now + GRACE_S);
    before_remove_by = stand_still;
    sweep(now + GRACE_S);
    ck_assert(!before_remove_by && has_object(key));
    for (int i = 0; i < 4; i++)
        sweep(now + GRACE_S);
    ck_assert(has_object(key));
    for (size_t i = 0; i < MOST; i++)
        ck_assert(!strstr(objects[i].key, "/removals/"));
}

static void
unmark_by_another_node(const char *key)
{
    if (!strstr(key, "/removals/"))
        return;
    for (size_t i = 0; i < MOST; i++)
        if (strstr(objects[i].key, "/marks/"))
            objects[i].key[0] = '\0';
}

/* Another node stores the blob when its removal has just been announced. */
UNIT_TEST(unmarked_after_the_announcement)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    remove_row(id);
    sweep(now + GRACE_S);
    after_put = unmark_by_another_node;
    sweep(now + GRACE_S);
    ck_assert(has_object(key));
    for (size_t i = 0; i < MOST; i++)
        ck_assert(!strstr(objects[i].key, "/removals/"));
}

/* A daemon that died between the removal of an object and that of its mark. */
UNIT_TEST(an_old_mark)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY], mark[BUCKET_KEY];
    ck_assert(add("abc", id));
    key_of(id, key);
    mark_of(id, mark);
    remove_row(id);
    sweep(now + GRACE_S);
    ck_assert(has_object(mark));
    object_of(key)->modified =
        now + GRACE_S; /* stored after that removal, without a row yet */
    sweep(now + GRACE_S);
    ck_assert(has_object(key) && !has_object(mark));
}

UNIT_TEST(another_database)
{
    char id[DIGEST_SIZE], key[BUCKET_KEY], path[128];
    ck_assert(add("abc", id));
    key_of(id, key);
    sweep(now);
    library_close(&library);
    snprintf(path, sizeof path, "%s", scratch_path("other"));
    ck_assert(library_open_at(path, &place, &library, &problem));
    for (int i = 0; i < 3; i++) {
        bool more;
        now += 2 * GRACE_S;
        ck_assert(sweep_round(library, &settings, 0, &more, &problem));
        ck_assert(has_object(key));
    }
}

UNIT_SUITE("cache", .setup = set_up, .teardown = tear_down)
