/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes a model: plan, calibrate, choose ranges, rewrite, evaluate, report. */
#ifndef QDQ_QUANTIZE_H
#define QDQ_QUANTIZE_H

#include "qdq/dataset.h"
#include "qdq/executor.h"
#include "qdq/report.h"

struct qdq_engine;

struct qdq_engine_options {
    const char *runtime; /* path of libonnxruntime.so; NULL: no model can run */
    /* path of libopenvino_c.so.*, which is loaded when a result is judged that is made for
       OpenVINO; NULL: such a result is not judged as deployed */
    const char *openvino;
    int threads; /* threads that ONNX Runtime may use for one model, >= 1 */
    /* runs pieces of the engine's own work on as many threads; NULL: the calling thread
       does it. It must outlive the engine. */
    const struct qdq_executor *executor;
    const char *catalog; /* the operator's folder of cases and layer support, or NULL */
    /* Path of the CUDA module, qdq_cuda.so; NULL: models run on the CPU only. The
       module is loaded when a job first wants a GPU. */
    const char *cuda_module;
    int device; /* index of the GPU that jobs run on, as CUDA counts, >= 0 */
    /* the device was configured: a job whose spec leaves the choice gets a warning
       when it cannot be used */
    bool device_chosen;
    struct qdq_limits limits; /* limits of models and data */
};

enum qdq_stage {
#define QDQ_STAGE(name, text) QDQ_STAGE_##name,
#include "qdq/stages.h"
#undef QDQ_STAGE
    QDQ_N_STAGES
};

/* The progress of the work, which never falls. Samples are counted in stages that run the
   model: those that are run again count once. */
struct qdq_progress {
    enum qdq_stage stage;
    uint64_t done, total; /* in this stage; total is 0 when it is not known */
    uint64_t later;       /* samples that the evaluation will run later */
    uint64_t
        unknown; /* later stages whose work is asked for and not known, as 1 << stage */
};

/* Called with the progress, on the thread that called qdq_quantize(). Returning true
   cancels the work, which then ends with CANCELLED. */
typedef bool (*qdq_progress_fn)(void *arg, const struct qdq_progress *progress);

/*
 * Called between the steps of long what-ifs on a GPU, on the same thread: does another
 * job want the GPU now? If it returns true, the work frees its memory on the GPU and
 * calls `regain`, which returns true when the GPU may be used again; false cancels the
 * work.
 */
typedef bool (*qdq_wanted_fn)(void *arg);
typedef bool (*qdq_regain_fn)(void *arg);

/* Called once with the frozen spec, before the result is written. Returns the digest
   for the result's metadata, which the callee owns; NULL when out of memory. */
typedef const char *(*qdq_freeze_fn)(void *arg, const struct qdq_spec *frozen);

/* The files that the result is judged by, besides the calibration data. */
struct qdq_judging {
    int data;            /* descriptor of data, or -1: that is the calibration data */
    const char *data_id; /* as model_id */
    int metric; /* descriptor of the graph that spec->task.model names, or -1 */
    /*
     * Called before that graph runs, with the seconds that it may take at most, and
     * afterwards with 0. When the time is over, the caller ends the process; it may bound its
     * memory, too. NULL: not called.
     */
    void (*bound)(void *arg, unsigned seconds);
    void *bound_arg;
};

struct qdq_work {
    int model;            /* descriptor of the model, a regular file */
    const char *model_id; /* written into the result's metadata; NULL: omitted */
    /*
     * NULL, or: model_id stands for an id that is not yet known, of the same length, and
     * this function waits for it. It is called last, when the result is written otherwise,
     * and returns the id, which the callee owns, or NULL when there is none: the work then
     * fails with IO. Not with `observations`, which need the id first.
     */
    const char *(*late_id)(void *arg);
    void *late_id_arg;
    /* files that may hold the model's external data */
    const struct qdq_external *external;
    size_t n_external;
    int dataset;                       /* descriptor of the calibration data, or -1 */
    const char *dataset_id;            /* as model_id */
    const struct qdq_judging *judging; /* NULL: nothing of its own */
    const struct qdq_spec *spec;
    qdq_freeze_fn freeze; /* NULL: not called, and the metadata has no digest */
    void *freeze_arg;
    int output; /* writable and readable regular file; truncated first */
    /*
     * A second file, for the result's external data, or -1: a result that needs it then
     * fails with INVALID_SPEC or UNSUPPORTED. The file changes only when it is needed,
     * as the report's external_bytes shows. A device that discards what it gets serves
     * those who want no more than that number.
     */
    int output_data;
    const char *output_data_name; /* the name that the model refers to it by: no path */
    /*
     * A regular file, readable and writable, or -1. Observations of an earlier
     * calibration in it are used again; at the end it holds these and the new ones. A
     * file that is empty, damaged or has another identity is overwritten. It is used
     * only when the ids that qdq_observations_identity() needs are given.
     */
    int observations;
    /*
     * Called on the same thread when times are first measured: returns the descriptor, which the
     * callee owns, of a regular file, readable and writable, with the times that earlier jobs of the
     * same model measured, or -1. They are used again; where some were measured, the file holds all
     * of them at the end. A file that is empty, damaged or has times of another runtime or
     * processor is overwritten then. NULL: times are not kept.
     */
    int (*times)(void *arg);
    void *times_arg;
    /* whether the report has the histograms of what calibration observes */
    bool histograms;
    qdq_progress_fn progress; /* NULL: progress is not reported */
    void *progress_arg;
    qdq_wanted_fn wanted; /* NULL: the work keeps the GPU to its end */
    qdq_regain_fn regain;
    void *gpu_arg; /* argument of both */
    /*
     * Called on the same thread when a search by patterns begins (qdq_spec_keeps_journal()): returns the descriptor,
     * which the callee owns, of a regular file, readable and writable, into which each measurement is written before the next one
     * begins, or -1. A job of the same model, data, runner and `journal_of` that finds it does not measure again what it has;
     * a file of another one is overwritten. NULL: there is no journal.
     */
    int (*journal)(void *arg);
    void *journal_arg;
    const char *
        journal_of; /* what else the measurements depend on, such as the spec; NULL: nothing */
};

QDQ_API const char *qdq_version(void);
QDQ_API const char *qdq_stage_name(enum qdq_stage stage);

/*
 * Opens the engine. ONNX Runtime is loaded when a model has to run for the first time;
 * everything else works without it. One engine serves one qdq_quantize() at a time.
 * NO_MEMORY, and the codes of qdq_catalog_open().
 */
QDQ_API enum qdq_code qdq_engine_open(const struct qdq_engine_options *options,
                                      struct qdq_engine **ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_engine_close(struct qdq_engine **engine);

/*
 * Opens an empty regular file without a name, readable and writable; the caller closes it.
 * Returns -1 and sets errno on failure. Called on the thread that works.
 */
typedef int (*qdq_open_temporary_fn)(void *arg);
/* Sets how all engines of the process open temporary files, for a process that can open
   no path. NULL: in the folder TMPDIR or /var/tmp, or in memory. */
QDQ_API void qdq_set_open_temporary(qdq_open_temporary_fn fn, void *arg);

/* Sets the number of threads (>= 1) for the next model that runs. ONNX Runtime is started
   again, in the calling process as it is then: its threads are bound by what binds the
   caller. The caller has no work in progress. */
QDQ_API void qdq_engine_set_threads(struct qdq_engine *engine, int threads);

/* Returns the catalog that the engine plans with; it lives as long as the engine. */
QDQ_API const struct qdq_catalog *qdq_engine_catalog(const struct qdq_engine *engine);

/* Returns the limits that the engine was opened with; they live as long as the
   engine. */
QDQ_API const struct qdq_limits *qdq_engine_limits(const struct qdq_engine *engine);

/* Loads ONNX Runtime, unless it is loaded, and returns its version; borrowed.
   RUNTIME_MISSING says why it cannot be loaded. */
QDQ_API enum qdq_code qdq_engine_runtime_version(struct qdq_engine *engine,
                                                 const char **ret,
                                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* The GPU that an engine was opened with. */
struct qdq_gpu {
    bool cuda;      /* the module, the driver and at least one device work */
    char name[128]; /* "" when not known */
};

/* Tries the GPU once, as a job would that asks for one. The errors of that job,
   above all NO_DEVICE, say why it cannot be used. *ret is filled in any case. */
QDQ_API enum qdq_code qdq_engine_gpu(struct qdq_engine *engine, struct qdq_gpu *ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Returns the identity of a calibration's accumulators as text, which the caller frees:
 * the engine's version, device, model, data (or the random samples asked for) and the
 * members of the spec that change the inputs or the observations. dataset_id is NULL
 * when there is no data. Method, layers, cases and ranges are not part of it. Returns
 * NULL when out of memory.
 */
QDQ_API char *qdq_observations_identity(const struct qdq_spec *spec,
                                        const char *model_id, const char *dataset_id);

/*
 * Returns the identity of the times that a job of the spec measures, as text, which the caller frees:
 * the engine's version, this processor, the model, and the threads and the batch of the runs.
 * Returns NULL when out of memory.
 */
QDQ_API char *qdq_times_identity(const struct qdq_spec *spec, const char *model_id);

/* The first bytes of a file of times. */
#define QDQ_TIMES_MAGIC "QDQTIMES1\n"

/* The first bytes of a file of observations. */
#define QDQ_OBSERVATIONS_MAGIC "QDQOBS2\n"

/*
 * Quantizes. On success the output files hold the whole model (not synced) and *ret is
 * the report. A model for which the report's `gates` has one that is not met must not be
 * handed on. On failure the contents of the output files
 * are undefined and *ret does not change.
 */
QDQ_API enum qdq_code qdq_quantize(struct qdq_engine *engine,
                                   const struct qdq_work *work, struct qdq_report **ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
