/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt to quantize the model by one spec: the models that it makes of the given one, its
 * plan, ranges and scales. A trial is a second attempt, made beside the first. Functions that
 * only read an attempt take it as const; they may add to its warnings and to its arenas.
 */
#ifndef QDQI_STAGES_ATTEMPT_ATTEMPT_H
#define QDQI_STAGES_ATTEMPT_ATTEMPT_H

#include "files/data/feed.h"
#include "numbers/arithmetic/moment.h"
#include "numbers/arithmetic/params.h"
#include "numbers/range/method.h"
#include "plan/placement/float16_nodes.h"
#include "plan/placement/plan.h"
#include "stages/attempt/context.h"
#include "stages/attempt/warnings.h"

/* The moments of the input of the layers that use one weight. */
struct qdqi_layer_moments {
    const char *why; /* there are none; NULL: there are */
    const char *
        key; /* in kept observations: names of the target, of the weight and of its layers */
    bool is_kept;        /* they are those of an earlier calibration */
    bool outputs_last;   /* the layers multiply by the weight with its outputs along the
                          last axis, and not along the first one */
    const char *sources; /* the tensors that the layers read, and how */
    /* the weight whose layers read the same, and whose moments these are; NULL: their own */
    struct qdqi_layer_moments *owner;
    size_t groups;
    struct qdqi_moment *moments;         /* by group */
    struct qdqi_kept_rounded *roundings; /* of the weight (roundings.h), in a list */
    struct qdqi_layer_moments *next;
};

/* The moments of all weights. */
struct qdqi_weight_moments {
    struct qdqi_map *by_weight; /* from a weight's name to its qdqi_layer_moments */
    struct qdqi_layer_moments *first;
    bool keeps_roundings;
    uint64_t roundings_left; /* bytes that they may still take */
    uint64_t observed;       /* hash of what was observed beside them */
};

/* The facts that calibration found out about the model and the data. */
struct qdqi_calibrated {
    const struct qdqi_observers *observers; /* NULL when it observed nothing */
    const struct qdqi_kept_peaks
        *peaks;         /* magnitudes to keep (numbers/range/observations.h) */
    int64_t samples;    /* that it read, from the first one on */
    int64_t skipped;    /* of these */
    int64_t inferences; /* number of times that it ran the model */
    size_t observed;    /* activations that it observed */
    size_t reused;      /* activations with observations of an earlier calibration */
    double run_seconds; /* that a run took with one thread; 0: not measured */
};

/* Rows of the report. */
struct qdqi_attempt_rows {
    const struct qdq_equalization *equalization;
    const struct qdq_smoothing *smoothing;
    const struct qdq_kv_cache *kv_cache;
    const struct qdq_tensor_report *tensors;
    const struct qdq_weight_report *weights;
    size_t n_equalization, n_smoothing, n_tensors, n_weights;
    const struct qdq_float_report *floats;
};

/* The work that the present stage has put into an attempt. */
struct qdqi_effort {
    int threads;    /* that the engine's own work could use */
    uint64_t bytes; /* of models and weights that it dealt with */
};

struct qdqi_attempt {
    const struct qdqi_context *context;
    /* whose models and observations this one shares, and that outlives it; NULL: none */
    const struct qdqi_attempt *base;
    bool is_trial; /* its progress is that of the stage that tries it */
    const struct qdq_spec *spec;
    const struct qdq_spec
        *planned_by;            /* the spec with entries for layers left in float */
    struct qdqi_arena *arena;   /* lives as long as the attempt */
    struct qdqi_arena *scratch; /* for edited models; freed with the job */
    struct qdqi_stage_warnings *warnings; /* never NULL */
    struct qdqi_effort effort;
    /* the models that were made, each NULL where it is the one before */
    struct qdq_model *prepared, *equalized, *smoothed;
    const struct qdq_model *model; /* the last of them, which is quantized */
    struct qdq_model_info fixed;   /* the model's, with the input sizes of the spec */
    struct qdq_plan *plan;
    int64_t batch; /* limit of the batch size; 0 for none besides the spec's */
    /* a file for observations in the place of the caller's, borrowed; -1: there is none */
    int observations;
    struct qdqi_calibrated calibrated;
    struct qdqi_range *ranges; /* by planned activation */
    /* by planned activation: "given", "operator" or the method's name */
    const char **methods;
    struct qdqi_weight_moments *moments; /* NULL: none are wanted */
    /* dtype is QDQI_UNKNOWN when the spec has no `float` */
    struct qdqi_float16_nodes float16;
    /* cached facts about constants; NULL when there are none yet */
    struct qdqi_map *float16_constants;
    struct qdqi_scales scales;
    struct qdqi_attempt_rows rows;
};

/* Makes an attempt by a spec, which it borrows, without models. NO_MEMORY. */
enum qdq_code qdqi_attempt_new(const struct qdqi_context *context,
                               const struct qdq_spec *spec, struct qdqi_attempt **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes a trial by another spec, which keeps its observations in a file of its own; -1: in
   the caller's. NO_MEMORY. */
enum qdq_code qdqi_attempt_beside(const struct qdqi_attempt *other,
                                  const struct qdq_spec *spec, int observations,
                                  struct qdqi_attempt **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes a trial that shares models and observations with its base and has no plan. NO_MEMORY. */
enum qdq_code qdqi_attempt_derive(const struct qdqi_attempt *base,
                                  struct qdqi_attempt **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Puts a trial by another spec, with scales, in the place of an attempt, which is freed, and
   clears *trial. After a failure the attempt is as before. NO_MEMORY. */
enum qdq_code qdqi_attempt_adopt(struct qdqi_attempt **attempt,
                                 struct qdqi_attempt **trial,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Frees the attempt's moments, which are its own, not its base's. */
void qdqi_attempt_forget_moments(struct qdqi_attempt *attempt);

/* Frees everything that the report does not refer to. The context may end before the attempt. */
void qdqi_attempt_finish(struct qdqi_attempt *attempt);
void qdqi_attempt_free(struct qdqi_attempt **attempt);

/* Adds a warning. `code` is a literal; the node, which may be NULL, and the formatted detail
   are copied. NO_MEMORY. */
enum qdq_code qdqi_attempt_warn(const struct qdqi_attempt *attempt,
                                struct qdq_error *err, const char *code,
                                const char *node, const char *fmt, ...)
    QDQ_PRINTF(5, 6) QDQ_MUST_CHECK;
/* Adds copies of warnings. NO_MEMORY. */
enum qdq_code qdqi_attempt_add_warnings(const struct qdqi_attempt *attempt,
                                        const struct qdq_warning *rows, size_t n,
                                        struct qdq_error *err) QDQ_MUST_CHECK;
/* Warns that a stage ended early, at the bound that stands at `pointer` in the spec. */
enum qdq_code qdqi_warn_time_is_up(const struct qdqi_attempt *attempt, int64_t seconds,
                                   const char *pointer,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Reports progress, unless the attempt is a trial. CANCELLED when the caller asks to stop. */
enum qdq_code qdqi_attempt_progress(const struct qdqi_attempt *attempt,
                                    enum qdq_stage stage, uint64_t done, uint64_t total,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes the equalized model if the spec asks for it. */
enum qdq_code qdqi_attempt_equalize(struct qdqi_attempt *attempt,
                                    struct qdq_error *err) QDQ_MUST_CHECK;
/* Makes the plan, and takes its warnings. */
enum qdq_code qdqi_attempt_plan(struct qdqi_attempt *attempt,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the observers of the calibration by the names of their tensors; NULL when out of
   memory. */
struct qdqi_map *qdqi_attempt_index_observers(const struct qdqi_attempt *attempt);

/* Returns whether a run is so short that to wake the runtime's threads would take longer than
   they save. */
bool qdqi_attempt_runs_fast(const struct qdqi_attempt *attempt);

/* Returns whether the model is so large that its weights are not to be in memory twice. */
bool qdqi_attempt_is_large(const struct qdqi_attempt *attempt);

/* Returns whether the spec or the plan asks for something that uses moments. */
bool qdqi_moments_wanted(const struct qdqi_attempt *attempt);

/* device.c: chooses where the job's models run, and allocates the name of the device.
   NO_DEVICE when the spec asks for a GPU and none can be used. When the spec leaves the choice
   open, that is at most a warning. */
enum qdq_code qdqi_choose_device(const struct qdqi_attempt *attempt,
                                 struct qdqi_context *context, struct qdqi_arena *arena,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* device.c: returns how many samples are run at once if the model leaves the batch size open. */
int64_t qdqi_attempt_batch(const struct qdqi_attempt *attempt);
/*
 * device.c: handles an error of a run. Returns QDQ_OK, with err cleared, when device memory was
 * too small and the run may be repeated from the beginning with half the batch;
 * otherwise returns `code`.
 */
enum qdq_code qdqi_attempt_halve_batch(struct qdqi_attempt *attempt,
                                       struct qdqi_feed *feed, enum qdq_code code,
                                       struct qdq_error *err) QDQ_MUST_CHECK;
/* device.c: does the same for a caller that has no open feed of the job's data. */
enum qdq_code qdqi_attempt_halve(struct qdqi_attempt *attempt, enum qdq_code code,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
