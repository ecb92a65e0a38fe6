/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement rules of the target tensorrt, as rows RULE(ID, STATE, "what it says");
 * plan/placement/target.h explains them. With their defaults a plan is the one that NVIDIA's
 * TensorFlow quantization toolkit makes.
 */
#ifndef QDQI_PLAN_TARGETS_TENSORRT_TENSORRT_H
#define QDQI_PLAN_TARGETS_TENSORRT_TENSORRT_H

#include "plan/placement/sampled_moments.h"
#include "plan/placement/target.h"
#include "plan/targets/shared/plain_forms.h"
#include "plan/targets/shared/tied.h"

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
         "A layer has pairs on its inputs. The layers that read its output decide "    \
         "whether that has one.")                                                      \
    RULE(T10, FIXED,                                                                   \
         "No pair stands between a layer with a weight and the "                       \
         "BatchNormalization or activation behind it.")                                \
    RULE(T11, OFF,                                                                     \
         "A residual Add has a pair on every input except the one that a convolution " \
         "makes: with mode `full`, the case `residual` runs before all others.")       \
    RULE(T14, OFF, "Pooling has a pair only if a layer behind it reads int8, too.")    \
    RULE(T15, FIXED,                                                                   \
         "Concat has no pairs; the layers that read its output have them.")            \
    RULE(T16, FIXED, "A layer that only moves data has no pair.")                      \
    RULE(T17, FIXED, "Activations, Softmax, normalizations and Resize have no pair.")  \
    RULE(T18, OFF,                                                                     \
         "The Add and Mul nodes of a LayerNormalization or Gelu that the exporter "    \
         "wrote as several nodes have no pair.")                                       \
    RULE(T19, OFF,                                                                     \
         "A layer that does not compute in int8 itself, as Conv, Gemm and MatMul do, " \
         "and is not pooling has pairs only if a layer behind it reads int8, too.")    \
    RULE(T20, OFF,                                                                     \
         "A layer that makes an output of the model has no pair, unless it "           \
         "computes in int8 itself.")                                                   \
    RULE(T21, FIXED, "A tensor has one pair, which all of its readers share.")         \
    RULE(T22, OFF,                                                                     \
         "A Conv with fewer than 16 input or output channels stays floating point, "   \
         "unless its shape has a fast kernel.")                                        \
    RULE(T23, OFF,                                                                     \
         "A Gemm or MatMul whose weight has fewer than 16 rows or columns "            \
         "stays floating point.")                                                      \
    RULE(T24, OFF,                                                                     \
         "In an attention, the mask's Add and the Softmax have no pair, and the two "  \
         "MatMul have none if the sequence is known to be longer than 512.")           \
    RULE(T26, ON,                                                                      \
         "A layer whose weight cannot be quantized has no pair on its input. Off: it " \
         "has one.")                                                                   \
    RULE(T27, FIXED,                                                                   \
         "The Mul of a swish has no pair. The Mul by the gate of squeeze and "         \
         "excitation has a pair on both inputs, which the case `efficientnet` asks "   \
         "for.")                                                                       \
    RULE(T28, FIXED,                                                                   \
         "TensorRT does not promise to fuse a swish between a Conv and an Add.")       \
    RULE(T29, FIXED,                                                                   \
         "A Gemm or MatMul stays floating point where blocks do not divide its "       \
         "weight's axis: TensorRT would read other scales from them.")                 \
    RULE(T30, OFF,                                                                     \
         "An average pool has no pair: TensorRT for RTX 1.7 computes it in floating "  \
         "point, and a pair rounds its input and saves no kernel. The version "        \
         "`rtx-1.7` switches it on.")                                                  \
    QDQI_PLAIN_FORMS_RULE(RULE, ON)                                                    \
    RULE(                                                                              \
        T31, ON,                                                                       \
        "A layer inside an If that reads a quantized tensor from outside of it has a " \
        "pair there, with the same scale: TensorRT computes it in floating point "     \
        "behind a pair outside. Off: all read the one pair.")                          \
    RULE(T33, ON,                                                                      \
         "A Gemm or MatMul with a weight of nvfp4 stays floating point where blocks "  \
         "of 16 do not divide the weight's axis, or one block is the whole weight: "   \
         "TensorRT refuses the model.")                                                \
    RULE(T34, OFF,                                                                     \
         "A Conv of size 1 with at most 4 input channels stays floating point where "  \
         "the model may have one sample and a global pool leaves it one place: "       \
         "TensorRT "                                                                   \
         "for RTX 1.7 computes it so. The version `rtx-1.7` switches it on.")          \
    QDQI_ATTENTION_RULE(RULE, ON)                                                      \
    QDQI_CAUSAL_RULE(RULE, ON)                                                         \
    RULE(T36, ON,                                                                      \
         "With weights alone, a table whose rows Gathers select, and that heads "      \
         "multiply by, is stored once, as "                                            \
         "integers of 8 bits with a scale for each row, and all of them read what "    \
         "one DequantizeLinear makes. "                                                \
         "Off: it is stored in floating point for the Gathers, and once for each "     \
         "form of the heads.")                                                         \
    QDQI_SAMPLED_MOMENTS_RULE(RULE, ON)

QDQI_RULE_ENUM(TENSORRT_RULES);

/* The warnings about layers that TensorRT does not fuse or computes slowly, with a
   row of zeros behind the last. */
extern const struct qdqi_lint qdqi_tensorrt_lints[];

/* --- what TensorRT takes of number formats: formats.c --- */

/* The hooks of that name of the target. */
const char *qdqi_tensorrt_hindrance(const struct planner *p, struct qdq_layer *layer,
                                    bool wants_inputs);
/* The hooks `refusal` and `check_formats`. */
const char *qdqi_tensorrt_refusal(const struct planner *p,
                                  const struct qdq_layer *layer);
enum qdq_code qdqi_tensorrt_check_formats(struct planner *p,
                                          struct qdq_error *err) QDQ_MUST_CHECK;

/* --- what ONNX Runtime makes of a result: in_onnxruntime.c --- */

/* Warns of layers that ONNX Runtime computes otherwise, and notes in the plan the biases that it
   may. NO_MEMORY. */
enum qdq_code qdqi_tensorrt_check_in_onnxruntime(struct planner *p,
                                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* --- residual connections, found by the library's case `residual` --- */

/* Runs the case and applies its entries. `pointer` is the member of the spec that
   asks for it. */
enum qdq_code qdqi_residual_run(struct planner *p, const char *pointer,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Warns of residual connections that neither a case nor a name decides about. `rule` is
 * the id of the rule that the warning cites. NO_MEMORY and the errors of the case.
 */
enum qdq_code qdqi_residual_warn(struct planner *p, const char *rule,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
