/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution providers of ONNX Runtime: what runs the nodes of a session. A row says how the
 * provider is added to a session, and in which variants the engine's own operators run there.
 */
#ifndef QDQI_RUN_SESSION_PROVIDER_H
#define QDQI_RUN_SESSION_PROVIDER_H

#include <stddef.h>

struct OrtApi;
struct OrtSessionOptions;
struct OrtStatus;
struct qdqi_device;
struct qdqi_op_variants;

struct qdqi_provider {
    const char *name; /* as ONNX Runtime calls it: "CPU", "CUDA", "XNNPACK" */
    /* The provider's own options, where it is added by its name. */
    const char *const *keys, *const *values;
    size_t n_options;
    /* Adds the provider to the options of a session; `dev` is its device, or NULL. Returns NULL or
       an error. NULL: it is added by its name; the one for processors is always there. */
    struct OrtStatus *(*append)(const struct qdqi_provider *provider,
                                const struct OrtApi *api,
                                struct OrtSessionOptions *options,
                                const struct qdqi_device *dev);
    const char *memory; /* name of its memory; NULL: tensors are in the host's */
    const struct qdqi_op_variants *variants; /* NULL: the host's */
};

/* The provider for processors, and that of sessions with a CUDA device. */
extern const struct qdqi_provider qdqi_cpu_provider, qdqi_cuda_provider;

/* Adds a provider to the options of a session. */
struct OrtStatus *qdqi_provider_append(const struct qdqi_provider *provider,
                                       const struct OrtApi *api,
                                       struct OrtSessionOptions *options,
                                       const struct qdqi_device *dev);

#endif
