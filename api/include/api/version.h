/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of GET /version and the parts of it that worker processes send, in the
 * shapes of api/openapi.yaml. Every call returns text that the caller frees, or NULL
 * when out of memory.
 */
#ifndef API_VERSION_H
#define API_VERSION_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Encode the backend that runs models, and a runtime that judges results in a process of its own.
 * `path` is the configured path, or NULL. `version` is NULL when the library cannot be loaded;
 * then `problem` says why, else it is NULL.
 */
char *api_runtime_encode(const char *path, const char *version, const char *problem);
char *api_judge_encode(const char *name, const char *path, const char *version,
                       const char *problem);

struct api_gpu {
    int index;           /* CUDA's number of the GPU */
    const char *name;    /* NULL: not known */
    const char *module;  /* configured path of the CUDA module, or NULL */
    bool cuda;           /* the module, the driver and some GPU can be used */
    const char *problem; /* why this GPU cannot be used, or NULL */
};

/* Encodes {"backend","device"}: the state of the backend cuda for this GPU, and the
   GPU. */
char *api_gpu_encode(const struct api_gpu *gpu);
/* The texts above, of all backends. */
struct api_backends {
    const char *runtime;
    const char *const *judges, *const *gpus;
    size_t n_judges, n_gpus;
    const char *module; /* used where no GPU is configured */
};
/* Encodes {"backends","devices"}. */
char *api_backends_encode(const struct api_backends *backends);
/* Encodes the body. `backends` is the text of api_backends_encode(), or NULL while
   it is not known. */
char *api_version_encode(const char *backends);

#endif
