/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of opsets that ONNX Runtime does not load yet, as models of the latest one that it does,
 * where their nodes mean the same in both (ground/tbl/later_opsets.h).
 */
#ifndef QDQI_TRANSFORM_PREPARE_LOWER_OPSET_H
#define QDQI_TRANSFORM_PREPARE_LOWER_OPSET_H

#include "transform/prepare/convert_opset.h"

/* The latest opset and IR version that ONNX Runtime 1.31.1 loads, and the IR version of the latest opset
   that is known here (QDQI_OPSET_MAX). */
enum { QDQI_OPSET_THAT_RUNS = 26, QDQI_IR_THAT_RUNS = 13, QDQI_IR_KNOWN = 14 };

/* Returns whether the model, or a function of its own, has a later opset or IR version that is known. */
bool qdqi_is_later(const Onnx__ModelProto *model);

/*
 * Sets *ret to the model with that opset, or to `model` itself where it is none of a later one,
 * or a node means something else there; obstacle->opset is not 0 then. Changed messages are
 * copied into the arena. NO_MEMORY.
 */
enum qdq_code qdqi_lower_opset(const Onnx__ModelProto *model, struct qdqi_arena *arena,
                               const Onnx__ModelProto **ret,
                               struct qdqi_obstacle *obstacle,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
