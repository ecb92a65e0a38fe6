/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/session/cuda_provider.h"

#include <stdio.h>

/* Sets options that make results precise and repeatable: no rounding of float32 to
   TF32, and the same algorithm each time. */
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

OrtStatus *
qdqi_cuda_provider_append(const OrtApi *api, OrtSessionOptions *options, int device)
{
    OrtCUDAProviderOptionsV2 *cuda = NULL;
    OrtStatus *status = api->CreateCUDAProviderOptions(&cuda);
    if (status)
        return status;
    if (!(status = set_options(api, cuda, device)) &&
        !(status = api->SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda)))
        status = api->SetDeterministicCompute(options, true);
    api->ReleaseCUDAProviderOptions(cuda);
    return status;
}
