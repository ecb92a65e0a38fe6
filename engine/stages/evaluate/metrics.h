/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics for the difference between two runs of a model, accumulated over samples. */
#ifndef QDQI_STAGES_EVALUATE_METRICS_H
#define QDQI_STAGES_EVALUATE_METRICS_H

#include "qdq/report.h"
#include "stages/evaluate/language.h"
#include "stages/evaluate/sample_figures.h"
#include "stages/evaluate/scatter.h"
#include "stages/slices/slice_sums.h"

struct qdqi_metrics {
    double signal, noise; /* sums of f^2 and of (f - q)^2 */
    double sum, elements; /* sum of f, and the number of elements */
    double cosine;        /* sum over samples */
    int64_t samples;
    bool is_choice; /* an output of integers or Booleans: choices.h */
    /* of such an output: what stands behind its first axis, counted as rows are that are found
       in the other model's, and whether their number differed in some run */
    int64_t entries, found;
    bool has_other_entries;
    int64_t
        nonfinite; /* elements that are the same infinity, or NaN, in both: left out */
    double max_abs_error;
    /* rows along the last axis, and those with the same top-1 */
    int64_t rows, agreeing;
    struct qdqi_slice_sums slices; /* none without qdqi_metrics_init() */
    struct qdqi_language language; /* likewise */
    struct qdqi_samples by_sample; /* likewise, and where they are kept */
    struct qdqi_scatter scatter;   /* likewise */
};

/* The shape of an output in one run. */
struct qdqi_output_shape {
    const int64_t *dims;
    size_t rank;
};

/*
 * Makes the metrics of all outputs of a model, in the arena, with their slices; `keeps_samples`
 * says whether the figures of single samples are wanted. NO_MEMORY.
 */
enum qdq_code qdqi_metrics_init(const struct qdq_model *model, bool keeps_samples,
                                struct qdqi_arena *arena, struct qdqi_metrics **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the place of the row's largest element. */
size_t qdqi_argmax(const float *row, size_t n);

/* Begins again, without samples. */
void qdqi_metrics_clear(struct qdqi_metrics *m);

/* Adds one float32 output of a run: n elements of `samples` samples. Rows are those along the
   last axis; top-1 is not computed for an axis of 0 or 1 elements. */
void qdqi_metrics_update(struct qdqi_metrics *m, const float *f, const float *q,
                         size_t n, int64_t samples,
                         const struct qdqi_output_shape *shape);

/* Computes the metrics described in qdq/report.h, but for the rows of slices. */
void qdqi_metrics_finish(const struct qdqi_metrics *m, const char *name,
                         struct qdq_output_report *ret);

#endif
