/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ground/base/tasks.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { BATCH = 512 }; /* tasks between two calls of progress */

struct batch {
    qdqi_task_fn fn;
    void *arg;
    size_t first;
    atomic_size_t failed; /* the first piece that failed; SIZE_MAX: none */
};

static void
run_one(void *arg, size_t i)
{
    struct batch *b = arg;
    struct qdq_error ignored = {0};
    size_t piece = b->first + i, failed = atomic_load(&b->failed);
    if (piece > failed || !b->fn(b->arg, piece, &ignored))
        return;
    while (piece < failed && !atomic_compare_exchange_weak(&b->failed, &failed, piece))
        ;
}

/* Does n pieces from b->first on. The pieces from the first failure on are done again by
   one thread, so that the error is that of the first one, whatever the others did. */
static enum qdq_code
run_batch(const struct qdqi_tasks *tasks, struct batch *b, size_t n,
          struct qdq_error *err)
{
    const struct qdq_executor *e = tasks->executor;
    size_t from = b->first;
    enum qdq_code code = QDQ_OK;
    if (e && tasks->threads > 1 && n > 1) {
        atomic_store(&b->failed, SIZE_MAX);
        e->run(e->arg, tasks->threads, n, run_one, b);
        from = atomic_load(&b->failed);
    }
    for (size_t i = from; i < b->first + n && !code; i++)
        code = b->fn(b->arg, i, err);
    return code;
}

enum qdq_code
qdqi_tasks_run(const struct qdqi_tasks *tasks, size_t n, qdqi_task_fn fn, void *arg,
               struct qdq_error *err)
{
    static const struct qdqi_tasks alone = {.threads = 1};
    struct batch b = {.fn = fn, .arg = arg};
    enum qdq_code code = QDQ_OK;
    if (!tasks)
        tasks = &alone;
    for (size_t m; b.first < n && !code; b.first += m) {
        m = n - b.first < BATCH ? n - b.first : BATCH;
        code = run_batch(tasks, &b, m, err);
        if (!code && tasks->progress)
            code = tasks->progress(tasks->progress_arg, b.first + m, n, err);
    }
    return code;
}

/* --- two tasks ------------------------------------------------------------ */

/* Its address tells one thread from another. */
static _Thread_local char of_this_thread;

struct both {
    void (*here)(void *arg), (*beside)(void *arg);
    void *arg;
    const char *caller;
    bool is_here_done; /* only the calling thread uses it */
    atomic_flag is_beside_taken;
};

/* Does the task of the thread that it runs on, if that is still to be done. */
static void
do_mine(void *arg, size_t i)
{
    struct both *b = arg;
    (void)i;
    if (b->caller != &of_this_thread) {
        if (!atomic_flag_test_and_set(&b->is_beside_taken))
            b->beside(b->arg);
    } else if (!b->is_here_done) {
        b->is_here_done = true;
        b->here(b->arg);
    }
}

/* The executor may give a thread both pieces, or none to the calling thread: the rest is
   then done at the end. */
void
qdqi_tasks_both(const struct qdqi_tasks *tasks, void (*here)(void *arg),
                void (*beside)(void *arg), void *arg)
{
    const struct qdq_executor *e = tasks->executor;
    struct both b = {.here = here,
                     .beside = beside,
                     .arg = arg,
                     .caller = &of_this_thread,
                     .is_beside_taken = ATOMIC_FLAG_INIT};
    if (e && tasks->threads > 1)
        e->run(e->arg, 2, 2, do_mine, &b);
    if (!atomic_flag_test_and_set(&b.is_beside_taken))
        beside(arg);
    if (!b.is_here_done)
        here(arg);
}
