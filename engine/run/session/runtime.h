/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime as a loaded library. This header is only for engine/run/; the functions that
   open and close it are in run/session.h. */
#ifndef QDQI_RUN_SESSION_RUNTIME_H
#define QDQI_RUN_SESSION_RUNTIME_H

#include "run/session/session.h"

#include <onnxruntime_c_api.h>
#include <stdatomic.h>

/* The account of qdqi_run_use. */
struct qdqi_shared_use {
    atomic_uint_least64_t bytes;
    atomic_int threads;
};

struct qdqi_runtime {
    void *library;
    const OrtApi *api;
    const char *version;
    OrtEnv *env;
    OrtMemoryInfo *memory;
    int threads; /* of all sessions without threads of their own */
    struct qdqi_shared_use use;
};

/* Converts a status of the runtime to an error and releases it. Returns QDQ_OK for
   NULL. */
enum qdq_code qdqi_runtime_check(const struct qdqi_runtime *runtime, OrtStatus *status,
                                 const char *what, struct qdq_error *err);

#endif
