/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that all attempts of a job share. They are read-only after the model is loaded,
 * except for the engine, which opens runtimes when they are needed, and the three that other
 * members point to: the account of the present stage, outputs of the float model, and the last
 * candidate.
 */
#ifndef QDQI_STAGES_ATTEMPT_CONTEXT_H
#define QDQI_STAGES_ATTEMPT_CONTEXT_H

#include "ground/base/seconds.h"
#include "qdq/quantize.h"
#include "runtimes/engine.h"

struct qdqi_float_outputs;
struct qdqi_kept_times;
struct qdqi_last_candidate;

/* The account of the stage that runs. */
struct qdqi_account {
    double began;              /* by qdqi_seconds_now() */
    struct qdq_progress shown; /* the progress that was told last */
    /* approximate number of samples; 0 for none or not yet known */
    uint64_t to_evaluate;
    uint64_t unknown;      /* see qdq_progress; with those that are over */
    double job_began;      /* by qdqi_seconds_now(): the first stage */
    double processor_then; /* by qdqi_seconds_of_process() */
};

struct qdqi_context {
    struct qdq_engine *engine;
    const struct qdq_work *work;
    const struct qdq_spec *asked;     /* the spec as it was asked for, complete */
    const struct qdq_model *original; /* the model that was given */
    const struct qdqi_device *dev;    /* where models run; NULL for the CPU */
    const char *device;               /* name of the device for the report */
    struct qdq_dataset *dataset;    /* given or random data; NULL when there are none */
    struct qdq_dataset *evaluation; /* given to judge by; NULL: that is `dataset` */
    struct qdqi_account *account;
    struct qdqi_float_outputs *float_outputs;   /* never NULL */
    struct qdqi_last_candidate *last_candidate; /* never NULL */
    struct qdqi_kept_times **kept; /* *kept is NULL until qdqi_kept_times_get() */
};

/* Returns the number of threads that can do the engine's own work at the same time. */
int qdqi_context_threads(const struct qdqi_context *context);

/* Returns whether the present stage has taken so many seconds; 0: there is no bound. */
bool qdqi_time_is_up(const struct qdqi_context *context, int64_t seconds);

/* Reports progress to the caller, which never sees it fall. CANCELLED when the caller asks to
   stop. */
enum qdq_code qdqi_context_progress(const struct qdqi_context *context,
                                    enum qdq_stage stage, uint64_t done, uint64_t total,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Asks the caller whether to stop, and shows the progress as it was told last. CANCELLED. */
enum qdq_code qdqi_context_still_wanted(const struct qdqi_context *context,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the data that the result is judged by; NULL when there are none. */
struct qdq_dataset *qdqi_context_judging_data(const struct qdqi_context *context);

/* Returns whether the job has data of its own by which a recipe can judge its result. */
bool qdqi_context_can_judge(const struct qdqi_context *context);

#endif
