/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement rules of the targets: RULE(ID, TARGET, STATE, "what it says").
 *
 *   STATE  FIXED  holds always, where no entry of a spec or case asks for something else
 *          ON     holds until a spec's `rules` switches it off
 *          OFF    holds where a spec's `rules` switches it on
 *
 * The planner asks for a rule by QDQI_RULE_ID; what a rule looks for stands in
 * plan/rules.c and layers/patterns.c. A set of rules is a word of 64 bits, so there are at
 * most 64 rows. The defaults of TensorRT are those with which a plan is the one that
 * NVIDIA's TensorFlow quantization toolkit makes; those of onnxruntime are what its CPU
 * provider fuses into integer kernels.
 */
RULE(T1, TENSORRT, FIXED, "Quantization is symmetric: every zero point is 0.")
RULE(T2, TENSORRT, FIXED,
     "An activation has one scale, a weight one for each output channel.")
RULE(T3, TENSORRT, ON,
     "A ConvTranspose's weight has its scales along axis 1, the output channels. "
     "Off: one scale, for releases of TensorRT that want another axis.")
RULE(T5, TENSORRT, FIXED, "A bias stays floating point.")
RULE(T8, TENSORRT, FIXED,
     "A layer with a weight has a pair on its data input and on its weight.")
RULE(T9, TENSORRT, FIXED,
     "A layer has pairs on its inputs; what it makes is left to those who read it.")
RULE(T10, TENSORRT, FIXED,
     "No pair stands between a layer with a weight and the BatchNormalization or "
     "activation behind it.")
RULE(T11, TENSORRT, OFF,
     "A residual Add has a pair on every input but the one that a convolution "
     "makes: the case `residual`, run before all others. With mode `full`.")
RULE(T14, TENSORRT, OFF,
     "Pooling has a pair only where a layer behind it reads int8, too.")
RULE(T15, TENSORRT, FIXED, "Concat has no pairs: those who read it have them.")
RULE(T16, TENSORRT, FIXED, "What only moves data has no pair.")
RULE(T17, TENSORRT, FIXED,
     "Activations, Softmax, normalizations and Resize have no pair.")
RULE(T18, TENSORRT, OFF,
     "The Add and Mul nodes that an exporter makes of LayerNormalization and Gelu "
     "have no pair either.")
RULE(T19, TENSORRT, OFF,
     "A layer that is neither pooling nor computes in int8 itself (Conv, Gemm, MatMul) "
     "has pairs only where a layer behind it reads int8, too.")
RULE(T20, TENSORRT, OFF,
     "A layer that makes an output of the model has no pair, unless it computes in "
     "int8 itself.")
RULE(T21, TENSORRT, FIXED, "A tensor has one pair, for all who read it.")
RULE(T22, TENSORRT, OFF,
     "A Conv with fewer than 16 input or output channels stays floating point, but "
     "for those shapes that have fast kernels.")
RULE(T23, TENSORRT, OFF,
     "A Gemm or MatMul whose weight has fewer than 16 rows or columns stays "
     "floating point.")
RULE(T24, TENSORRT, OFF,
     "In attention the mask's Add and the Softmax have no pair, and the two MatMul "
     "none where the sequence is known to be longer than 512.")
RULE(T26, TENSORRT, ON,
     "A layer whose weight cannot be quantized has no pair on its input. Off: it "
     "has.")
RULE(T27, TENSORRT, FIXED,
     "A Mul of a swish has no pair; one by the gate of squeeze and excitation has a "
     "pair on both inputs, which the case `efficientnet` asks for.")
RULE(T28, TENSORRT, FIXED, "Nothing is promised of a swish between a Conv and an Add.")
RULE(C1, ONNXRUNTIME, FIXED,
     "A layer that has an integer kernel has a pair on all that it reads.")
RULE(C2, ONNXRUNTIME, FIXED,
     "It has one on what it makes, too, and all who read that read it from the pair.")
RULE(C4, ONNXRUNTIME, ON,
     "The bias of a Conv or Gemm is int32, with the scale of the input times that of "
     "the weight. Off: it stays floating point, and onnxruntime makes it int32 when it "
     "loads the model, whether it fits or not.")
RULE(C6, ONNXRUNTIME, ON,
     "No pair stands between a layer and the Relu or Clip that alone reads it, where "
     "the "
     "QuantizeLinear behind clips. Off: it stands between the two.")
RULE(C7, ONNXRUNTIME, OFF,
     "The integers of the int8 weights of Conv, Gemm and MatMul are from -64 to 64: "
     "sums "
     "of 16 bits, of which processors without VNNI add, do not overflow then.")
RULE(
    C9, ONNXRUNTIME, FIXED,
    "A weight has a scale for each output channel, that of a MatMul only where it is a "
    "matrix on the right.")
RULE(C13, ONNXRUNTIME, FIXED,
     "What Sigmoid and Softmax make has the range from 0 to 1.")
RULE(C14, ONNXRUNTIME, FIXED,
     "What only moves data has the scale and the zero point of its input.")
