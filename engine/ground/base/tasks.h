/* SPDX-License-Identifier: Apache-2.0 */
/* Independent pieces of work, done at the same time by the threads that the engine's
   caller lends it. Results and errors do not depend on the number of threads. */
#ifndef QDQI_GROUND_BASE_TASKS_H
#define QDQI_GROUND_BASE_TASKS_H

#include "qdq/executor.h"

#include <stddef.h>

struct qdqi_tasks {
    const struct qdq_executor *executor; /* NULL: the calling thread does it all */
    int threads;                         /* at most so many at once, >= 1 */
    /* Called now and then on the calling thread, with the number of tasks that are done;
       an error ends the work. NULL: not called. */
    enum qdq_code (*progress)(void *arg, size_t done, size_t total,
                              struct qdq_error *err);
    void *progress_arg;
};

/* Does piece i. It shares no memory that changes with the other pieces, except atomics.
   When it fails it may be called again. */
typedef enum qdq_code (*qdqi_task_fn)(void *arg, size_t i, struct qdq_error *err);

/* Does pieces 0 … n - 1, all of them on the calling thread when `tasks` is NULL. When several
   pieces fail, the error of the first one is set. */
enum qdq_code qdqi_tasks_run(const struct qdqi_tasks *tasks, size_t n, qdqi_task_fn fn,
                             void *arg, struct qdq_error *err) QDQ_MUST_CHECK;

/* Calls here(arg) on the calling thread and beside(arg) on another one at the same time.
   Without another thread, both are called one after the other. */
void qdqi_tasks_both(const struct qdqi_tasks *tasks, void (*here)(void *arg),
                     void (*beside)(void *arg), void *arg);

#endif
