/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime's CUDA execution provider. This header is only for engine/run/. */
#ifndef QDQI_RUN_SESSION_CUDA_PROVIDER_H
#define QDQI_RUN_SESSION_CUDA_PROVIDER_H

#include <onnxruntime_c_api.h>

/*
 * Makes sessions with these options run on the device all nodes that can run there.
 * Fails when the runtime was built without the provider or the provider lacks one of
 * its libraries.
 */
OrtStatus *qdqi_cuda_provider_append(const OrtApi *api, OrtSessionOptions *options,
                                     int device);

#endif
