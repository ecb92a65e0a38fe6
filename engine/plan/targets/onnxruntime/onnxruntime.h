/* SPDX-License-Identifier: Apache-2.0 */
/* The placement rules of the target onnxruntime, and its hooks that stand in files of their
   own; plan/placement/target.h explains both. */
#ifndef QDQI_PLAN_TARGETS_ONNXRUNTIME_ONNXRUNTIME_H
#define QDQI_PLAN_TARGETS_ONNXRUNTIME_ONNXRUNTIME_H

#include "plan/placement/target.h"
#include "plan/placement/masked_sums.h"
#include "plan/placement/sampled_moments.h"
#include "plan/placement/zero_points.h"
#include "plan/targets/shared/plain_forms.h"
#include "plan/targets/shared/saturation.h"
#include "plan/targets/shared/tied.h"

#define ONNXRUNTIME_RULES(RULE)                                                        \
    RULE(C1, FIXED,                                                                    \
         "A layer that has an integer kernel has a pair on each input that its "       \
         "kernel reads as integers.")                                                  \
    RULE(C2, FIXED,                                                                    \
         "Such a layer has a pair on its output, too, and all readers read the "       \
         "output from that pair.")                                                     \
    RULE(C4, ON,                                                                       \
         "The bias of a Conv or Gemm is int32, with the scale of the input "           \
         "times that of the weight. Off: it stays floating point, and "                \
         "onnxruntime makes it int32 when it loads the model, whether it fits "        \
         "or not.")                                                                    \
    RULE(C6, ON,                                                                       \
         "No pair stands between a layer and a Relu or Clip that is its only reader, " \
         "if the QuantizeLinear behind does the clipping. Off: the pair stands "       \
         "between the two.")                                                           \
    QDQI_SATURATION_RULE(RULE)                                                         \
    RULE(C9, FIXED,                                                                    \
         "A weight has a scale for each output channel; the weight of a MatMul only "  \
         "if it is a matrix and the right operand.")                                   \
    RULE(C13, FIXED, "The output of Sigmoid and Softmax has the range from 0 to 1.")   \
    RULE(                                                                              \
        C14, FIXED,                                                                    \
        "A layer that only moves data has the scale and the zero point of its input.") \
    RULE(C15, AUTO,                                                                    \
         "A layer that no entry selects is computed in integers only where "           \
         "onnxruntime gains time by that: a Conv, Gemm or MatMul whose weight is "     \
         "large beside the conversions around it and whose output is not squared; "    \
         "an Add of two tensors, Concat, pool or LeakyRelu between such layers.")      \
    RULE(C16, AUTO,                                                                    \
         "Only layers that compute in integers read a pair on a tensor that a "        \
         "floating-point layer makes, and the output of a Gemm or MatMul has a "       \
         "pair only where such a layer reads it.")                                     \
    RULE(C17, AUTO,                                                                    \
         "A BatchNormalization, or the Add of one constant for each channel, is "      \
         "folded into the Conv, ConvTranspose or Gemm in front of it, which "          \
         "computes the same then.")                                                    \
    RULE(C18, AUTO,                                                                    \
         "A large table whose rows a Gather selects is stored as integers, and the "   \
         "DequantizeLinear stands behind the Gather.")                                 \
    RULE(                                                                              \
        C19, AUTO,                                                                     \
        "A Conv, ConvTranspose or Gemm whose weight an entry leaves in floating "      \
        "point reads its input as it is. Off: it reads a pair, and onnxruntime makes " \
        "the weight int8 with one scale when it loads the model.")                     \
    RULE(C20, AUTO,                                                                    \
         "A Softmax whose axis has one element, or an open number of them, stays "     \
         "floating point. Off: onnxruntime answers 0 where it has one.")               \
    RULE(C21, AUTO,                                                                    \
         "With weights alone, a Gemm has a transposed weight for transB and no "       \
         "factors, and a Relu or Clip behind a Gemm or MatMul is a Max and a Min: "    \
         "onnxruntime makes MatMulNBits of these. Off: it dequantizes the weight in "  \
         "each run.")                                                                  \
    RULE(C22, AUTO,                                                                    \
         "A layer of float16 stays floating point: onnxruntime has integer kernels "   \
         "of float32 models alone.")                                                   \
    RULE(C23, AUTO,                                                                    \
         "A Pad or Resize with axes, and a CenterCropPad, have no pair in front or "   \
         "behind. Off: onnxruntime makes an integer form of them that fails when it "  \
         "runs.")                                                                      \
    RULE(C24, AUTO,                                                                    \
         "With output.decoder, weights that are rounded to the nearest integers have " \
         "the decoder's form, too. Off: those alone that second moments rounded.")     \
    RULE(C25, AUTO,                                                                    \
         "A Transpose of rows that a Gather selects moves integers, and the "          \
         "DequantizeLinear stands behind it. Off: onnxruntime quantizes what it "      \
         "makes once more, with a scale for each column, which takes longer than all " \
         "that is gained.")                                                            \
    RULE(C26, AUTO,                                                                    \
         "A Gemm or MatMul whose weight has elements of 2 bits stays floating point "  \
         "where its columns are no multiple of 4. Off: onnxruntime packs the weight "  \
         "wrongly, and the result is noise.")                                          \
    RULE(C27, AUTO,                                                                    \
         "A Softmax stays floating point, too, where a reduction in front of it may "  \
         "have left one element of its axis. Off: onnxruntime answers 0 then.")        \
    RULE(                                                                              \
        C28, AUTO,                                                                     \
        "A Conv, Gemm or MatMul whose weight, or a Gemm whose bias, the model has as " \
        "integers already stays floating point where the integer kernel has no "       \
        "scales like theirs. Off: onnxruntime takes them for others, or fails when "   \
        "it runs.")                                                                    \
    QDQI_EINSUM_RULE(RULE, C29)                                                        \
    RULE(C35, AUTO,                                                                    \
         "A MatMulNBits has no zero points where all of them are the middle of its "   \
         "integers, which it takes then. Off: they are stored, one for each block.")   \
    QDQI_PLAIN_FORMS_RULE(RULE, AUTO)                                                  \
    QDQI_TIED_RULE(RULE)                                                               \
    QDQI_ATTENTION_RULE(RULE, AUTO)                                                    \
    QDQI_MASKS_RULE(RULE)                                                              \
    QDQI_TIED_FORMS_RULE(RULE)                                                         \
    QDQI_ZERO_POINTS_RULE(RULE)                                                        \
    RULE(C30, AUTO,                                                                    \
         "With weights alone, a weight of a Gemm or MatMul with a "                    \
         "scale for each channel of at least 256 inputs has one for "                  \
         "each block of 64 of them with 8 bits, and of 128 with 4: "                   \
         "onnxruntime's kernel takes less time by that. Off: it has "                  \
         "one for each channel, and onnxruntime makes blocks of 32 of "                \
         "it.")                                                                        \
    QDQI_CAUSAL_RULE(RULE, AUTO)                                                       \
    RULE(C32, AUTO,                                                                    \
         "A constant that a Loop or Scan carries from step to step and never changes " \
         "is read from outside, as the "                                               \
         "weights of an LSTM of Keras, so that the layers of its body have weights. "  \
         "Off: such layers stay floating point.")                                      \
    QDQI_SAMPLED_MOMENTS_RULE(RULE, AUTO)                                              \
    RULE(C33, AUTO,                                                                    \
         "A Softmax stays floating point, too, where a pool or a part that is taken "  \
         "may have left one element of its axis. "                                     \
         "Off: onnxruntime answers 0 then.")

QDQI_RULE_ENUM(ONNXRUNTIME_RULES);

/* The target's own rows of layer support. */
enum { QDQI_N_ONNXRUNTIME_CLASSES = 7 };
extern const struct qdqi_class qdqi_onnxruntime_classes[QDQI_N_ONNXRUNTIME_CLASSES];

/* Returns whether rule C23 keeps integers from the node. */
bool qdqi_onnxruntime_has_axes(const struct planner *p, const struct qdqi_node *node);

/* Returns whether tables can be stored as integers by the spec's formats. */
bool qdqi_onnxruntime_stores_tables(const struct qdq_layer_format *format);

/* Returns whether the weight has blocks, and an integer kernel would be made of the layer,
   which has no scales of blocks and fails when it runs. None is made of a Gemm with blocks. */
bool qdqi_onnxruntime_has_blocks(const struct planner *p,
                                 const struct qdq_layer *layer);

/* Rule C30 (kernel_blocks.c): decides it, returns the opset that it needs in a model, which is the hook
   `least_opset`, and gives the weights of the plan their blocks. */
bool qdqi_kernel_blocks_decide(const struct qdq_spec *spec, const char **ret_reason);
int64_t qdqi_onnxruntime_least_opset(const struct qdq_spec *spec,
                                     const struct qdq_model *model);
void qdqi_kernel_blocks_plan(struct planner *p);

/* Returns whether an entry leaves the weight of the layer in floating point, and the runtime
   would quantize it behind a pair (faults.h). */
bool qdqi_onnxruntime_keeps_weight(const struct planner *p,
                                   const struct qdq_layer *layer);

/* Returns whether the layer is a Gemm or MatMul whose weight has elements of 2 bits, four in a byte, and
   columns that fill no whole bytes: the runtime packs them wrongly (faults.h). */
bool qdqi_onnxruntime_has_open_bytes(const struct planner *p,
                                     const struct qdq_layer *layer);

/* Returns whether the model gives a constant operand of the node integers with scales that the runtime's
   integer kernel takes for others, or refuses when it runs (faults.h). */
bool qdqi_onnxruntime_misreads_given(const struct planner *p,
                                     const struct qdqi_node *node);

bool qdqi_onnxruntime_must_read_raw(const struct planner *p,
                                    const struct qdq_layer *layer);
const char *qdqi_onnxruntime_hindrance(const struct planner *p, struct qdq_layer *layer,
                                       bool wants_inputs);
/* The hook `reform`: forms of which the runtime makes MatMulNBits (forms.c). */
enum qdq_code qdqi_onnxruntime_reform(const struct qdq_spec *spec,
                                      const struct qdq_model *model,
                                      struct qdqi_edit *edit, struct qdqi_arena *arena,
                                      bool *ret_any, struct qdq_error *err);
enum qdq_code qdqi_onnxruntime_decide_outputs(struct planner *p, struct qdq_error *err);
enum qdq_code qdqi_onnxruntime_complete(struct planner *p, struct qdq_error *err);

/* Makes the marks of the target (integer_paths.h). NO_MEMORY. */
enum qdq_code qdqi_gain_begin(struct planner *p, struct qdq_error *err);

/*
 * Leaves in floating point the layers of integer kernels that no entry selects and by
 * which onnxruntime gains nothing, by rule C15. All layers must have been decided on.
 * Returns false when out of memory.
 */
bool qdqi_gain_apply(struct planner *p);

/* Warns of nodes of the model that was given, of which onnxruntime computes wrong numbers.
   NO_MEMORY. */
enum qdq_code qdqi_onnxruntime_warn_given(struct planner *p,
                                          struct qdq_error *err) QDQ_MUST_CHECK;

#endif
