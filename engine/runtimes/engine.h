/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: the runtimes that it can use, the device, and what the stages share with them. */
#ifndef QDQI_RUNTIMES_ENGINE_H
#define QDQI_RUNTIMES_ENGINE_H

#include "qdq/judge.h"
#include "qdq/quantize.h"
#include "runtimes/common/deploy.h"

struct qdqi_served;

/* A runtime of an engine. */
struct qdqi_runtime_slot {
    const struct qdqi_deploy_ops *ops; /* its row; NULL: another process alone has it */
    char *library;                     /* path of its library; NULL: not configured */
    void *place;                       /* NULL until a model has to be run by it */
    struct qdq_error why_not;   /* why it could not be started; not tried again */
    struct qdqi_served *served; /* the process that serves in its place; NULL: none */
};

struct qdq_engine {
    struct qdqi_runtime_slot *slots; /* those of the rows first, in their order */
    size_t n_slots;
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

/* rows.c: returns row i of the list RUNTIMES in engine/local.mk; NULL past the last. */
const struct qdqi_deploy_ops *qdqi_deploy_row(size_t i);

/* slots.c: returns ONNX Runtime's library, which runs the engine's own sessions and is loaded on
   the first call. RUNTIME_MISSING. */
enum qdq_code qdqi_engine_runtime(struct qdq_engine *engine, struct qdqi_runtime **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Return it only if it is loaded, or else NULL, and the path that it is loaded from. */
struct qdqi_runtime *qdqi_engine_loaded_runtime(const struct qdq_engine *engine);
const char *qdqi_engine_runtime_path(const struct qdq_engine *engine);

/* slots.c: return the row of the runtime of that name, as it runs models for this engine, without
   starting it: NULL where there is none, or `name` is NULL; and the runtime, which is started on
   the first call. A process that judges and has ended is replaced once in a job.
   RUNTIME_MISSING. */
const struct qdqi_deploy_ops *qdqi_engine_ops(const struct qdq_engine *engine,
                                              const char *name);
enum qdq_code qdqi_engine_deploy(struct qdq_engine *engine, const char *name,
                                 struct qdqi_deploy *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
/* Returns the runtime that calibrates, which also computes pairs literally. RUNTIME_MISSING. */
enum qdq_code qdqi_engine_deploy_literal(struct qdq_engine *engine,
                                         struct qdqi_deploy *ret,
                                         struct qdq_error *err) QDQ_MUST_CHECK;
/* Returns how the process that judges by this runtime crashed in this job, or "". */
const char *qdqi_engine_crash(const struct qdq_engine *engine, const char *name);
/* Ends the use of processes that judge, at the end of the work. */
void qdqi_engine_release_judges(struct qdq_engine *engine);

/* slots.c, for engine.c: sets the slots of the rows; starts anew what depends on the number of
   threads; frees all. NO_MEMORY. */
enum qdq_code qdqi_slots_open(struct qdq_engine *engine,
                              const struct qdq_engine_options *options,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_slots_restart(struct qdq_engine *engine);
void qdqi_slots_close(struct qdq_engine *engine);

/* device.c: opens the device once. A GPU that cannot be used is not tried again by this engine,
   unless the reason was a lack of memory. NO_DEVICE and other codes of devices, with the reason. */
enum qdq_code qdqi_engine_find_device(struct qdq_engine *engine,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

#endif
