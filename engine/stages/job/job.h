/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the stages of one quantization share. quantize.c calls the stages
   in order; each reads the members that earlier ones filled in and fills in its own. */
#ifndef QDQI_STAGES_JOB_JOB_H
#define QDQI_STAGES_JOB_JOB_H

#include "ground/base/seconds.h"
#include "ground/base/warnings.h"
#include "files/data/feed.h"
#include "runtimes/engine.h"
#include "numbers/arithmetic/moment.h"
#include "numbers/arithmetic/params.h"
#include "files/model/write.h"
#include "plan/placement/float16_nodes.h"
#include "plan/placement/plan.h"
#include "numbers/range/method.h"

/* The report that the caller gets, and the objects that it points into. */
struct qdqi_report {
    struct qdq_report view; /* must be first: the caller has a pointer to it */
    struct qdqi_arena *arena;
    struct qdq_model *model;
    struct qdq_model *prepared;  /* NULL when preparation changed nothing */
    struct qdq_model *equalized; /* NULL when nothing was equalized */
    struct qdq_model *smoothed;  /* NULL when nothing was smoothed */
    struct qdq_plan *plan;
};

/* The moments of the input of the layers that use one weight. */
struct qdqi_layer_moments {
    const char *why;   /* there are none; NULL: there are */
    const char *key;   /* in kept observations: names of the weight and of its layers */
    bool is_kept;      /* they are those of an earlier calibration */
    bool outputs_last; /* the layers multiply by the weight with its outputs along the
                          last axis, and not along the first one */
    size_t groups;
    struct qdqi_moment *moments;         /* by group */
    struct qdqi_kept_rounded *roundings; /* of the weight (roundings.h), in a list */
    struct qdqi_layer_moments *next;
};

struct qdqi_judged;

struct qdqi_job {
    struct qdq_engine *engine;
    const struct qdq_work *work;
    /* the spec as it was asked for; that of `work` may be what a recipe chose */
    const struct qdq_spec *asked;
    struct qdqi_report *report; /* owns models and plan */
    struct qdqi_arena *arena;   /* the report's arena */
    struct qdqi_arena *scratch; /* for edited models; freed with the job */
    struct qdq_model *original; /* the model that was given */
    /* the model that is quantized, after preparation, equalization and
       smoothing */
    struct qdq_model *model;
    struct qdq_plan *plan;
    const struct qdqi_device *dev; /* where models run; NULL for the CPU */
    const char *device;            /* name of the device for the report */
    int64_t batch; /* limit of the batch size; 0 for none besides the spec's */
    struct qdq_dataset *dataset; /* given or random data; NULL when there are none */
    struct qdq_model_info fixed; /* the model's, with the input sizes of the spec */
    struct qdqi_range *ranges;   /* by planned activation */
    /* by planned activation: "given", "operator" or the method's name */
    const char **methods;
    /* what calibration observed; NULL when it observed nothing */
    const struct qdqi_observers *observers;
    /* samples that calibration read, from the first one on */
    int64_t calibrated_samples;
    int64_t skipped_samples;  /* samples of these that it skipped */
    struct qdqi_map *moments; /* from a weight's name to its qdqi_layer_moments */
    struct qdqi_layer_moments *all_moments;
    /* bytes that roundings of the weights may still take; NULL: they are not kept */
    uint64_t *roundings_left;
    const struct qdqi_kept_peaks
        *kept_peaks;    /* magnitudes to keep (numbers/range/observations.h) */
    int64_t inferences; /* number of times that calibration ran the model */
    double run_seconds; /* that one of these took with one thread; 0: not measured */
    size_t reused;      /* activations with observations of an earlier calibration */
    /* approximate number of samples; 0 for none or not yet known */
    uint64_t to_evaluate;
    /* dtype is QDQI_UNKNOWN when the spec has no `float` */
    struct qdqi_float16_nodes float16;
    /* cached facts about constants; NULL when there are none yet */
    struct qdqi_map *float16_constants;
    /* the written result that is still to be converted; proto is NULL when there is
       none */
    struct qdqi_edited unconverted;
    /* by output: the evaluation found that it is not floating point; NULL when there was
       no evaluation */
    const bool *not_float;
    const char *model_id;    /* as it is known now, or NULL */
    const char *source;      /* id of the data that the ranges come from, or NULL */
    const char *spec_digest; /* digest of the frozen spec, or NULL */
    /* whether the runtime could not load the result, which has a format that it may
       lack */
    bool lacks_format;
    /* file with the result as the session that judges it runs it; -1: there is none */
    int optimized;
    /* the nodes of the result as the session that judges it ran them; nodes is NULL: there are
       none, for the reason of no_nodes, if it is not NULL */
    struct qdqi_trace nodes;
    const char *no_nodes;
    struct qdqi_judged *judged; /* the candidate that was judged last; never NULL */
    double stage_began;         /* by qdqi_seconds_now() */
    int stage_threads;          /* threads that the engine's own work could use in it */
    uint64_t stage_bytes;       /* of models and weights that it dealt with */
    bool
        tries; /* a stage repeats others for a candidate: progress is that of the stage */
    struct qdq_progress shown;  /* the progress that was told last */
    struct qdqi_whatif *whatif; /* NULL until it is needed */
    /* the spec with entries for the layers that stay in float */
    const struct qdq_spec *searched;
    /* a file for observations that this job alone keeps, in the place of the caller's; -1:
       there is none */
    int observations;
    struct qdqi_warnings warnings;
    /* the warnings of the stages that qdqi_remake() repeats */
    size_t first_made_warning, n_made_warnings;
    /* the warnings given by the choice of scales */
    size_t first_scale_warning, n_scale_warnings;
};

/* job.c: returns whether the present stage has taken so many seconds; 0: there is no bound. */
bool qdqi_job_is_late(const struct qdqi_job *job, int64_t seconds);
/* Warns that a stage ended early, at the bound that stands at `pointer` in the spec. */
enum qdq_code qdqi_job_warn_late(struct qdqi_job *job, int64_t seconds,
                                 const char *pointer,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * choose_device.c: chooses where the job's models run. NO_DEVICE when the spec asks for
 * a GPU and none can be used. When the spec leaves the choice open, that is at most a
 * warning.
 */
enum qdq_code qdqi_job_choose_device(struct qdqi_job *job,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
/* Returns whether the job has data of its own by which a recipe can judge its result. */
bool qdqi_job_can_judge(const struct qdqi_job *job);
/* Returns whether the spec asks for something that uses moments. */
bool qdqi_moments_wanted(const struct qdq_spec *spec);
/* Returns how many samples are run at once if the model leaves the batch size open. */
int64_t qdqi_job_batch(const struct qdqi_job *job);
/*
 * Handles an error of a run. Returns QDQ_OK, with err cleared, when device memory was
 * too small and the run may be repeated from the beginning with half the batch;
 * otherwise returns `code`.
 */
enum qdq_code qdqi_job_halve_batch(struct qdqi_job *job, struct qdqi_feed *feed,
                                   enum qdq_code code,
                                   struct qdq_error *err) QDQ_MUST_CHECK;
/* Does the same for a caller that has no open feed of the job's data. */
enum qdq_code qdqi_job_halve(struct qdqi_job *job, enum qdq_code code,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* report.c: returns an empty report, or NULL when out of memory. */
struct qdqi_report *qdqi_report_new(void);
/* Adds to the report the frozen spec, which contains the ranges that were found, and
   sets its digest. */
enum qdq_code qdqi_report_freeze(struct qdqi_job *job,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_report_fill(struct qdqi_job *job,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the number of threads that can do the engine's own work at the same time. */
int qdqi_job_threads(const struct qdqi_job *job);

/* Reports progress to the caller, which never sees it fall. CANCELLED when the caller asks to
   stop. */
enum qdq_code qdqi_job_progress(struct qdqi_job *job, enum qdq_stage stage,
                                uint64_t done, uint64_t total,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether a run is so short that to wake the runtime's threads would take longer than
   they save. */
bool qdqi_job_runs_fast(const struct qdqi_job *job);

/* Adds the warnings of a feed to the job's. */
enum qdq_code qdqi_job_add_warnings(struct qdqi_job *job, const struct qdqi_feed *feed,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
