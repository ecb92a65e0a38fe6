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

/* Options that make results precise and repeatable: no rounding of float32 to TF32, and the
   same algorithm each time. One call sets all, because it resets those that it does not name. */
static OrtStatus *
set_options(const OrtApi *api, OrtCUDAProviderOptionsV2 *cuda, int device)
{
    char number[16];
    const char *const keys[] = {"device_id", "use_tf32", "cudnn_conv_algo_search"};
    const char *const values[] = {number, "0", "HEURISTIC"};
    snprintf(number, sizeof number, "%d", device);
    return api->UpdateCUDAProviderOptions(cuda, keys, values,
                                          sizeof keys / sizeof *keys);
}

/* Fails when the runtime was built without the provider or the provider lacks one of its
   libraries. */
static OrtStatus *
append_cuda(const struct qdqi_provider *provider, const OrtApi *api,
            OrtSessionOptions *options, const struct qdqi_device *dev)
{
    OrtCUDAProviderOptionsV2 *cuda = NULL;
    (void)provider;
    OrtStatus *status = dev->runs_models ? api->CreateCUDAProviderOptions(&cuda) : NULL;
    if (status || !cuda)
        return status;
    if (!(status = set_options(api, cuda, dev->device)) &&
        !(status = api->SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda)))
        status = api->SetDeterministicCompute(options, true);
    api->ReleaseCUDAProviderOptions(cuda);
    return status;
}

const struct qdqi_provider qdqi_cuda_provider = {
    .name = "CUDA",
    .append = append_cuda,
    .memory = "Cuda",
    .variants = &qdqi_cuda_variants,
};
