/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "late_id.h"

#include <pthread.h>
#include <stdlib.h>

struct late_id {
    const struct external *external;
    int model;
    const char *path;
    pthread_t thread;
    bool running, done, ok;
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
    late->running = pthread_create(&late->thread, NULL, compute, late) == 0;
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
