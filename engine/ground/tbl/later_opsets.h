/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema changes of ONNX's own operators behind opset 26, the latest that ONNX Runtime
 * 1.31.1 loads, by onnx.defs of onnx 1.23.2 (opset 28):
 *
 *   LATER_OPERATOR(operator, opset)  the operator came with this opset
 *   LATER_ATTRIBUTE(operator, opset, attribute, default)  it got this attribute, and with the
 *       default the node means what it meant in opset 26
 *   LATER_TYPES(operator, opset)  it takes other element types; nodes of the types that it had
 *       in opset 26 mean the same, and a runtime refuses the others by itself
 *
 * All other operators of opset 28 are those of opset 26. tests/e2e/models/test_later_opsets.py
 * compares the rows with the schemas.
 */
LATER_TYPES("BitShift", 28)
LATER_TYPES("Cast", 28)
LATER_OPERATOR("CausalConvWithState", 27)
LATER_TYPES("Celu", 28)
LATER_TYPES("Compress", 28)
LATER_TYPES("DepthToSpace", 28) /* the text alone */
LATER_TYPES("DequantizeLinear", 28)
LATER_TYPES("Einsum", 28)
LATER_OPERATOR("LinearAttention", 27)
LATER_TYPES("Mod", 28) /* fmod 0 of floats, which opset 26 left open */
LATER_TYPES("OneHot", 28)
LATER_TYPES("Optional", 28)
LATER_TYPES("OptionalGetElement", 28)
LATER_TYPES("OptionalHasElement", 28)
LATER_TYPES("QuantizeLinear", 28)
LATER_ATTRIBUTE("Range", 27, "stash_type", "1")
LATER_TYPES("ReduceLogSum", 28)
LATER_TYPES("ReduceLogSumExp", 28)
LATER_TYPES("ReverseSequence", 28)
LATER_ATTRIBUTE("SpaceToDepth", 28, "mode", "DCR")
LATER_OPERATOR("SwiGLU", 28)
LATER_TYPES("Unique", 28)
