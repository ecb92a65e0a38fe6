/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes: programs that run a result as its users would deploy it. The engine has a row for
 * each that it can load itself. Another one serves by functions of the caller's, in a process that
 * judges (qdq/judge.h).
 *
 * Tensors are packed in C order, in the byte order of the processor. Times are in milliseconds,
 * sizes in bytes.
 */
#ifndef QDQ_RUNTIME_H
#define QDQ_RUNTIME_H

#include "qdq/error.h"

/* A runtime that the engine can load; constant, and shared by threads. */
struct qdq_runtime_row {
    const char
        *name; /* in reports, in rows of targets, and of the setting of its path */
    const char *title; /* as people call it */
    /* name of its library's file, without a version; NULL: it has no library of its own */
    const char *library;
    const char *installed; /* path of that file as the build was configured; "": none */
    bool
        own_process; /* it may crash, or makes code: it is to run in a process that judges */
};

/* Row i, NULL past the last. */
QDQ_API const struct qdq_runtime_row *qdq_runtime_row(size_t i);
/* The row of that name, or NULL. */
QDQ_API const struct qdq_runtime_row *qdq_runtime_find(const char *name);

/* --- a runtime of the caller's ---------------------------------------------- */

/* An input or an output of a model. */
struct qdq_tensor {
    const char *name; /* the model's, of an input; NULL for an output */
    /* number of the element type as ONNX's TensorProto.DataType has it: 1 is float32; 0: the
       output is no tensor, and the other members are 0 */
    int dtype;
    size_t rank;          /* 64 at most; 0: a scalar */
    const int64_t *shape; /* `rank` sizes, each >= 0 */
    const void *data;
    size_t
        size; /* bytes of the data: the product of the shape times those of an element */
};

/* The part of a node in a layer. */
enum qdq_node_kind {
    QDQ_NODE_BY_NAME = 0, /* the engine knows the names that the runtime gives */
    QDQ_NODE_INTEGER,     /* computes with integers */
    QDQ_NODE_CONVERSION,  /* converts between integers and floating point alone */
    QDQ_NODE_FLOAT_LAYER, /* can be a layer that computes in floating point */
    QDQ_NODE_OTHER,
    QDQ_N_NODE_KINDS
};

/* A node as the runtime ran it. */
struct qdq_run_node {
    /* of the model's node, or of a tensor that it makes, from which the runtime made this one;
       "": of none */
    const char *name;
    const char *op;     /* the runtime's operator */
    const char *kernel; /* the runtime's name of what computed it; "": unknown */
    enum qdq_node_kind kind;
    double ms; /* of the last run */
    /* the names of all nodes of the model that it computes; none: that of `name` */
    const char *const *names;
    size_t n_names;
    const char *
        reason; /* why the device of the runtime left it to another one; NULL: unknown */
};

struct qdq_run_options {
    int threads; /* of one run; 0: as many as the runtime takes by itself */
    /* true if layers in floating point have the precision that the runtime chooses by itself;
       otherwise it is float32 */
    bool own_precision;
    bool
        traced; /* nodes() will be called: after a run, unless the runtime only plans */
    /* the model need not be prepared for a run: it is asked only whether the runtime reads it */
    bool reads_only;
};

/* The words of a runtime about itself, beside its version. */
struct qdq_runtime_about {
    const char *name;   /* in reports, in the place of the row's */
    const char *device; /* that it computes on */
    const char *runner; /* name of the operator's program that runs it */
    /* it loads models and names their kernels before a run, and there is no device that runs
       them */
    bool only_plans;
};

/*
 * The functions of a runtime. `arg` is what qdq_judge_new() got, `model` what open() returned.
 * They are called on the thread of qdq_judge_serve(), one at a time. At most eight models are
 * open at the same time.
 *
 * A function that can fail sets *err: RUN_FAILED with one line that begins with what failed, as
 * reports show it to users (400 characters at most), NO_MEMORY, RUNTIME_MISSING, RUNNER_FAILED, or JUDGE_GONE: the runtime is
 * lost and no later call can do anything. qdq_judge_serve() then returns without an answer, and the
 * engine asks for another process, once in a job. Any other code becomes RUN_FAILED.
 */
struct qdq_runtime_calls {
    const char *name; /* as the target has it in its row; borrowed */
    /* Returns the version, which lives as long as the judge. */
    const char *(*version)(void *arg);
    /* Returns what else it says of itself; its texts live as long as the judge. NULL: nothing. */
    const struct qdq_runtime_about *(*about)(void *arg);
    /* Opens a model: the bytes of one ONNX file with all weights, valid during the call. */
    enum qdq_code (*open)(void *arg, const void *bytes, size_t size,
                          const struct qdq_run_options *options, void **ret,
                          struct qdq_error *err);
    /* Returns the precision of layers in floating point, "f32", "f16" or "bf16", or "" where that
       is unknown; it lives as long as the model. */
    const char *(*precision)(void *model);
    /*
     * Runs the model once. Inputs are borrowed during the call, in no certain order, one for each
     * input of the model. *ret are its outputs in the order of the graph, which the callee owns and
     * keeps until the next call with this model. *ret_ms is the time of the run alone.
     */
    enum qdq_code (*run)(void *model, const struct qdq_tensor *inputs, size_t n_inputs,
                         const struct qdq_tensor **ret, size_t *ret_n, double *ret_ms,
                         struct qdq_error *err);
    /* Sets *ret to the nodes of the last run of a model that was opened `traced`, the same ones in
       the same order after each run. The callee owns them as run()'s outputs. NULL: the runtime
       names no nodes, and reports count no kernels. */
    enum qdq_code (*nodes)(void *model, const struct qdq_run_node **ret, size_t *ret_n,
                           struct qdq_error *err);
    void (*close)(void *model);
    /* Frees `arg`; called by qdq_judge_close(). NULL: nothing is to be freed. */
    void (*end)(void *arg);
};

#endif
