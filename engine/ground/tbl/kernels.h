/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators that onnxruntime's CPU provider runs in integers or passes integers
 * through: KERNEL("Op", ROLE). The target onnxruntime quantizes these by default; it
 * uses this table in the place of the states in tbl/layers.h.
 *
 *   COMPUTES  has an integer kernel, which is used if all inputs and outputs have pairs
 *   UNIT      the same, and its output is in [0, 1] for any data
 *   CLIPS     is folded into the QuantizeLinear behind it if the lowest number of that
 *             format is the lower bound of the clipping; so it gets a pair behind it and
 *             none before it
 *   MOVES     moves integers as it moves floats: it is quantized if its input is, with the
 *             scale and zero point of the input
 *
 * Source: onnxruntime's qdq_selector_action_transformer.cc and relu_quant_rewrite.cc.
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
