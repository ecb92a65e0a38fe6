/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of layer support that the target onnxruntime tries before those of tbl/layers.h.
 * Its integer kernels also accept constants, if these have the format of the
 * activations; a table may be stored as integers; and the runtime may quantize what
 * recurrent layers read.
 */
LAYER("AddConstant", "Add", WEIGHTED, 1, NONE, ON, one_constant_operand,
      "Add of a computed tensor and a constant")
LAYER("MultiplyConstant", "Mul", WEIGHTED, 1, NONE, ON, one_constant_operand,
      "Mul of a computed tensor and a constant")
LAYER("Embedding", "Gather", TABLE, 0, LAST, ON, gathers_rows,
      "Gather of rows of a constant matrix that nothing else reads")
LAYER("LSTM", "LSTM", RECURRENT, 1, GATES, ASKED, any_node, "LSTM")
LAYER("GRU", "GRU", RECURRENT, 1, GATES, ASKED, any_node, "GRU")
LAYER("RNN", "RNN", RECURRENT, 1, GATES, ASKED, any_node, "RNN")
