/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of layer support that the target onnxruntime has before those of tbl/layers.h: its
 * integer kernels take constants, too, as long as they are of the activations' format.
 */
LAYER("AddConstant", "Add", WEIGHTED, 1, NONE, ON, one_constant_operand,
      "Add of a computed tensor and a constant")
LAYER("MultiplyConstant", "Mul", WEIGHTED, 1, NONE, ON, one_constant_operand,
      "Mul of a computed tensor and a constant")
