/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics for the difference between two runs of a model, accumulated over samples. */
#ifndef QDQI_STAGES_EVALUATE_METRICS_H
#define QDQI_STAGES_EVALUATE_METRICS_H

#include "qdq/report.h"

struct qdqi_metrics {
    double signal, noise; /* sums of f^2 and of (f - q)^2 */
    double cosine;        /* sum over samples */
    int64_t samples;
    double max_abs_error;
    /* rows along the last axis, and those with the same top-1 */
    int64_t rows, agreeing;
};

/* Adds one float32 output of a run: n elements of `samples` samples, in rows of
   `last` elements (the size of the last axis; top-1 is not computed for 0 or 1). */
void qdqi_metrics_update(struct qdqi_metrics *m, const float *f, const float *q,
                         size_t n, int64_t samples, size_t last);

/* Computes the metrics described in qdq/report.h. */
void qdqi_metrics_finish(const struct qdqi_metrics *m, const char *name,
                         struct qdq_output_report *ret);

#endif
