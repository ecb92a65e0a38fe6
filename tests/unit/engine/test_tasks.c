/* SPDX-License-Identifier: Apache-2.0 */
/* Two tasks run at the same time, the first one on the calling thread, whatever an executor
   does with its pieces. */
#include "config.h"

#include "ground/base/tasks.h"
#include "unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

struct call {
    pthread_t here, beside;
    int n_here, n_beside;
    bool meet; /* each waits for the other one */
    sem_t of_here, of_beside;
};

static void
here(void *arg)
{
    struct call *c = arg;
    c->here = pthread_self();
    c->n_here++;
    sem_post(&c->of_here);
    if (c->meet)
        sem_wait(&c->of_beside);
}

static void
beside(void *arg)
{
    struct call *c = arg;
    c->beside = pthread_self();
    c->n_beside++;
    sem_post(&c->of_beside);
    if (c->meet)
        sem_wait(&c->of_here);
}

/* --- executors ------------------------------------------------------------ */

struct pieces {
    qdq_piece_fn piece;
    void *arg;
    size_t first, n;
};

static void *
do_pieces(void *arg)
{
    const struct pieces *p = arg;
    for (size_t i = p->first; i < p->n; i++)
        p->piece(p->arg, i);
    return NULL;
}

/* Does the pieces from *arg on on another thread, and those before on the calling one. */
static void
run(void *arg, int threads, size_t n, qdq_piece_fn piece, void *piece_arg)
{
    struct pieces others = {piece, piece_arg, *(const size_t *)arg, n};
    struct pieces mine = {piece, piece_arg, 0, others.first};
    pthread_t thread;
    ck_assert_int_eq(threads, 2);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, do_pieces, &others), 0);
    do_pieces(&mine);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* Does the first piece on another thread, and the second one on the calling thread. */
static void
run_swapped(void *arg, int threads, size_t n, qdq_piece_fn piece, void *piece_arg)
{
    struct pieces others = {piece, piece_arg, 0, 1}, mine = {piece, piece_arg, 1, n};
    pthread_t thread;
    (void)arg;
    (void)threads;
    ck_assert_int_eq(pthread_create(&thread, NULL, do_pieces, &others), 0);
    do_pieces(&mine);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* --- tests ---------------------------------------------------------------- */

static struct call
call_both(const struct qdq_executor *executor, int threads, bool meet)
{
    const struct qdqi_tasks tasks = {.executor = executor, .threads = threads};
    struct call c = {.meet = meet};
    ck_assert_int_eq(sem_init(&c.of_here, 0, 0), 0);
    ck_assert_int_eq(sem_init(&c.of_beside, 0, 0), 0);
    qdqi_tasks_both(&tasks, here, beside, &c);
    ck_assert_int_eq(c.n_here, 1);
    ck_assert_int_eq(c.n_beside, 1);
    ck_assert(pthread_equal(c.here, pthread_self()));
    return c;
}

UNIT_LOOP(two_tasks_run_at_the_same_time, 2)
{
    static const size_t first = 1;
    const struct qdq_executor executors[] = {{run, (void *)(uintptr_t)&first},
                                             {run_swapped, NULL}};
    struct call c = call_both(&executors[_i], 4, true);
    ck_assert(!pthread_equal(c.beside, pthread_self()));
}

/* The other thread gets no piece, or the calling one gets none. */
UNIT_LOOP(two_tasks_are_done_by_any_executor, 2)
{
    static const size_t firsts[] = {2, 0};
    const struct qdq_executor executor = {run, (void *)(uintptr_t)&firsts[_i]};
    struct call c = call_both(&executor, 2, false);
    ck_assert_int_eq(pthread_equal(c.beside, pthread_self()) != 0, _i == 0);
}

UNIT_LOOP(two_tasks_are_done_without_another_thread, 2)
{
    static const size_t first = 1;
    const struct qdq_executor executor = {run, (void *)(uintptr_t)&first};
    struct call c = call_both(_i ? &executor : NULL, _i ? 1 : 2, false);
    ck_assert(pthread_equal(c.beside, pthread_self()));
}

UNIT_SUITE("tasks")
