/* SPDX-License-Identifier: Apache-2.0 */
/* The engine, which outlives its jobs: the runtimes, the device and the catalog. */
#ifndef QDQI_STAGES_JOB_ENGINE_H
#define QDQI_STAGES_JOB_ENGINE_H

#include "runtimes/common/deploy.h"
#include "qdq/judge.h"
#include "qdq/quantize.h"
#include "run/session/session.h"

struct qdq_engine {
    char *library;                /* path of ONNX Runtime; NULL when not configured */
    struct qdqi_runtime *runtime; /* NULL until a model has to be run */
    /* why the runtime could not be loaded; this is not tried again */
    struct qdq_error no_runtime;
    char *openvino_library; /* path of OpenVINO's C library; NULL when not configured */
    struct qdqi_openvino *openvino; /* NULL until a result has to be run by it */
    struct qdq_error no_openvino;   /* as no_runtime */
    /* how to reach a process that judges in the place of the library; NULL: there is none */
    qdq_connect_judge_fn connect_judge;
    void *judge_arg;
    struct qdqi_remote *remote; /* that process; NULL until the work needs it */
    struct qdq_error no_remote; /* why it does not serve this work */
    bool renewed;     /* it ended in this work, and another one has taken its place */
    char crashed[64]; /* how that was, where it crashed ("was killed by signal 11") */
    int threads;
    const struct qdq_executor *executor; /* NULL: none */
    struct qdq_limits limits;
    struct qdq_catalog *catalog;
    char *cuda_module; /* path of the CUDA module; NULL when not configured */
    int device;
    bool device_chosen;
    bool has_device;        /* whether there is a device, even if it cannot be used */
    struct qdqi_cuda *cuda; /* NULL until a job needs a device */
    /* NULL until a job needs a device, or when it cannot be used */
    struct qdqi_device *dev;
    /* why the device cannot be used; this is not tried again */
    struct qdq_error no_device;
};

/* engine.c: returns the runtime, which is loaded on the first call. RUNTIME_MISSING. */
enum qdq_code qdqi_engine_runtime(struct qdq_engine *engine, struct qdqi_runtime **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* runtimes.c: returns the runtime of that name, which is opened on the first call. A process that
   judges and has ended is replaced once in a job. RUNTIME_MISSING. */
enum qdq_code qdqi_engine_deploy(struct qdq_engine *engine, const char *name,
                                 struct qdqi_deploy *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* runtimes.c: returns the runtime that calibrates, which also computes pairs literally.
   RUNTIME_MISSING. */
enum qdq_code qdqi_engine_deploy_literal(struct qdq_engine *engine,
                                         struct qdqi_deploy *ret,
                                         struct qdq_error *err) QDQ_MUST_CHECK;

/* runtimes.c: returns the functions of the runtime of that name without opening it, or NULL. */
const struct qdqi_deploy_ops *qdqi_deploy_ops_find(const char *name);

/* runtimes.c: ends the use of the process that judges, at the end of the work. */
void qdqi_engine_release_judge(struct qdq_engine *engine);

#endif
