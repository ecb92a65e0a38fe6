/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/backends.h"
#include "base/lock.h"
#include "settings/gpu_list.h"
#include "settings/settings.h"
#include "api/version.h"

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
ask_judge(const struct settings *settings, backends_judge_fn ask, void *arg)
{
    char why[BACKENDS_WHY] = "";
    char *text = ask(arg, why);
    return text ? text
                : api_judge_encode(path_of(settings->engine_openvino), NULL, why);
}

/* The runtime is probed last, so that its process stays warm for the first work. */
void
backends_learn(struct backends *backends, const struct settings *settings,
               backends_ask_fn ask, backends_judge_fn judge, void *arg)
{
    char *gpus[GPUS_MOST] = {0}, *runtime, *openvino, *found = NULL;
    int devices[GPUS_MOST];
    size_t n;
    bool ok = gpus_parse(settings->gpu_devices, devices, &n);
    for (size_t i = 0; ok && i < n; i++)
        ok = (gpus[i] = ask_gpu(settings, devices[i], ask, arg)) != NULL;
    openvino = ask_judge(settings, judge, arg);
    runtime = ask_runtime(settings, ask, arg);
    if (ok && runtime && openvino)
        found = api_backends_encode(runtime, openvino, (const char *const *)gpus, n,
                                    path_of(settings->gpu_module));
    for (size_t i = 0; i < n; i++)
        free(gpus[i]);
    free(openvino);
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
