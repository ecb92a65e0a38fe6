/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators that onnxruntime's CPU provider runs in integers or passes integers through:
 * KERNEL("Op", ROLE). The target onnxruntime quantizes these by default,
 * in the place of the states of tbl/layers.h.
 *
 *   COMPUTES  an integer kernel, when all that it reads and makes has a pair
 *   UNIT      the same, and what it makes lies in [0, 1], whatever the data
 *   CLIPS     folded into the QuantizeLinear behind it, when that has the lowest number
 *             of its format for what is clipped: so the pair is behind it, not before it
 *   MOVES     moves integers as it moves floats: quantized where its input is, with the
 *             same numbers
 *
 * From onnxruntime's qdq_selector_action_transformer.cc and relu_quant_rewrite.cc.
 */
KERNEL("Conv", COMPUTES)
KERNEL("Gemm", COMPUTES)
KERNEL("MatMul", COMPUTES)
KERNEL("Add", COMPUTES)
KERNEL("Mul", COMPUTES)
KERNEL("AveragePool", COMPUTES)
KERNEL("GlobalAveragePool", COMPUTES)
KERNEL("LeakyRelu", COMPUTES)
KERNEL("Concat", COMPUTES)
KERNEL("Sigmoid", UNIT)
KERNEL("Softmax", UNIT)
KERNEL("Relu", CLIPS)
KERNEL("Clip", CLIPS)
KERNEL("MaxPool", MOVES)
KERNEL("Reshape", MOVES)
KERNEL("Transpose", MOVES)
KERNEL("Squeeze", MOVES)
KERNEL("Unsqueeze", MOVES)
KERNEL("Flatten", MOVES)
KERNEL("Gather", MOVES)
KERNEL("Slice", MOVES)
KERNEL("Split", MOVES)
KERNEL("Resize", MOVES)
KERNEL("Pad", MOVES)
KERNEL("Identity", MOVES)
KERNEL("Dropout", MOVES)
