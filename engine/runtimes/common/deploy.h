/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes that judge a result: what calls one to run a model as its users would deploy it
 * goes through the functions of one row. A folder beside this one defines each row; a target
 * names it.
 */
#ifndef QDQI_RUNTIMES_COMMON_DEPLOY_H
#define QDQI_RUNTIMES_COMMON_DEPLOY_H

#include "runtimes/common/kernel_names.h"
#include "files/model/model.h"
#include "qdq/runtime.h"
#include "run/session/provider.h"
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

/* A model as the bytes of one file. */
struct qdqi_model_bytes {
    const void *data;
    size_t size;
};

/* The things that a runtime is started with. */
struct qdqi_deploy_start {
    const char *library; /* path of its library */
    int threads;         /* that it may use for one model */
    struct qdqi_runtime
        *runtime; /* where it is a provider: the engine's ONNX Runtime */
};

/*
 * The row of a runtime: facts and functions. `place` is what start() returned, `model` what
 * open() or load() returned. One thread calls. RUN_FAILED has the runtime's message; all of them
 * may return NO_MEMORY.
 */
struct qdqi_deploy_ops {
    const struct qdq_runtime_row *row; /* its names */
    /* where row->library is set: place of the library's path in struct qdq_engine_options */
    size_t library_option;
    const struct qdqi_kernel_names *kernels;
    /* the provider of ONNX Runtime that runs models without a device; NULL: it is no provider */
    const struct qdqi_provider *provider;
    bool calibrates; /* the engine calibrates by it, which finds what it cannot load */
    bool writes;     /* open() can write the model as it is run */
    bool checks_float16; /* its runs show whether ONNX Runtime's optimizations break a
                               result that computes in float16 */
    bool chooses_precision; /* open() heeds own_precision; else floats are float32 */
    bool
        opens_slowly; /* open() takes much longer than the runs that compare a choice */
    bool has_one_thread; /* a run whose options ask for no number of threads has one */
    /* Loads the runtime. RUNTIME_MISSING. */
    enum qdq_code (*start)(const struct qdqi_deploy_ops *ops,
                           const struct qdqi_deploy_start *from, void **ret,
                           struct qdq_error *err);
    void (*end)(void *place);
    /* Returns the version; borrowed from the place. */
    const char *(*version)(void *place);
    /* Returns what else it says of itself; borrowed from the place. NULL: nothing. */
    const struct qdq_runtime_about *(*about)(void *place);
    /* Opens a model, which must outlive *ret. NULL where the runtime has load(). */
    enum qdq_code (*open)(void *place, const struct qdq_model *model,
                          const struct qdqi_deploy_options *options, void **ret,
                          struct qdq_error *err);
    /* Opens a model from bytes, which are no longer needed afterwards. */
    enum qdq_code (*load)(void *place, const struct qdqi_model_bytes *bytes,
                          const struct qdqi_deploy_options *options, void **ret,
                          struct qdq_error *err);
    /* Runs a model once, as qdqi_session_run() does. *ret_ms is the time of the run
       alone. */
    enum qdq_code (*run)(void *model, const struct qdqi_input *inputs, size_t n_inputs,
                         const struct qdqi_output **ret, size_t *ret_n, double *ret_ms,
                         struct qdq_error *err);
    /* Returns the processor time of the last run, in milliseconds, where one thread did all of its
       work; below 0: it is not known. NULL: it never is. */
    double (*processor_ms)(void *model);
    /* Returns the precision of layers in floating point, "f32" or "bf16"; borrowed. */
    const char *(*precision)(void *model);
    /*
     * Sets *ret to the nodes of the last run of a model that was opened `traced`, in the arena: the
     * same ones in one order after each run, or none. Where the runtime tells no times of single runs
     * they are means over the runs so far.
     * NULL for a runtime that names its nodes in no other way than trace() and `writes`.
     */
    enum qdq_code (*nodes)(void *model, struct qdqi_arena *arena,
                           struct qdqi_trace *ret, struct qdq_error *err);
    void (*close)(void *model);
    /* See qdqi_deploy_trace(). NULL for a runtime that has nodes(). */
    enum qdq_code (*trace)(void *place, const struct qdq_model *model,
                           const struct qdqi_deploy_options *options,
                           const struct qdqi_input *inputs, size_t n_inputs, int runs,
                           struct qdqi_arena *arena, void **stays,
                           struct qdqi_trace *ret, struct qdq_error *err);
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

/* Returns the runtime's name in reports; borrowed. */
const char *qdqi_deploy_name(const struct qdqi_deploy *deploy);
/* Returns what else the runtime says of itself, or NULL; borrowed. */
const struct qdq_runtime_about *qdqi_deploy_about(const struct qdqi_deploy *deploy);

/*
 * Opens the model again, runs it `runs` times and sets *ret to the time of each node, in the
 * arena. *ret has no nodes where the process cannot measure them. *stays is the model, which the
 * caller closes; it is no longer traced where the runtime has no nodes(). NULL: it is closed.
 */
enum qdq_code
qdqi_deploy_trace(const struct qdqi_deploy *deploy, const struct qdq_model *model,
                  const struct qdqi_deploy_options *options,
                  const struct qdqi_input *inputs, size_t n_inputs, int runs,
                  struct qdqi_arena *arena, struct qdqi_deployed_model *stays,
                  struct qdqi_trace *ret, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
