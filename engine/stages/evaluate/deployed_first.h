/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evaluation that nobody asked for, of a result that another runtime than ONNX Runtime judges.
 * The result is first compared as deployed, with outputs of the float model that were kept, so
 * that only one model is in memory at a time. The literal arithmetic and the layers are compared
 * afterwards, when that runtime has given its memory back.
 */
#ifndef QDQI_STAGES_EVALUATE_DEPLOYED_FIRST_H
#define QDQI_STAGES_EVALUATE_DEPLOYED_FIRST_H

#include "stages/evaluate/output_figures.h"
#include "stages/evaluate/reference.h"
#include "stages/report/report.h"

/* Returns whether the job's result is compared in this way first. */
bool qdqi_compares_deployed_first(const struct qdqi_attempt *a);

/* Makes the runs of a recipe, of one sample each, those of the evaluation, if it compares in this
   way, and its samples are among them. `available` is the number of samples that there are. */
void qdqi_deployed_first_widen(const struct qdqi_attempt *a, int64_t available,
                               struct qdqi_reference_runs *runs);

/* The result of qdqi_compare_deployed_first(). */
struct qdqi_deployed_first {
    bool
        has_run; /* the runtime has run the result, or could not, of which a warning tells */
    bool has_figures; /* the report's `deployed` is filled in, and the nodes are kept */
};

/* Compares the result with the float model. It leaves *ret empty where the outputs take too much
   memory. not_float is by output. Errors are those of qdqi_deployed_open() and
   qdqi_reference_open(). */
enum qdq_code qdqi_compare_deployed_first(
    const struct qdqi_attempt *a, struct qdqi_result *result,
    const struct qdq_model *quantized, const struct qdqi_feed_options *samples,
    struct qdqi_output_figures *to, bool *not_float, struct qdqi_deployed_first *ret,
    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
