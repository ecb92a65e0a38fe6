/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds of spec.accept, which the figures of the quantized model have to reach. */
#ifndef QDQI_PLAN_GATES_GATES_H
#define QDQI_PLAN_GATES_GATES_H

#include "ground/base/warnings.h"
#include "qdq/report.h"

/* Returns whether a bound is set for any output. Such bounds need an evaluation. */
bool qdqi_gates_ask(const struct qdq_accept *accept);

/* Returns the outputs by whose figures gates and verdicts judge. */
const struct qdq_output_report *qdqi_deciding_outputs(const struct qdq_report *report,
                                                      size_t *ret_n);

/*
 * Checks the bounds before the work, with the model alone: the outputs that accept
 * names must exist (UNMATCHED, or a warning) and be comparable (INVALID_SPEC,
 * UNSUPPORTED).
 */
enum qdq_code qdqi_gates_check(const struct qdq_spec *spec,
                               const struct qdq_model_info *model,
                               struct qdqi_warnings *warnings, struct qdqi_arena *arena,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Fills the report's `gates` when all other figures are in it. `not_float` says for each
 * output of the model whether it turned out to hold no floating point when the model ran;
 * NULL when it did not run. An output that has a bound and was not measured misses it.
 * Bounds are for the result as deployed where it was run in that way.
 */
enum qdq_code qdqi_gates_judge(const struct qdq_accept *accept,
                               const struct qdq_model_info *model,
                               const bool *not_float, struct qdq_report *report,
                               struct qdqi_arena *arena,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
