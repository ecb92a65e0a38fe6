/* SPDX-License-Identifier: Apache-2.0 */
/* Scales with a sign, for weights that use the whole range of a symmetric format: -8 to 7. */
#ifndef QDQI_GRAPH_WEIGHTS_FULL_RANGE_H
#define QDQI_GRAPH_WEIGHTS_FULL_RANGE_H

#include "files/model/constant.h"
#include "numbers/arithmetic/params.h"
#include "qdq/error.h"

/* Returns whether the scales of a format's weights may have a sign: it is one of integers of
   fewer than 8 bits, with negative ones. */
bool qdqi_format_has_signs(enum qdqi_format format);

/*
 * Replaces each scale, which is that of the largest |x|, by the one with the least squared
 * error of its elements among itself and those of either sign with which the largest |x|
 * becomes the lowest integer; `narrow`: among smaller ones, too. NO_MEMORY.
 */
enum qdq_code qdqi_weight_fill_range(const struct qdqi_constant *weight, bool narrow,
                                     struct qdqi_params *p,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
