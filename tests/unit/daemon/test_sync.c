/* SPDX-License-Identifier: Apache-2.0 */
/* Group commit: which changes are on the disk when a call returns, and how many
   calls share a sync. */
#include "config.h"
#include "store/store.h"
#include "daemon.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define CLIENTS 16

static struct store *store;
static struct api_problem problem;
static atomic_int syncs, failing;
/* jobs that the threads have added, and those that a sync waits for */
static atomic_int n_added, awaited;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

/* Stands for a disk whose sync takes 20 ms, and longer until all awaited jobs are added. */
int
__wrap_fdatasync(int fd)
{
    const struct timespec a_while = {0, 20 * 1000000};
    do
        nanosleep(&a_while, NULL);
    while (n_added < awaited);
    if (atomic_fetch_sub(&failing, 1) > 0) {
        errno = EIO;
        return -1;
    }
    atomic_fetch_add(&syncs, 1);
    return __real_fdatasync(fd);
}

static void
set_up(void)
{
    scratch_make();
    failing = n_added = awaited = 0;
    ck_assert(store_open(scratch_path("db"), &store, &problem));
    syncs = 0;
}

static void
tear_down(void)
{
    store_close(&store);
    scratch_remove();
}

static void
add_file(const char *id)
{
    struct store_file file = {.created_at = 1};
    struct api_problem p = {0};
    bool is_new;
    snprintf(file.id, sizeof file.id, "%s", id);
    ck_assert(store_file_add(store, STORE_MODEL, &file, &is_new, &p));
}

static void
add_job(const char *id)
{
    static char model[] = "m";
    struct store_job job = {.created_at = 1, .model = model};
    struct api_problem p = {0};
    enum store_added added;
    snprintf(job.id, sizeof job.id, "%s", id);
    ck_assert(store_job_add(store, &job, &(struct store_asking){0}, &added, &p));
}

static void *
send_one(void *arg)
{
    struct api_problem p = {0};
    int before = syncs;
    add_job(arg);
    n_added++;
    ck_assert(store_sync(store, &p));
    ck_assert_int_gt(syncs, before);
    return NULL;
}

UNIT_TEST(shared)
{
    pthread_t threads[CLIENTS];
    char ids[CLIENTS][16];
    add_file("m");
    awaited = CLIENTS;
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(ids[i], sizeof ids[i], "j%d", i);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, send_one, ids[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    /* Jobs that came during the first sync share the second one. */
    ck_assert_int_ge(syncs, 1);
    ck_assert_int_le(syncs, 2);
}

UNIT_TEST(no_more_than_needed)
{
    struct store_job job = {0};
    bool any, was;
    ck_assert(store_sync(store, &problem));
    ck_assert_int_eq(syncs, 0);
    add_file("m");
    add_job("a");
    ck_assert_int_eq(syncs, 0);
    ck_assert(store_sync(store, &problem) && store_sync(store, &problem));
    ck_assert_int_eq(syncs, 1);
    /* A claim is not synced, because no client is told of it. */
    ck_assert(store_job_claim(store, 1, true, &job, &any, &problem) && any);
    store_job_fini(&job);
    ck_assert_int_eq(syncs, 1);
    /* These calls have synced when they return. */
    ck_assert(store_job_requeue(store, "a", 0, 0, &was, &problem) && was);
    ck_assert_int_eq(syncs, 2);
    add_file("other");
    ck_assert(store_file_remove(store, STORE_MODEL, "other", STORE_REQUEST, &problem));
    ck_assert_int_eq(syncs, 3);
    ck_assert(!store_file_remove(store, STORE_MODEL, "other", STORE_REQUEST, &problem));
    ck_assert_int_eq(syncs, 3);
}

UNIT_TEST(disk_fails)
{
    add_file("m");
    failing = 1;
    ck_assert(!store_sync(store, &problem));
    ck_assert_int_eq(problem.code, API_IO);
    ck_assert_int_eq(syncs, 0);
    /* The failed sync is not lost: the next one makes up for it. */
    problem = (struct api_problem){0};
    ck_assert(store_sync(store, &problem));
    ck_assert_int_eq(syncs, 1);
}

static void *
try_one(void *arg)
{
    struct api_problem p = {0};
    bool *ok = arg;
    *ok = store_sync(store, &p);
    ck_assert(*ok != p.set);
    return NULL;
}

/* All calls that shared the failed sync get the error, and none waits forever. */
UNIT_TEST(disk_fails_for_many)
{
    pthread_t threads[CLIENTS];
    bool ok[CLIENTS];
    int n = 0;
    add_file("m");
    failing = 1000;
    for (int i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, try_one, &ok[i]), 0);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        n += ok[i];
    }
    ck_assert_int_eq(n, 0);
    failing = 0;
}

/* Adds 3000 files, which write more than 30 MiB to the log. Returns its length. */
static int64_t
fill_log(bool waits)
{
    struct stat st;
    char id[16];
    for (int i = 0; i < 3000; i++) {
        snprintf(id, sizeof id, "f%d", i);
        add_file(id);
        ck_assert(!waits || i % 20 || store_sync(store, &problem));
    }
    ck_assert_int_eq(stat(scratch_path("db-wal"), &st), 0);
    return st.st_size;
}

/* A thread that has waited for the disk moves the log into the database. */
UNIT_TEST(log_stays_short)
{
    ck_assert_int_lt(fill_log(true), 13 << 20);
}

/* Without such a thread a commit does so. */
UNIT_TEST(log_has_a_limit)
{
    ck_assert_int_lt(fill_log(false), 26 << 20);
    ck_assert(store_sync(store, &problem));
}

UNIT_SUITE("daemon/sync", .setup = set_up, .teardown = tear_down)
