/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of the float model's outputs with those of one way to run the result. */
#ifndef QDQI_STAGES_EVALUATE_OUTPUT_FIGURES_H
#define QDQI_STAGES_EVALUATE_OUTPUT_FIGURES_H

#include "stages/evaluate/metrics.h"
#include "stages/attempt/attempt.h"

struct qdqi_output_figures {
    struct qdqi_metrics *metrics; /* by output */
    bool *measured;               /* by output: compared in some run */
    const char **why; /* by output: why it could not be compared in some run, or NULL */
    bool *has_other_size; /* by output: `why` is qdqi_other_size */
};

/* Why an output, or a layer's, has no figures. */
extern const char qdqi_other_size[];

/* Begins the figures of a model's outputs. NO_MEMORY. */
enum qdq_code qdqi_output_figures_init(struct qdqi_output_figures *compared,
                                       const struct qdq_model *model,
                                       struct qdqi_arena *arena,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether the type is known and not a floating-point type. */
bool qdqi_is_known_and_not_float(enum qdqi_dtype dtype);

/* Adds n outputs of one run to the figures. */
void qdqi_output_figures_add(struct qdqi_output_figures *compared,
                             const struct qdqi_output *f, const struct qdqi_output *q,
                             size_t n, int64_t samples,
                             const struct qdqi_input *inputs);

/* Computes the figures of all outputs that were compared in every run, in the attempt's arena.
   NO_MEMORY. */
enum qdq_code qdqi_output_figures_finish(const struct qdqi_attempt *a,
                                         const struct qdqi_output_figures *compared,
                                         const struct qdq_output_report **ret,
                                         size_t *ret_n,
                                         struct qdq_error *err) QDQ_MUST_CHECK;

#endif
