/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of the target onnxruntime that stand in files of their own;
   plan/placement/target.h says what they do. */
#ifndef QDQI_PLAN_TARGETS_ONNXRUNTIME_ONNXRUNTIME_H
#define QDQI_PLAN_TARGETS_ONNXRUNTIME_ONNXRUNTIME_H

#include "plan/placement/target.h"

/* Returns whether tables can be stored as integers by the spec's formats. */
bool qdqi_onnxruntime_stores_tables(const struct qdq_spec *spec);

/* Returns whether the weight has blocks, and an integer kernel would be made of the layer,
   which has no scales of blocks and fails when it runs. None is made of a Gemm with blocks. */
bool qdqi_onnxruntime_has_blocks(const struct planner *p,
                                 const struct qdq_layer *layer);

bool qdqi_onnxruntime_must_read_raw(const struct planner *p,
                                    const struct qdq_layer *layer);
const char *qdqi_onnxruntime_hindrance(const struct planner *p, struct qdq_layer *layer,
                                       bool wants_inputs);
enum qdq_code qdqi_onnxruntime_decide_outputs(struct planner *p, struct qdq_error *err);
enum qdq_code qdqi_onnxruntime_complete(struct planner *p, struct qdq_error *err);

#endif
