/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights for kernels that add two products of 8 bits in 16 bits, as those of x86 without
 * VNNI do (`vpmaddubsw`): of an activation from 0 to 255, or one of int8 that 128 was added
 * to, and a weight. The two are neighbours among the inputs of one output: along the axis of
 * the input channels, and from the last one of an element of the kernel to the first one of
 * the next. The sum saturates only if two weights of the same sign are together beyond 128.
 */
#ifndef QDQI_GRAPH_WEIGHTS_PAIRS_H
#define QDQI_GRAPH_WEIGHTS_PAIRS_H

#include "files/model/constant.h"
#include "numbers/arithmetic/params.h"

/* Widens the scales of an int8 weight just so far that no sum saturates, when its integers
   are the nearest ones. `inputs` is the axis of its input channels, p->axis that of its
   outputs or -1, without blocks. The weight may be a fill: then its integers become at most
   64. */
void qdqi_pairs_widen(const struct qdqi_constant *weight, int inputs,
                      struct qdqi_params *p);

/* Makes integers of such a weight, in C order, smaller where sums of two would saturate:
   those that were not rounded to the nearest one. */
void qdqi_pairs_fit(const struct qdqi_constant *weight, int inputs, int axis,
                    int16_t *integers);

#endif
