/* SPDX-License-Identifier: Apache-2.0 */
/* A failed check ends its process with one line that names it. This program compiles
   the locks with all of their checks, whatever the build. */
#include "config.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/lock.h"
#include "apart.h"

static struct lock jobs, other_jobs, store;

static void
set_up(void)
{
    lock_init(&jobs, LOCK_JOBS);
    lock_init(&other_jobs, LOCK_JOBS);
    lock_init(&store, LOCK_STORE);
}

/* --- checks that fail, and some that hold --------------------------------- */

static void
fails(void)
{
    int two = 2;
    QDQD_CHECK(two + two == 5);
}

static void
holds(void)
{
    int two = 2;
    QDQD_CHECK(two + two == 4);
}

static void
needs_lock(void)
{
    lock_assert_held(&jobs);
}

static void
calls_without_lock(void)
{
    lock_acquire(&store);
    needs_lock();
}

static void
calls_after_release(void)
{
    lock_acquire(&jobs);
    lock_release(&jobs);
    needs_lock();
}

static void
calls_with_lock(void)
{
    lock_acquire(&jobs);
    lock_acquire(&store);
    needs_lock();
    lock_release(&jobs); /* locks may be released in any order */
    lock_assert_held(&store);
    lock_release(&store);
    lock_acquire(&jobs);
    needs_lock();
    lock_release(&jobs);
    lock_fini(&jobs);
}

static void
needs_no_lock(void)
{
    lock_assert_none(LOCK_JOBS);
}

static void
calls_with_a_lock_of_the_kind(void)
{
    lock_acquire(&other_jobs);
    lock_acquire(&store);
    needs_no_lock();
}

static void
calls_with_a_lock_of_another_kind(void)
{
    needs_no_lock();
    lock_acquire(&jobs);
    lock_release(&jobs);
    lock_acquire(&store);
    needs_no_lock();
    lock_release(&store);
}

static void
acquires_out_of_order(void)
{
    lock_acquire(&store);
    lock_acquire(&jobs);
}

static void
acquires_two_of_a_kind(void)
{
    lock_acquire(&jobs);
    lock_acquire(&other_jobs);
}

static void
acquires_twice(void)
{
    lock_acquire(&jobs);
    lock_acquire(&jobs);
}

static void
releases_without_lock(void)
{
    lock_release(&jobs);
}

static void *
acquire(void *lock)
{
    lock_acquire((struct lock *)lock);
    return NULL;
}

static void
releases_anothers_lock(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, acquire, &jobs);
    pthread_join(thread, NULL);
    lock_release(&jobs);
}

static void
ends_a_lock_that_is_held(void)
{
    lock_acquire(&jobs);
    lock_fini(&jobs);
}

static void
waits_without_lock(void)
{
    pthread_cond_t cond;
    lock_cond_init(&cond);
    lock_wait_until(&jobs, &cond, clock_steady_ms() + 10);
}

static void
waits_with_lock(void)
{
    pthread_cond_t cond;
    lock_cond_init(&cond);
    lock_acquire(&jobs);
    ck_assert(!lock_wait_until(&jobs, &cond, clock_steady_ms() + 10));
    needs_lock();
    lock_release(&jobs);
}

/* --- rows of the tests ---------------------------------------------------- */

static const struct {
    void (*run)(void);
    const char *check; /* the check's name in the log; NULL: none fails */
} rows[] = {
    {fails, "\"two + two == 5\""},
    {holds, NULL},
    {calls_without_lock, "\"lock jobs is held\""},
    {calls_after_release, "\"lock jobs is held\""},
    {calls_with_lock, NULL},
    {calls_with_a_lock_of_the_kind, "\"no lock jobs is held\""},
    {calls_with_a_lock_of_another_kind, NULL},
    {acquires_out_of_order, "\"lock jobs is acquired while store is held\""},
    {acquires_two_of_a_kind, "\"lock jobs is acquired while jobs is held\""},
    {acquires_twice, "\"lock jobs is acquired while jobs is held\""},
    {releases_without_lock, "\"lock jobs can be released by this thread\""},
    {releases_anothers_lock, "\"lock jobs can be released by this thread\""},
    {ends_a_lock_that_is_held, "\"!error\""},
    {waits_without_lock, "\"lock jobs is held\""},
    {waits_with_lock, NULL},
};

UNIT_ROWS(ends, rows)
{
    apart_expect(rows[_i].run, rows[_i].check);
}

UNIT_SUITE("daemon/check", .setup = set_up)
