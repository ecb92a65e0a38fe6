/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement rules of the target tensorrt, as rows RULE(ID, STATE, "what it says");
 * plan/target.h explains them. With their defaults a plan is the one that NVIDIA's
 * TensorFlow quantization toolkit makes.
 */
#ifndef QDQI_PLAN_TARGETS_TENSORRT_H
#define QDQI_PLAN_TARGETS_TENSORRT_H

#include "plan/target.h"

#define TENSORRT_RULES(RULE)                                                           \
    RULE(T1, FIXED, "Quantization is symmetric: every zero point is 0.")               \
    RULE(T2, FIXED,                                                                    \
         "An activation has one scale, a weight one for each output channel.")         \
    RULE(T3, ON,                                                                       \
         "A ConvTranspose's weight has its scales along axis 1, the output "           \
         "channels. Off: one scale, for releases of TensorRT that want another "       \
         "axis.")                                                                      \
    RULE(T5, FIXED, "A bias stays floating point.")                                    \
    RULE(T8, FIXED,                                                                    \
         "A layer with a weight has a pair on its data input and on its "              \
         "weight.")                                                                    \
    RULE(T9, FIXED,                                                                    \
         "A layer has pairs on its inputs; what it makes is left to those who "        \
         "read it.")                                                                   \
    RULE(T10, FIXED,                                                                   \
         "No pair stands between a layer with a weight and the "                       \
         "BatchNormalization or activation behind it.")                                \
    RULE(T11, OFF,                                                                     \
         "A residual Add has a pair on every input but the one that a "                \
         "convolution makes: the case `residual`, run before all others. With "        \
         "mode `full`.")                                                               \
    RULE(T14, OFF, "Pooling has a pair only where a layer behind it reads int8, too.") \
    RULE(T15, FIXED, "Concat has no pairs: those who read it have them.")              \
    RULE(T16, FIXED, "A layer that only moves data has no pair.")                      \
    RULE(T17, FIXED, "Activations, Softmax, normalizations and Resize have no pair.")  \
    RULE(T18, OFF,                                                                     \
         "The Add and Mul nodes that an exporter makes of LayerNormalization "         \
         "and Gelu have no pair either.")                                              \
    RULE(T19, OFF,                                                                     \
         "A layer that is neither pooling nor computes in int8 itself (Conv, "         \
         "Gemm, MatMul) has pairs only where a layer behind it reads int8, "           \
         "too.")                                                                       \
    RULE(T20, OFF,                                                                     \
         "A layer that makes an output of the model has no pair, unless it "           \
         "computes in int8 itself.")                                                   \
    RULE(T21, FIXED, "A tensor has one pair, for all who read it.")                    \
    RULE(T22, OFF,                                                                     \
         "A Conv with fewer than 16 input or output channels stays floating "          \
         "point, but for those shapes that have fast kernels.")                        \
    RULE(T23, OFF,                                                                     \
         "A Gemm or MatMul whose weight has fewer than 16 rows or columns "            \
         "stays floating point.")                                                      \
    RULE(T24, OFF,                                                                     \
         "In attention the mask's Add and the Softmax have no pair, and the "          \
         "two MatMul none where the sequence is known to be longer than 512.")         \
    RULE(T26, ON,                                                                      \
         "A layer whose weight cannot be quantized has no pair on its input. "         \
         "Off: it has.")                                                               \
    RULE(T27, FIXED,                                                                   \
         "A Mul of a swish has no pair; one by the gate of squeeze and "               \
         "excitation has a pair on both inputs, which the case `efficientnet` "        \
         "asks for.")                                                                  \
    RULE(T28, FIXED, "Nothing is promised of a swish between a Conv and an Add.")

enum { TENSORRT_RULES(QDQI_RULE_INDEX) N_RULES };

/* The warnings about layers that TensorRT does not fuse or computes slowly, with a
   row of zeros behind the last. */
extern const struct qdqi_lint qdqi_tensorrt_lints[];

#endif
