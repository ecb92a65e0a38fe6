/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges runs of a model by the user's task: by labels, or by a metric. One model is judged at a time; both
 * models are judged by the same samples in the same order.
 */
#ifndef QDQI_STAGES_TASK_JUDGE_H
#define QDQI_STAGES_TASK_JUDGE_H

#include "stages/attempt/attempt.h"
#include "stages/task/gathered.h"

/* A value that the task reads: output `place` of the model, or label `place`. */
struct qdqi_task_source {
    bool is_label;
    size_t place;
};

/* How often classes were chosen and were right, for the chance of a guess. */
struct qdqi_class_counts {
    size_t n;
    double *chosen, *labels; /* by class */
};

/* The answers of a model to all rows that have a label, in their order. */
struct qdqi_answers {
    struct qdqi_answered {
        uint32_t label, chosen;
    } * rows;
    size_t n, room;
    bool are_lost; /* they are too many */
};

struct qdqi_judge {
    const struct qdq_task *task; /* borrowed */
    struct qdqi_arena *arena;    /* borrowed */
    struct qdqi_metric *metric;  /* NULL: classification */
    size_t n_sources;
    struct qdqi_task_source *sources;
    size_t n_labels;
    const char **labels; /* names of the arrays */
    const struct qdq_model_info *model;
    bool knows_output; /* of a classification: sources[0].place is set */
    struct qdqi_class_counts counts;
    struct qdqi_gathered gathered;
    struct qdqi_answers
        *answers; /* where those of the model go; borrowed; NULL: nowhere */
};

/* Finds out what the task reads. `data` is the data to judge by. UNMATCHED, CALIBRATION_MISMATCH,
   NO_MEMORY. */
enum qdq_code qdqi_judge_init(struct qdqi_judge *judge, const struct qdq_task *task,
                              const struct qdq_model_info *model,
                              const struct qdq_dataset *data, struct qdqi_arena *arena,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_judge_fini(struct qdqi_judge *judge); /* leaves the metric to its owner */

/* Begins with another model. */
void qdqi_judge_begin(struct qdqi_judge *judge);

/*
 * Judges the samples of one run, by the model's outputs and the labels; *ret gets one fraction for each, unless
 * the metric is called once: then they are gathered. CALIBRATION_MISMATCH for labels that do not fit, UNSUPPORTED for
 * outputs that cannot be cut into samples, and the errors of qdqi_metric_call().
 */
enum qdq_code qdqi_judge_run(struct qdqi_judge *judge, size_t samples,
                             const struct qdqi_output *outputs,
                             const struct qdqi_input *labels, struct qdqi_fraction *ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
