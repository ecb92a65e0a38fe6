/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds a layer given what it reads in the rounded model, x, and how far its target is from the float
 * model's, d, while its own weight W is not rounded. Real numbers that come nearest to the target are
 * T = W + (E[x x^T] + damping)^-1 E[x d^T]; T is rounded by the moment of x in the place of W. (As in
 * GPTQ with asymmetric calibration: GPTAQ, Li et al. 2025; Qronos, Zhang et al. 2025.) The bias takes
 * the mean of what is left.
 */
#ifndef QDQI_STAGES_RECONSTRUCT_ROUND_LAYER_H
#define QDQI_STAGES_RECONSTRUCT_ROUND_LAYER_H

#include "stages/reconstruct/layers.h"

/* Gives the weight and the bias of a layer, whose pairs are complete, other numbers. *ret_why is NULL, or
   the reason why they are as before. NO_MEMORY. */
enum qdq_code qdqi_rebuild_layer(struct qdqi_attempt *attempt,
                                 const struct qdqi_rebuilt *layer, const char **ret_why,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
