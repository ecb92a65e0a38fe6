/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of GET /version, and what worker processes say for it (shapes:
 * api/openapi.yaml). Every call returns text that the caller frees, or NULL when out of
 * memory.
 */
#ifndef API_VERSION_H
#define API_VERSION_H

#include <stdbool.h>
#include <stddef.h>

/* The backend onnxruntime. `path` as it is configured, NULL: it is not; `version` NULL: it
   cannot be loaded, `problem` says why, else that is NULL. */
char *api_runtime_encode(const char *path, const char *version, const char *problem);

struct api_gpu {
    int index;           /* as CUDA counts */
    const char *name;    /* NULL: not known */
    const char *module;  /* path of the CUDA module as it is configured, or NULL */
    bool cuda;           /* module, driver and some device are in order */
    const char *problem; /* why this one cannot be used, or NULL */
};

/* {"backend","device"}: the backend cuda as it is seen from this GPU, and the GPU. */
char *api_gpu_encode(const struct api_gpu *gpu);
/* {"backends","devices"} of the texts above; `module`: where no GPU is configured. */
char *api_backends_encode(const char *runtime, const char *const *gpus, size_t n,
                          const char *module);
/* `backends`: that text, or NULL while it is not known. */
char *api_version_encode(const char *backends);

#endif
