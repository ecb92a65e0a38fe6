/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a spec's calibration settings to a model's inputs: calibration.dims sets the
 * sizes of symbolic dimensions; calibration.random is checked against the inputs.
 */
#ifndef QDQI_FILES_DATA_INPUTS_H
#define QDQI_FILES_DATA_INPUTS_H

#include "ground/base/warnings.h"
#include "qdq/model.h"

/* Makes a copy of `model` whose inputs have the sizes of spec->calibration.dims. */
enum qdq_code qdqi_inputs_fix(const struct qdq_model_info *model,
                              const struct qdq_spec *spec, struct qdqi_arena *arena,
                              struct qdq_model_info *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * UNMATCHED, or a warning, for a symbol in dims or an input in random or preprocess that the model
 * does not have. Where random samples are asked for, INVALID_SPEC or UNSUPPORTED for an
 * input that they cannot be made for. Each error names its place in the spec.
 */
enum qdq_code qdqi_inputs_check(const struct qdq_model_info *model,
                                const struct qdq_spec *spec,
                                struct qdqi_warnings *warnings,
                                struct qdqi_arena *arena,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
