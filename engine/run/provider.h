/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime's part that runs models on a device of CUDA. Only for engine/run/. */
#ifndef QDQI_RUN_PROVIDER_H
#define QDQI_RUN_PROVIDER_H

#include <onnxruntime_c_api.h>

/* Sessions with these options run on that device whatever can run there. An error when
   the library has no such part, or that lacks a library of its own. */
OrtStatus *qdqi_provider_append(const OrtApi *api, OrtSessionOptions *options,
                                int device);

#endif
