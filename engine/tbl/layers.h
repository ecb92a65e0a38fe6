/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layer support: which nodes form a class, and what of them is quantized by default.
 *
 *   LAYER("Class", "Op", KIND, weight, AXIS, input, is, "how the class is recognized")
 *
 *   KIND    WEIGHTED      one data input and a constant weight
 *           NON_WEIGHTED  one data input
 *           MULTI_INPUT   every input is data
 *   weight  input index of the weight, -1 for none; MatMul finds its constant operand
 *   AXIS    where a weight's channels lie: a function of plan/classes.c, or NONE
 *   input   ON or OFF: quantized by default (a weight goes with its layer)
 *   is      predicate of plan/classes.c that a node of this operator must pass
 *
 * Rows are tried from the top; the first that fits names the node's class. Classes bear
 * the Keras name where there is one, else the ONNX operator's. The defaults are those
 * of NVIDIA's TensorFlow quantization toolkit.
 */
LAYER("DepthwiseConv2D", "Conv", WEIGHTED, 1, FIRST, ON, depthwise_conv,
      "Conv of rank 4 with as many groups as input channels")
LAYER("Conv2D", "Conv", WEIGHTED, 1, FIRST, ON, conv_2d, "Conv with a weight of rank 4")
LAYER("Conv", "Conv", WEIGHTED, 1, FIRST, ON, any_node, "any other Conv")
LAYER("Dense", "Gemm", WEIGHTED, 1, GEMM, ON, any_node, "Gemm")
LAYER("Dense", "MatMul", WEIGHTED, 1, MATMUL, ON, one_constant_operand,
      "MatMul with one constant operand")
LAYER("MatMul", "MatMul", MULTI_INPUT, -1, NONE, OFF, any_node,
      "MatMul of two computed operands")
LAYER("AveragePooling2D", "AveragePool", NON_WEIGHTED, -1, NONE, ON, any_node,
      "AveragePool")
LAYER("GlobalAveragePooling2D", "GlobalAveragePool", NON_WEIGHTED, -1, NONE, ON,
      any_node, "GlobalAveragePool")
LAYER("GlobalAveragePooling2D", "ReduceMean", NON_WEIGHTED, -1, NONE, ON,
      reduces_all_spatial_axes, "ReduceMean over all spatial axes")
LAYER("MaxPooling2D", "MaxPool", NON_WEIGHTED, -1, NONE, OFF, any_node, "MaxPool")
LAYER("BatchNormalization", "BatchNormalization", NON_WEIGHTED, -1, NONE, OFF, any_node,
      "BatchNormalization")
LAYER("Concatenate", "Concat", MULTI_INPUT, -1, NONE, OFF, all_computed,
      "Concat of computed tensors")
LAYER("Add", "Add", MULTI_INPUT, -1, NONE, OFF, all_computed,
      "Add of computed tensors; adding a constant is a bias")
LAYER("Multiply", "Mul", MULTI_INPUT, -1, NONE, OFF, all_computed_no_swish,
      "Mul of computed tensors that is not part of a swish")
