/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scales of formats whose blocks have scales in a type of their own: powers of two
 * (float8e8m0) in the MX formats, float8e4m3fn times one float32 for the whole weight in NVFP4.
 */
#ifndef QDQI_GRAPH_WEIGHTS_BLOCK_SCALES_H
#define QDQI_GRAPH_WEIGHTS_BLOCK_SCALES_H

#include "ground/base/arena.h"
#include "files/model/constant.h"
#include "numbers/arithmetic/params.h"

/*
 * Makes room for the scales' codes of a float32 weight in the arena. Returns false when out of
 * memory.
 */
bool qdqi_block_scales_new(struct qdqi_arena *arena, struct qdqi_params *p);

/*
 * Replaces the scales by those that the format's type has, and sets their codes and, in NVFP4, the
 * weight's own scale. p->scales, which are set, are what blocks of zeros go by.
 *
 * float8e8m0: 2^(floor(log2(amax)) - emax), where emax is the exponent of the largest number of
 * the elements' type (OCP Microscaling Formats 1.0, section 6.3). Numbers beyond the largest one
 * are clipped. `narrow`: that scale or twice it, whichever has the smaller squared error.
 *
 * float8e4m3fn: the weight's scale is amax of the weight / (448 * largest number), and that of a
 * block the nearest float8 to amax / largest number / the weight's scale, never 0. `narrow`: the
 * one of the nine float8 numbers around it, of which seven are smaller, with the least error.
 *
 * Both are multiplied in float32, as two DequantizeLinear do it. NO_MEMORY.
 */
enum qdq_code qdqi_block_scales_find(const struct qdqi_constant *weight, bool narrow,
                                     struct qdqi_params *p,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
