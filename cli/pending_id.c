/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pending_id.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "kept/digests.h"
#include "threads/executor.h"

struct pending_id {
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
    struct pending_id *pending = arg;
    pending->ok =
        kept_digest(pending->model, pending->path, pending->id, &pending->problem) &&
        external_digest(pending->external, pending->model, pending->path, pending->id,
                        kept_digest, &pending->problem);
    atomic_store(&pending->computes, false);
    return NULL;
}

struct pending_id *
pending_id_start(const struct external *external, int model, const char *path)
{
    struct pending_id *pending = calloc(1, sizeof *pending);
    if (!pending)
        return NULL;
    pending->external = external;
    pending->model = model;
    pending->path = path;
    atomic_init(&pending->computes, true);
    pending->running = pthread_create(&pending->thread, NULL, compute, pending) == 0;
    if (!pending->running)
        atomic_store(&pending->computes, false);
    return pending;
}

const char *
pending_id_wait(void *arg)
{
    struct pending_id *pending = arg;
    if (pending->running)
        pthread_join(pending->thread, NULL);
    else if (!pending->done)
        compute(pending);
    pending->running = false;
    pending->done = true;
    return pending->ok ? pending->id : NULL;
}

bool
pending_id_failed(struct pending_id *pending, struct api_problem *problem)
{
    if (pending_id_wait(pending))
        return false;
    *problem = pending->problem;
    return true;
}

static void
run_beside(void *arg, int threads, size_t n, qdq_piece_fn piece, void *piece_arg)
{
    const struct pending_id *pending = arg;
    const int others = threads > 1 && atomic_load(&pending->computes) ? 1 : 0;
    threads_executor.run(threads_executor.arg, threads - others, n, piece, piece_arg);
}

struct qdq_executor
pending_id_executor(struct pending_id *pending)
{
    return (struct qdq_executor){run_beside, pending};
}

void
pending_id_free(struct pending_id **pending)
{
    if (!pending || !*pending)
        return;
    if ((*pending)->running)
        pthread_join((*pending)->thread, NULL);
    free(*pending);
    *pending = NULL;
}
