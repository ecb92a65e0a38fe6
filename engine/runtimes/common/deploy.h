/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes that judge a result: what calls one to run a model as its users would
 * deploy it goes through the functions of one row. A runtime is a file of this folder
 * that defines a row; a target names it.
 */
#ifndef QDQI_RUNTIMES_COMMON_DEPLOY_H
#define QDQI_RUNTIMES_COMMON_DEPLOY_H

#include "runtimes/common/kernel_names.h"
#include "files/model/model.h"
#include "run/session/session.h"
#include "run/session/trace.h"

struct qdqi_deploy_options {
    const struct qdqi_device *dev; /* the device; NULL for the processor */
    int threads;                   /* of one run; 0: as many as the engine has */
    /* True if layers in floating point have the precision that the runtime chooses by
       itself; else it is float32. */
    bool own_precision;
    bool traced; /* nodes() will be asked for the nodes of a run, whose times cost a
                       little time themselves */
    /* Where the runtime opens models slowly: it reads the model, which finds most of what it
       cannot load, and does not prepare it. The model can then only be closed. */
    bool reads_only;
    /* Where the runtime calibrates: pairs are computed in floating point, never fused. */
    bool literal;
    /* Where the runtime writes: path of the model as it is run; NULL: open() writes none. */
    const char *optimized;
};

/*
 * The functions of a runtime. `place` is what the runtime was opened as, `model` what
 * open() returned. One thread calls. RUN_FAILED has the runtime's message; all of them
 * may return NO_MEMORY.
 */
struct qdqi_deploy_ops {
    const char *name;  /* in reports and in the rows of targets */
    const char *title; /* as people call it */
    const struct qdqi_kernel_names *kernels;
    bool calibrates; /* the engine calibrates by it, which finds what it cannot load */
    bool writes;     /* open() can write the model as it is run */
    bool chooses_precision; /* open() heeds own_precision; else floats are float32 */
    bool
        opens_slowly; /* open() takes much longer than the runs that compare a choice */
    /* Returns the version; borrowed from the place. */
    const char *(*version)(void *place);
    /* Opens a model, which must outlive *ret. */
    enum qdq_code (*open)(void *place, const struct qdq_model *model,
                          const struct qdqi_deploy_options *options, void **ret,
                          struct qdq_error *err);
    /* Runs a model once, as qdqi_session_run() does. *ret_ms is the time of the run
       alone. */
    enum qdq_code (*run)(void *model, const struct qdqi_input *inputs, size_t n_inputs,
                         const struct qdqi_output **ret, size_t *ret_n, double *ret_ms,
                         struct qdq_error *err);
    /* Returns the precision of layers in floating point, "f32" or "bf16"; borrowed. */
    const char *(*precision)(void *model);
    /*
     * Sets *ret to the nodes of the last run of a model that was opened `traced`, in the arena.
     * NULL for a runtime that names its nodes in no other way than trace() and `writes`.
     */
    enum qdq_code (*nodes)(void *model, struct qdqi_arena *arena,
                           struct qdqi_trace *ret, struct qdq_error *err);
    void (*close)(void *model);
    /*
     * Opens the model again, runs it `runs` times and sets *ret to the time of each
     * node, in the arena. *ret has no nodes where the process cannot measure them.
     */
    enum qdq_code (*trace)(void *place, const struct qdq_model *model,
                           const struct qdqi_deploy_options *options,
                           const struct qdqi_input *inputs, size_t n_inputs, int runs,
                           struct qdqi_arena *arena, struct qdqi_trace *ret,
                           struct qdq_error *err);
};

/* A runtime that is open. */
struct qdqi_deploy {
    const struct qdqi_deploy_ops *ops;
    void *place;
};

/* A model in a runtime; `ops` is NULL when there is none. */
struct qdqi_deployed_model {
    const struct qdqi_deploy_ops *ops;
    void *model;
};

enum qdq_code qdqi_deploy_model(const struct qdqi_deploy *deploy,
                                const struct qdq_model *model,
                                const struct qdqi_deploy_options *options,
                                struct qdqi_deployed_model *ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_deployed_model_run(const struct qdqi_deployed_model *model,
                                      const struct qdqi_input *inputs, size_t n_inputs,
                                      const struct qdqi_output **ret, size_t *ret_n,
                                      double *ret_ms,
                                      struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_deployed_model_close(struct qdqi_deployed_model *model);

/* ONNX Runtime; its place is a struct qdqi_runtime. */
extern const struct qdqi_deploy_ops qdqi_deploy_onnxruntime;

#endif
