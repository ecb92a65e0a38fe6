/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that know their place in the order of locks.h. Builds of developers and with
 * sanitizers check that order, and that a function which needs a lock was called with it;
 * every build checks that a lock is released by the thread that acquired it. A check that
 * fails ends the process; see check.h.
 */
#ifndef QDQD_BASE_LOCK_H
#define QDQD_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum lock_rank {
#define LOCK(name, text) LOCK_##name,
#include "base/locks.h"
#undef LOCK
    N_LOCK_RANKS
};

struct lock {
    pthread_mutex_t mutex;
    enum lock_rank rank;
};

void lock_init(struct lock *lock, enum lock_rank rank);
/* Nobody holds it. */
void lock_fini(struct lock *lock);

#define lock_acquire(lock) lock_acquire_at(lock, __FILE__, __LINE__)
#define lock_release(lock) lock_release_at(lock, __FILE__, __LINE__)
void lock_acquire_at(struct lock *lock, const char *file, int line);
void lock_release_at(struct lock *lock, const char *file, int line);

/* Releases the lock while it waits for `cond`, which it may also do for no reason. */
void lock_wait(struct lock *lock, pthread_cond_t *cond);
/* The same, until a time of clock_steady_ms() at most. False: that is over. `cond` was
   made by lock_cond_init(). */
bool lock_wait_until(struct lock *lock, pthread_cond_t *cond, int64_t deadline_ms);
void lock_cond_init(pthread_cond_t *cond);

/* Stands at the begin of a function whose caller holds the lock. */
#ifdef QDQ_DEVELOPER_CHECKS
#define lock_assert_held(lock) lock_assert_held_at(lock, __FILE__, __LINE__)
#else
#define lock_assert_held(lock) ((void)(lock))
#endif
void lock_assert_held_at(const struct lock *lock, const char *file, int line);

#endif
