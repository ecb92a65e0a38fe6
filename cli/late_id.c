/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "late_id.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "threads/executor.h"

struct late_id {
    const struct external *external;
    int model;
    const char *path;
    pthread_t thread;
    bool running, done, ok;
    atomic_bool computes; /* on the other thread */
    char id[DIGEST_SIZE];
    struct api_problem problem;
};

static void *
compute(void *arg)
{
    struct late_id *late = arg;
    late->ok = digest_file(late->model, late->path, late->id, &late->problem) &&
               external_digest(late->external, late->model, late->path, late->id,
                               &late->problem);
    atomic_store(&late->computes, false);
    return NULL;
}

struct late_id *
late_id_start(const struct external *external, int model, const char *path)
{
    struct late_id *late = calloc(1, sizeof *late);
    if (!late)
        return NULL;
    late->external = external;
    late->model = model;
    late->path = path;
    atomic_init(&late->computes, true);
    late->running = pthread_create(&late->thread, NULL, compute, late) == 0;
    if (!late->running)
        atomic_store(&late->computes, false);
    return late;
}

const char *
late_id_wait(void *arg)
{
    struct late_id *late = arg;
    if (late->running)
        pthread_join(late->thread, NULL);
    else if (!late->done)
        compute(late);
    late->running = false;
    late->done = true;
    return late->ok ? late->id : NULL;
}

bool
late_id_failed(struct late_id *late, struct api_problem *problem)
{
    if (late_id_wait(late))
        return false;
    *problem = late->problem;
    return true;
}

static void
run_beside(void *arg, int threads, size_t n, qdq_piece_fn piece, void *piece_arg)
{
    const struct late_id *late = arg;
    const int others = threads > 1 && atomic_load(&late->computes) ? 1 : 0;
    threads_executor.run(threads_executor.arg, threads - others, n, piece, piece_arg);
}

struct qdq_executor
late_id_executor(struct late_id *late)
{
    return (struct qdq_executor){run_beside, late};
}

void
late_id_free(struct late_id **late)
{
    if (!late || !*late)
        return;
    if ((*late)->running)
        pthread_join((*late)->thread, NULL);
    free(*late);
    *late = NULL;
}
