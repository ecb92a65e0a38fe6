/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model's inputs as a spec's calibration has them: symbolic dimensions that
 * calibration.dims gives a size have it, and what calibration.random says is held
 * against them.
 */
#ifndef QDQI_DATA_INPUTS_H
#define QDQI_DATA_INPUTS_H

#include "base/warnings.h"
#include "qdq/model.h"

/* A copy of `model` whose inputs have the sizes of spec->calibration.dims. */
enum qdq_code qdqi_inputs_fix(const struct qdq_model_info *model,
                              const struct qdq_spec *spec, struct qdqi_arena *arena,
                              struct qdq_model_info *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * UNMATCHED, or a warning, for a symbol of dims or an input of random that the model
 * lacks; where random samples are asked for, INVALID_SPEC or UNSUPPORTED for an input
 * that none can be made for. Names its place in the spec.
 */
enum qdq_code qdqi_inputs_check(const struct qdq_model_info *model,
                                const struct qdq_spec *spec,
                                struct qdqi_warnings *warnings,
                                struct qdqi_arena *arena,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
