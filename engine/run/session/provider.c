/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/session/provider.h"

#include "run/operators/variants.h"

#include <stdio.h>
#include <string.h>

const struct qdqi_provider qdqi_cpu_provider = {.name = "CPU"};

OrtStatus *
qdqi_provider_append(const struct qdqi_provider *provider, const OrtApi *api,
                     OrtSessionOptions *options, const struct qdqi_device *dev)
{
    if (provider->append)
        return provider->append(provider, api, options, dev);
    if (strcmp(provider->name, qdqi_cpu_provider.name) == 0)
        return NULL;
    return api->SessionOptionsAppendExecutionProvider(
        options, provider->name, provider->keys, provider->values, provider->n_options);
}

/* --- CUDA ------------------------------------------------------------------- */

static OrtStatus *
set_options(const struct qdqi_provider *provider, const OrtApi *api,
            OrtCUDAProviderOptionsV2 *cuda, int device)
{
    static const char *const key = "device_id";
    char number[16];
    const char *const value = number;
    snprintf(number, sizeof number, "%d", device);
    OrtStatus *status = api->UpdateCUDAProviderOptions(cuda, &key, &value, 1);
    return status ? status
                  : api->UpdateCUDAProviderOptions(
                        cuda, provider->keys, provider->values, provider->n_options);
}

/* Fails when the runtime was built without the provider or the provider lacks one of its
   libraries. */
static OrtStatus *
append_cuda(const struct qdqi_provider *provider, const OrtApi *api,
            OrtSessionOptions *options, const struct qdqi_device *dev)
{
    OrtCUDAProviderOptionsV2 *cuda = NULL;
    OrtStatus *status = dev->runs_models ? api->CreateCUDAProviderOptions(&cuda) : NULL;
    if (status || !cuda)
        return status;
    if (!(status = set_options(provider, api, cuda, dev->device)) &&
        !(status = api->SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda)))
        status = api->SetDeterministicCompute(options, true);
    api->ReleaseCUDAProviderOptions(cuda);
    return status;
}

/* Options that make results precise and repeatable: no rounding of float32 to TF32, and the
   same algorithm each time. */
static const char *const cuda_keys[] = {"use_tf32", "cudnn_conv_algo_search"};
static const char *const cuda_values[] = {"0", "HEURISTIC"};

const struct qdqi_provider qdqi_cuda_provider = {
    .name = "CUDA",
    .keys = cuda_keys,
    .values = cuda_values,
    .n_options = sizeof cuda_keys / sizeof *cuda_keys,
    .append = append_cuda,
    .memory = "Cuda",
    .variants = &qdqi_cuda_variants,
};
