/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes with a rank in the order of locks.h. Builds of developers and with sanitizers
 * check that a thread acquires locks in that order, and that the caller of a function
 * that needs a lock holds it, or holds none where the function promises that. Every build checks that the thread that releases a lock
 * has acquired it. A check that fails ends the process; see check.h.
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
/* Destroys a lock that no thread holds. */
void lock_fini(struct lock *lock);

#define lock_acquire(lock) lock_acquire_at(lock, __FILE__, __LINE__)
#define lock_release(lock) lock_release_at(lock, __FILE__, __LINE__)
void lock_acquire_at(struct lock *lock, const char *file, int line);
void lock_release_at(struct lock *lock, const char *file, int line);

/*
 * Waits for `cond` and releases the lock meanwhile. May return without a notification,
 * like every condition variable: the caller checks its condition again.
 */
void lock_wait(struct lock *lock, pthread_cond_t *cond);
/* Waits likewise, but at most until `deadline_ms` of clock_steady_ms(). Returns
   false when that time has passed. `cond` was initialized by lock_cond_init(). */
bool lock_wait_until(struct lock *lock, pthread_cond_t *cond, int64_t deadline_ms);
void lock_cond_init(pthread_cond_t *cond);

/* Stands at the beginning of a function whose caller holds the lock. */
#ifdef QDQ_DEVELOPER_CHECKS
#define lock_assert_held(lock) lock_assert_held_at(lock, __FILE__, __LINE__)
#else
#define lock_assert_held(lock) ((void)(lock))
#endif
void lock_assert_held_at(const struct lock *lock, const char *file, int line);

/* Stands at the beginning of a function whose caller holds no lock of this kind, because the
   function acquires one or waits for long. */
#ifdef QDQ_DEVELOPER_CHECKS
#define lock_assert_none(rank) lock_assert_none_at(rank, __FILE__, __LINE__)
#else
#define lock_assert_none(rank) ((void)(rank))
#endif
void lock_assert_none_at(enum lock_rank rank, const char *file, int line);

#endif
