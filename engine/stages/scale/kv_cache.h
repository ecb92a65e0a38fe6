/* SPDX-License-Identifier: Apache-2.0 */
/* Scales of a decoder's caches of keys and values (output.kv_cache). */
#ifndef QDQI_STAGES_SCALE_KV_CACHE_H
#define QDQI_STAGES_SCALE_KV_CACHE_H

#include "stages/attempt/attempt.h"

/*
 * Runs the attempt's model, as it is then, over the calibration data, and sets a->rows.kv_cache,
 * if the spec asks for it: UNSUPPORTED where the model has no outputs "present.N.key" and
 * "present.N.value" of float32, NO_CALIBRATION without data, NONFINITE where one of them is not
 * finite.
 */
enum qdq_code qdqi_kv_cache(struct qdqi_attempt *attempt,
                            struct qdq_error *err) QDQ_MUST_CHECK;

#endif
