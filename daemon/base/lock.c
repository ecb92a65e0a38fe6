/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/lock.h"
#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static const char *const names[N_LOCK_RANKS] = {
#define LOCK(name, text) [LOCK_##name] = text,
#include "base/locks.h"
#undef LOCK
};

/* --- the locks of this thread --------------------------------------------- */

#ifdef QDQ_DEVELOPER_CHECKS

/* The locks that this thread holds, in the order in which it acquired them, which is
   also that of their ranks. */
static _Thread_local struct {
    const struct lock *locks[N_LOCK_RANKS];
    size_t n;
} held;

static bool
is_held(const struct lock *lock)
{
    for (size_t i = 0; i < held.n; i++)
        if (held.locks[i] == lock)
            return true;
    return false;
}

static void
fail_order(const struct lock *lock, const struct lock *before, const char *file,
           int line)
{
    char text[128];
    snprintf(text, sizeof text, "lock %s is acquired while %s is held",
             names[lock->rank], names[before->rank]);
    check_failed(text, file, line);
}

/* Checks the order before the thread waits for the lock, because a wait against the
   order may never end. */
static void
check_order(const struct lock *lock, const char *file, int line)
{
    const struct lock *last = held.n ? held.locks[held.n - 1] : NULL;
    if (last && last->rank >= lock->rank)
        fail_order(lock, last, file, line);
}

static void
note_acquired(const struct lock *lock)
{
    held.locks[held.n++] = lock;
}

static void
note_released(const struct lock *lock)
{
    size_t i = 0;
    while (i < held.n && held.locks[i] != lock)
        i++;
    if (i == held.n)
        return; /* not held: the unlock that follows reports it */
    for (held.n--; i < held.n; i++)
        held.locks[i] = held.locks[i + 1];
}

void
lock_assert_held_at(const struct lock *lock, const char *file, int line)
{
    char text[64];
    if (is_held(lock))
        return;
    snprintf(text, sizeof text, "lock %s is held", names[lock->rank]);
    check_failed(text, file, line);
}

void
lock_assert_none_at(enum lock_rank rank, const char *file, int line)
{
    char text[64];
    for (size_t i = 0; i < held.n; i++)
        if (held.locks[i]->rank == rank) {
            snprintf(text, sizeof text, "no lock %s is held", names[rank]);
            check_failed(text, file, line);
        }
}

#else

static void
check_order(const struct lock *lock, const char *file, int line)
{
    (void)lock;
    (void)file;
    (void)line;
}

static void
note_acquired(const struct lock *lock)
{
    (void)lock;
}

static void
note_released(const struct lock *lock)
{
    (void)lock;
}

#endif

/* --- locks ---------------------------------------------------------------- */

void
lock_init(struct lock *lock, enum lock_rank rank)
{
    pthread_mutexattr_t attr;
    lock->rank = rank;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    int error = pthread_mutex_init(&lock->mutex, &attr);
    pthread_mutexattr_destroy(&attr);
    QDQD_CHECK(!error);
}

void
lock_fini(struct lock *lock)
{
    int error = pthread_mutex_destroy(&lock->mutex);
    QDQD_CHECK(!error);
}

/* Ends the process when a mutex function failed, because this thread holds the mutex
   already or does not hold it. */
static void
check_mutex(const struct lock *lock, int error, const char *done, const char *file,
            int line)
{
    char text[96];
    if (!error)
        return;
    snprintf(text, sizeof text, "lock %s can be %s by this thread", names[lock->rank],
             done);
    check_failed(text, file, line);
}

void
lock_acquire_at(struct lock *lock, const char *file, int line)
{
    check_order(lock, file, line);
    check_mutex(lock, pthread_mutex_lock(&lock->mutex), "acquired", file, line);
    note_acquired(lock);
}

void
lock_release_at(struct lock *lock, const char *file, int line)
{
    note_released(lock);
    check_mutex(lock, pthread_mutex_unlock(&lock->mutex), "released", file, line);
}

/* --- conditions ----------------------------------------------------------- */

void
lock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

void
lock_wait(struct lock *lock, pthread_cond_t *cond)
{
    lock_assert_held(lock);
    int error = pthread_cond_wait(cond, &lock->mutex);
    QDQD_CHECK(!error);
}

bool
lock_wait_until(struct lock *lock, pthread_cond_t *cond, int64_t deadline_ms)
{
    struct timespec until = {deadline_ms / 1000, deadline_ms % 1000 * 1000000};
    lock_assert_held(lock);
    int error = pthread_cond_timedwait(cond, &lock->mutex, &until);
    QDQD_CHECK(!error || error == ETIMEDOUT);
    return !error;
}
