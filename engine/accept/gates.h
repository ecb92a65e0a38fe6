/* SPDX-License-Identifier: Apache-2.0 */
/* spec.accept: what is asked of the quantized model, held against what was measured. */
#ifndef QDQI_ACCEPT_GATES_H
#define QDQI_ACCEPT_GATES_H

#include "base/warnings.h"
#include "qdq/report.h"

/* Is anything asked of any output? */
bool qdqi_gates_ask(const struct qdq_accept *accept);

/*
 * Before the work, of the model alone: the outputs that accept names are there
 * (UNMATCHED, or a warning) and can be compared (INVALID_SPEC, UNSUPPORTED).
 */
enum qdq_code qdqi_gates_check(const struct qdq_spec *spec,
                               const struct qdq_model_info *model,
                               struct qdqi_warnings *warnings, struct qdqi_arena *arena,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * After the evaluation: fills the report's `missed`. not_float: by output of the model,
 * those that turned out to hold no floating point when they ran. An output that a bound
 * is asked of and that was not measured has missed it.
 */
enum qdq_code qdqi_gates_judge(const struct qdq_accept *accept,
                               const struct qdq_model_info *model,
                               const bool *not_float, struct qdq_report *report,
                               struct qdqi_arena *arena,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
