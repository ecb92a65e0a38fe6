/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of an evaluation, kept for a later job of the same model and data that ends in the same
 * result (stages/attempt/kept_times.h): it computes the same figures of them, and runs no sample.
 */
#ifndef QDQI_STAGES_EVALUATE_KEPT_FIGURES_H
#define QDQI_STAGES_EVALUATE_KEPT_FIGURES_H

#include "stages/attempt/kept_times.h"
#include "stages/evaluate/literal.h"
#include "stages/evaluate/output_figures.h"

/* Everything that runs leave behind. All of it is made already, without any run. */
struct qdqi_evaluated {
    int64_t samples, of;
    bool is_settled;
    size_t n_outputs;
    bool *not_float; /* by output */
    struct qdqi_output_figures *literal, *deployed;
    struct qdqi_comparisons *comparisons;
    int64_t *layer_samples;
};

/* Returns the key of an evaluation: of the result's bytes, of the data, and of the samples that it may
   take. */
uint64_t qdqi_kept_evaluation_key(const struct qdqi_attempt *a,
                                  const struct qdq_model *quantized,
                                  const struct qdqi_feed_options *samples,
                                  int64_t most_layer_samples);

/* Fills in what an earlier job has kept under the key. *ret is false where there is nothing, or
   something else. NO_MEMORY. */
enum qdq_code qdqi_kept_evaluation_take(const struct qdqi_attempt *a, uint64_t key,
                                        struct qdqi_evaluated *to, bool *ret,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/* Keeps it, unless an output could not be compared. NO_MEMORY. */
enum qdq_code qdqi_kept_evaluation_add(const struct qdqi_attempt *a, uint64_t key,
                                       struct qdqi_evaluated *from,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

#endif
