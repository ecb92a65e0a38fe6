/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layer support: the nodes of each class, and the parts of them that are quantized by
 * default.
 *
 *   LAYER("Class", "Op", KIND, weight, AXIS, STATE, is, "how the class is recognized")
 *
 *   KIND    WEIGHTED      one data input and a constant weight
 *           NON_WEIGHTED  input 0 is data
 *           MOVING        the same, and the operator only moves data
 *           PASS          the same, and all data come out unchanged, perhaps in another
 *                         layout: patterns look through such a node
 *           MULTI_INPUT   every computed input is data
 *   weight  input index of the weight, -1 for none; MatMul finds its constant operand
 *   AXIS    the axis of a weight's channels: a function of graph/layers/classes.c, or NONE
 *   STATE   ON            quantized by default (a weight with its layer)
 *           OFF           not quantized unless a spec or a case selects it
 *           ASKED         the same, but a glob over names does not select it, so that no
 *                         pair gets between a layer and its activation by accident
 *           NAMED         only its own name selects it
 *   is      predicate of graph/layers/classes.c that a node of this operator must meet
 *
 * Rows are tried from the top; the first that fits gives the node its class. A class
 * has the Keras name if there is one, else the name of the ONNX operator. The defaults
 * are those of NVIDIA's TensorFlow quantization toolkit.
 */
LAYER("DepthwiseConv2D", "Conv", WEIGHTED, 1, FIRST, ON, depthwise_conv,
      "Conv of rank 4 with as many groups as input channels")
LAYER("Conv2D", "Conv", WEIGHTED, 1, FIRST, ON, conv_2d, "Conv with a weight of rank 4")
LAYER("Conv", "Conv", WEIGHTED, 1, FIRST, ON, any_node, "any other Conv")
LAYER("Dense", "Gemm", WEIGHTED, 1, GEMM, ON, any_node, "Gemm")
LAYER("Dense", "MatMul", WEIGHTED, 1, MATMUL, ON, one_constant_operand,
      "MatMul with one constant operand")
LAYER("AveragePooling2D", "AveragePool", NON_WEIGHTED, -1, NONE, ON, any_node,
      "AveragePool")
LAYER("GlobalAveragePooling2D", "GlobalAveragePool", NON_WEIGHTED, -1, NONE, ON,
      any_node, "GlobalAveragePool")
LAYER("GlobalAveragePooling2D", "ReduceMean", NON_WEIGHTED, -1, NONE, ON,
      reduces_all_spatial_axes, "ReduceMean over all spatial axes")

LAYER("ConvTranspose", "ConvTranspose", WEIGHTED, 1, SECOND, OFF, any_node,
      "ConvTranspose")
LAYER("MatMul", "MatMul", MULTI_INPUT, -1, NONE, OFF, all_computed,
      "MatMul of two computed operands")
LAYER("MaxPooling2D", "MaxPool", NON_WEIGHTED, -1, NONE, OFF, any_node, "MaxPool")
LAYER("BatchNormalization", "BatchNormalization", NON_WEIGHTED, -1, NONE, OFF, any_node,
      "BatchNormalization")
LAYER("Concatenate", "Concat", MULTI_INPUT, -1, NONE, OFF, all_computed,
      "Concat of computed tensors")
LAYER("Add", "Add", MULTI_INPUT, -1, NONE, OFF, all_computed,
      "Add of computed tensors; adding a constant is a bias")
LAYER("Sum", "Sum", MULTI_INPUT, -1, NONE, OFF, all_computed, "Sum of computed tensors")
LAYER("Multiply", "Mul", MULTI_INPUT, -1, NONE, OFF, all_computed_no_swish,
      "Mul of computed tensors that is not part of a swish")
LAYER("Mul", "Mul", MULTI_INPUT, -1, NONE, NAMED, all_computed,
      "Mul of a swish: a tensor times its own Sigmoid")
LAYER("Resize", "Resize", NON_WEIGHTED, -1, NONE, OFF, any_node, "Resize")

#define ACTIVATION(op) LAYER(op, op, NON_WEIGHTED, -1, NONE, ASKED, any_node, op)
ACTIVATION("Relu")
ACTIVATION("Clip")
ACTIVATION("LeakyRelu")
ACTIVATION("PRelu")
ACTIVATION("Elu")
ACTIVATION("Selu")
ACTIVATION("Celu")
ACTIVATION("Gelu")
ACTIVATION("Mish")
ACTIVATION("Softplus")
ACTIVATION("Sigmoid")
ACTIVATION("HardSigmoid")
ACTIVATION("HardSwish")
ACTIVATION("Tanh")
ACTIVATION("Softmax")
ACTIVATION("LogSoftmax")
ACTIVATION("LayerNormalization")
ACTIVATION("InstanceNormalization")
ACTIVATION("GroupNormalization")
ACTIVATION("RMSNormalization")
ACTIVATION("LRN")
#undef ACTIVATION

#define MOVEMENT(op, kind) LAYER(op, op, kind, -1, NONE, ASKED, any_node, op)
MOVEMENT("Identity", PASS)
MOVEMENT("Dropout", PASS)
MOVEMENT("Transpose", PASS)
MOVEMENT("Reshape", PASS)
MOVEMENT("Flatten", PASS)
MOVEMENT("Squeeze", PASS)
MOVEMENT("Unsqueeze", PASS)
MOVEMENT("Gather", MOVING)
MOVEMENT("Slice", MOVING)
MOVEMENT("Split", MOVING)
MOVEMENT("Pad", MOVING)
MOVEMENT("Expand", MOVING)
MOVEMENT("Tile", MOVING)
MOVEMENT("DepthToSpace", MOVING)
MOVEMENT("SpaceToDepth", MOVING)
#undef MOVEMENT
