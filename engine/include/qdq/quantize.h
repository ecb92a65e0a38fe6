/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of the data: model -> plan -> calibrate -> ranges -> rewrite -> evaluate ->
 * report.
 */
#ifndef QDQ_QUANTIZE_H
#define QDQ_QUANTIZE_H

#include "qdq/dataset.h"
#include "qdq/report.h"

struct qdq_engine;

struct qdq_engine_options {
    const char *runtime; /* path of libonnxruntime.so; NULL: no model can be run */
    int threads;         /* threads that ONNX Runtime may use for one model, >= 1 */
    const char *catalog; /* the operator's folder of cases and layer support, or NULL */
    /*
     * Path of the CUDA module, qdq_cuda.so; NULL: models run on the CPU alone. It is
     * looked at when a job first wants a GPU.
     */
    const char *cuda_module;
    int device;         /* the GPU that jobs run on, as CUDA counts, >= 0 */
    bool device_chosen; /* someone chose it: where it cannot be used, a job whose spec
                         * leaves the choice gets a warning */
    struct qdq_limits limits; /* of what is quantized */
};

enum qdq_stage {
#define QDQ_STAGE(name, text) QDQ_STAGE_##name,
#include "qdq/stages.h"
#undef QDQ_STAGE
    QDQ_N_STAGES
};

/* How far the work is. Samples are counted where a stage runs the model. */
struct qdq_progress {
    enum qdq_stage stage;
    uint64_t done, total; /* of this stage; total is 0 where it is not known */
    uint64_t later;       /* that will be evaluated in the stage to come */
};

/*
 * Told of progress on the thread that called qdq_quantize(). Returning true cancels the
 * work, which then ends with CANCELLED.
 */
typedef bool (*qdq_progress_fn)(void *arg, const struct qdq_progress *progress);

/*
 * Asked between the steps of a long what-if on a GPU, on that thread, too: is it to be had
 * by somebody else now? Then nothing of the work's is left on it but CUDA's own, and
 * `regain` is called, which returns when it is the work's again; false cancels the work.
 */
typedef bool (*qdq_wanted_fn)(void *arg);
typedef bool (*qdq_regain_fn)(void *arg);

/*
 * Told the frozen spec once, before the result is written. Returns its digest for the
 * result's metadata, which stays the callee's; NULL: no memory.
 */
typedef const char *(*qdq_freeze_fn)(void *arg, const struct qdq_spec *frozen);

struct qdq_work {
    int model;            /* descriptor of the model, a regular file */
    const char *model_id; /* written into the result's metadata; NULL: left out */
    const struct qdq_external *external; /* files that the model may keep data in */
    size_t n_external;
    int dataset;            /* descriptor of the calibration data, or -1 */
    const char *dataset_id; /* likewise */
    const struct qdq_spec *spec;
    qdq_freeze_fn freeze; /* NULL: not told, and no digest in the metadata */
    void *freeze_arg;
    int output; /* writable and readable regular file; truncated first */
    /*
     * A second one for the result's external data, or -1: a result that needs it is an
     * error then, INVALID_SPEC or UNSUPPORTED. It is touched only where it is needed,
     * which the report's external_bytes says.
     */
    int output_data;
    const char *output_data_name; /* the name that the model gives it: no path */
    /*
     * A regular file, readable and writable, or -1. What an earlier calibration left in
     * it is not observed again; then it holds that and what was observed anew. A file
     * that is empty, damaged or of another identity is overwritten. It is used where
     * there are the ids that qdq_observations_identity() wants.
     */
    int observations;
    qdq_progress_fn progress; /* NULL: not told */
    void *progress_arg;
    qdq_wanted_fn wanted; /* NULL: it keeps the GPU to its end */
    qdq_regain_fn regain;
    void *gpu_arg; /* of both */
};

QDQ_API const char *qdq_version(void);
QDQ_API const char *qdq_stage_name(enum qdq_stage stage);

/*
 * Opens the engine. ONNX Runtime is loaded when a model first has to be run: what needs
 * no run works without it. One engine serves one qdq_quantize() at a time. NO_MEMORY,
 * and the codes of qdq_catalog_open().
 */
QDQ_API enum qdq_code qdq_engine_open(const struct qdq_engine_options *options,
                                      struct qdq_engine **ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_engine_close(struct qdq_engine **engine);

/* The cases and classes that the engine plans with; lives as long as the engine. */
QDQ_API const struct qdq_catalog *qdq_engine_catalog(const struct qdq_engine *engine);

/* Those that it was opened with; lives as long as the engine. */
QDQ_API const struct qdq_limits *qdq_engine_limits(const struct qdq_engine *engine);

/*
 * Loads ONNX Runtime, if that has not been done, and tells its version; borrowed.
 * RUNTIME_MISSING says why it cannot be loaded.
 */
QDQ_API enum qdq_code qdq_engine_runtime_version(struct qdq_engine *engine,
                                                 const char **ret,
                                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* The GPU that an engine was opened with. */
struct qdq_gpu {
    bool cuda;      /* module, driver and some device are in order */
    char name[128]; /* "": not known */
};

/*
 * Tries it as a job would that wants one, if that has not been done: that job's errors,
 * NO_DEVICE above all, say why it cannot be used. *ret is filled in any case.
 */
QDQ_API enum qdq_code qdq_engine_gpu(struct qdq_engine *engine, struct qdq_gpu *ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * What decides which accumulators a calibration ends with, as text that the caller
 * frees: the engine's version, device, model, data (or the random samples asked for) and
 * those members of the spec that change what is fed or seen. dataset_id is NULL where
 * there is no data. Method, layers, cases and ranges are not among these. NULL: no
 * memory.
 */
QDQ_API char *qdq_observations_identity(const struct qdq_spec *spec,
                                        const char *model_id, const char *dataset_id);

/* How a file of observations begins. */
#define QDQ_OBSERVATIONS_MAGIC "QDQOBS1\n"

/*
 * Quantizes. On success the output files hold the whole model (not synced) and *ret the
 * report, whose `missed` says whether the model is what spec.accept asks for: one that
 * is not is not to be handed on. On failure the output files' contents are undefined and *ret is untouched.
 */
QDQ_API enum qdq_code qdq_quantize(struct qdq_engine *engine,
                                   const struct qdq_work *work, struct qdq_report **ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
