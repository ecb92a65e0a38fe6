/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/backends.h"
#include "base/lock.h"
#include "settings/gpu_list.h"
#include "settings/settings.h"
#include "api/version.h"
#include "qdq/runtime.h"

#include <stdlib.h>

struct backends {
    struct lock lock;
    /* the text of api_backends_encode(); NULL until it is known. Guarded by lock */
    char *found;
};

struct backends *
backends_new(void)
{
    struct backends *backends = calloc(1, sizeof *backends);
    if (backends)
        lock_init(&backends->lock, LOCK_BACKENDS);
    return backends;
}

void
backends_free(struct backends **backends)
{
    if (!*backends)
        return;
    lock_fini(&(*backends)->lock);
    free((*backends)->found);
    free(*backends);
    *backends = NULL;
}

static const char *
path_of(const char *setting)
{
    return *setting ? setting : NULL;
}

/* Returns a worker's description of a GPU, or the reason why there is none. */
static char *
ask_gpu(const struct settings *settings, int gpu, backends_ask_fn ask, void *arg)
{
    const struct message request = {.type = MESSAGE_DEVICE};
    struct api_problem problem = {0};
    char *text = NULL;
    if (ask(arg, gpu, &request, &text, &problem))
        return text;
    return api_gpu_encode(&(struct api_gpu){.index = gpu,
                                            .module = path_of(settings->gpu_module),
                                            .problem = problem.detail});
}

static char *
ask_runtime(const struct settings *settings, backends_ask_fn ask, void *arg)
{
    const struct message request = {.type = MESSAGE_RUNTIME};
    struct api_problem problem = {0};
    char *text = NULL;
    if (ask(arg, GPUS_NONE, &request, &text, &problem))
        return text;
    return api_runtime_encode(path_of(settings->engine_runtime), NULL, problem.detail);
}

static char *
ask_judge(const struct settings *settings, const struct qdq_runtime_row *row,
          backends_judge_fn ask, void *arg)
{
    char why[JUDGES_WHY] = "";
    char *text = ask(arg, row, why);
    return text ? text
                : api_judge_encode(row->name,
                                   path_of(settings_library(settings, row->name)), NULL,
                                   why);
}

enum { MOST_JUDGES = 16 };

static void
free_all(char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(texts[i]);
}

/* Asks for all runtimes that are to have a process of their own. Returns false when out of
   memory. */
static bool
ask_judges(const struct settings *settings, backends_judge_fn ask, void *arg,
           char *ret[MOST_JUDGES], size_t *ret_n)
{
    const struct qdq_runtime_row *row;
    bool ok = true;
    *ret_n = 0;
    for (size_t i = 0; ok && (row = qdq_runtime_row(i)) && *ret_n < MOST_JUDGES; i++)
        if (row->own_process)
            ok = (ret[(*ret_n)++] = ask_judge(settings, row, ask, arg)) != NULL;
    return ok;
}

/* The runtime is probed last, so that its process stays warm for the first work. */
void
backends_learn(struct backends *backends, const struct settings *settings,
               backends_ask_fn ask, backends_judge_fn judge, void *arg)
{
    char *gpus[GPUS_MOST] = {0}, *judges[MOST_JUDGES], *runtime, *found = NULL;
    int devices[GPUS_MOST];
    size_t n, n_judges;
    bool ok = gpus_parse(settings->gpu_devices, devices, &n);
    for (size_t i = 0; ok && i < n; i++)
        ok = (gpus[i] = ask_gpu(settings, devices[i], ask, arg)) != NULL;
    ok = ask_judges(settings, judge, arg, judges, &n_judges) && ok;
    runtime = ask_runtime(settings, ask, arg);
    if (ok && runtime)
        found = api_backends_encode(
            &(struct api_backends){.runtime = runtime,
                                   .judges = (const char *const *)judges,
                                   .n_judges = n_judges,
                                   .gpus = (const char *const *)gpus,
                                   .n_gpus = n,
                                   .module = path_of(settings->gpu_module)});
    free_all(gpus, n);
    free_all(judges, n_judges);
    free(runtime);
    lock_acquire(&backends->lock);
    backends->found = found;
    lock_release(&backends->lock);
}

char *
backends_version(struct backends *backends)
{
    lock_acquire(&backends->lock);
    char *version = api_version_encode(backends->found);
    lock_release(&backends->lock);
    return version;
}
