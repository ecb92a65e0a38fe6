/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement for the target onnxruntime: a layer becomes an integer kernel when what it
 * makes has a pair, too, and everybody who reads a tensor reads it from its pair. Numbers
 * are shared where data only move; biases become int32.
 */
#ifndef QDQI_PLAN_OUTPUTS_H
#define QDQI_PLAN_OUTPUTS_H

#include "layers/kernels.h"
#include "plan/planner.h"

/*
 * What the outputs of layers get, when all have been decided on: nothing with a target
 * other than onnxruntime.
 */
struct qdqi_outputs {
    struct qdqi_map *leaders; /* tensor -> the first of those whose numbers it has */
    struct qdqi_map *units;   /* tensors that lie in [0, 1] */
};

/* Fills in quantized_outputs of all layers, and quantized_inputs of those that move data
   that have pairs. NO_MEMORY. */
enum qdq_code qdqi_outputs_decide(struct planner *p, struct qdqi_outputs *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* When the activations are planned: who shares whose numbers, who has given ones, that
   all read them; and the biases. NO_MEMORY. */
enum qdq_code qdqi_outputs_plan(struct planner *p, const struct qdqi_outputs *outputs,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
