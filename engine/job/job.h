/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that the stages of one quantization share: quantize.c walks through them,
 * each stage reads the part that the earlier ones filled in, and fills in its own.
 */
#ifndef QDQI_JOB_JOB_H
#define QDQI_JOB_JOB_H

#include "base/warnings.h"
#include "data/feed.h"
#include "number/params.h"
#include "model/write.h"
#include "plan/low.h"
#include "plan/plan.h"
#include "qdq/quantize.h"
#include "range/method.h"
#include "run/session.h"

struct qdq_engine {
    char *library;                /* of ONNX Runtime, NULL: not configured */
    struct qdqi_runtime *runtime; /* NULL until a model has to be run */
    struct qdq_error no_runtime; /* why it could not be loaded; it is not tried again */
    int threads;
    struct qdq_limits limits;
    struct qdq_catalog *catalog;
    char *cuda_module; /* NULL: not configured */
    int device;
    bool device_chosen;
    bool has_device;            /* one was found, whether or not it can be used */
    struct qdqi_cuda *cuda;     /* NULL until a job wants a device */
    struct qdqi_place *place;   /* NULL: likewise, or it cannot be used */
    struct qdq_error no_device; /* why; it is not tried again */
};

/* The report as its caller sees it, and what it keeps alive. */
struct qdqi_report {
    struct qdq_report view; /* first: the caller's pointer */
    struct qdqi_arena *arena;
    struct qdq_model *model;
    struct qdq_model *prepared;  /* NULL: the model as it is */
    struct qdq_model *equalized; /* NULL: that which was prepared */
    struct qdq_plan *plan;
};

struct qdqi_job {
    struct qdq_engine *engine;
    const struct qdq_work *work;
    struct qdqi_report *report; /* owns models and plan */
    struct qdqi_arena *arena;   /* the report's */
    struct qdqi_arena *scratch; /* edited models; dies with the job */
    struct qdq_model *original; /* as it was given */
    struct qdq_model *model;    /* that is quantized: prepared, equalized */
    struct qdq_plan *plan;
    const struct qdqi_place *place; /* where models run; NULL: on the CPU */
    const char *device;             /* its name for the report */
    int64_t batch; /* at most so many samples at once; 0: as the spec says */
    struct qdq_dataset *dataset;    /* given or made up; NULL: neither */
    struct qdq_model_info fixed;    /* the model's, as the spec sizes its inputs */
    struct qdqi_range *ranges;      /* by planned activation */
    const char **methods;           /* likewise: "given" or the method's name */
    int64_t calibrated_samples;     /* that calibration read, from the first on */
    int64_t skipped_samples;        /* of these, that it left out */
    int64_t inferences;             /* runs of the model that it made */
    size_t reused;                  /* activations that were observed earlier */
    uint64_t to_evaluate;           /* samples, about; 0: none, or not known yet */
    struct qdqi_low low;            /* dtype QDQI_UNKNOWN: `float` asks for nothing */
    struct qdqi_map *low_constants; /* what is known of them; NULL: not asked yet */
    struct qdqi_edited to_lower; /* written, and to be lowered yet; proto NULL: not */
    const char *source;          /* id of the data that the ranges come from, or NULL */
    const char *spec_digest;     /* of the frozen spec, or NULL */
    bool
        lacks_format; /* the runtime cannot load the result, for a format of it, surely */
    struct qdqi_whatif *whatif;      /* NULL: nobody has asked */
    const struct qdq_spec *searched; /* the spec with the layers that stay in float */
    struct qdqi_warnings warnings;
    size_t first_scale_warning, n_scale_warnings; /* of those: of choosing scales */
};

/* engine.c: the runtime, loaded when it is first asked for. RUNTIME_MISSING. */
enum qdq_code qdqi_engine_runtime(struct qdq_engine *engine, struct qdqi_runtime **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* choose_place.c: where the job's models run. NO_DEVICE when the spec asks for a GPU and
   there is none to be used; where it leaves the choice, a warning at most. */
enum qdq_code qdqi_job_choose_place(struct qdqi_job *job,
                                    struct qdq_error *err) QDQ_MUST_CHECK;
/* How many samples are run at once, where the model leaves that open. */
int64_t qdqi_job_batch(const struct qdqi_job *job);
/*
 * After `code` came of a run of the feed: QDQ_OK when it may go with half the batch,
 * from the beginning, for which err is cleared; else the code.
 */
enum qdq_code qdqi_job_halve_batch(struct qdqi_job *job, struct qdqi_feed *feed,
                                   enum qdq_code code,
                                   struct qdq_error *err) QDQ_MUST_CHECK;
/* The same, of runs of the job's data by whoever has no feed any more. */
enum qdq_code qdqi_job_halve(struct qdqi_job *job, enum qdq_code code,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* report.c: an empty report; what it says about the job as a whole. */
struct qdqi_report *qdqi_report_new(void);
/* The spec with what was found, for those who run it again, and its digest. */
enum qdq_code qdqi_report_freeze(struct qdqi_job *job,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_report_fill(struct qdqi_job *job,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Tells progress; CANCELLED when the caller wants no more. */
enum qdq_code qdqi_job_progress(struct qdqi_job *job, enum qdq_stage stage,
                                uint64_t done, uint64_t total,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Copies a feed's warnings into the job's. */
enum qdq_code qdqi_job_take_warnings(struct qdqi_job *job, const struct qdqi_feed *feed,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
