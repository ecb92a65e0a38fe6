/* SPDX-License-Identifier: Apache-2.0 */
/* The placement rules of the target qnn, and its hooks that stand in files of their own;
   plan/placement/target.h explains both. */
#ifndef QDQI_PLAN_TARGETS_QNN_QNN_H
#define QDQI_PLAN_TARGETS_QNN_QNN_H

#include "plan/placement/sampled_moments.h"
#include "plan/placement/target.h"
#include "plan/targets/shared/plain_forms.h"

#define QNN_RULES(RULE)                                                               \
    RULE(Q1, FIXED,                                                                   \
         "A layer that the HTP computes in integers has a pair on each data input "   \
         "and on its output, and all readers read the output from that pair.")        \
    RULE(Q2, FIXED,                                                                   \
         "A layer that only moves data has the scale and the zero point of its "      \
         "input.")                                                                    \
    RULE(Q3, FIXED,                                                                   \
         "A weight with a sign has a scale for each output channel; that of a "       \
         "MatMul only if it is a matrix and the right operand. A weight without a "   \
         "sign, and that of a normalization, has one scale.")                         \
    RULE(Q4, ON,                                                                      \
         "A bias is int32, with the scale of the input times that of the weight. "    \
         "Off: it stays floating point, and the layer with it.")                      \
    RULE(Q5, ON,                                                                      \
         "No pair stands between a layer and a Relu or Clip that is its only "        \
         "reader, if the QuantizeLinear behind does the clipping. Off: the pair "     \
         "stands between the two.")                                                   \
    RULE(Q6, FIXED,                                                                   \
         "The output of Sigmoid, HardSigmoid and Softmax has the range from 0 to "    \
         "1. In 16 bits the scale of a Sigmoid is 1/65536, or 1/32768 with a sign, "  \
         "and that of a Tanh 1/32768: the HTP has these and no others.")              \
    RULE(Q7, AUTO,                                                                    \
         "A GELU with an Erf has a pair before and one behind, and none inside: so "  \
         "it is one operator of the HTP, which generation v68 does not have. Off: "   \
         "its parts have pairs, and the Erf runs on the processor.")                  \
    RULE(Q8, ON,                                                                      \
         "A constant operand of one element is written as a vector over the last "    \
         "axis, where its length is known: the HTP may leave a scalar Add out.")      \
    RULE(Q9, ON,                                                                      \
         "No pair stands between a MatMul with a constant matrix and the Add of a "   \
         "constant vector that alone reads it, whose constant stays floating point: " \
         "the two become one layer with a bias of int32. Off: each has its pairs.")   \
    RULE(Q10, ON,                                                                     \
         "A BatchNormalization, or the Add of one constant for each channel, is "     \
         "folded into the Conv, ConvTranspose or Gemm in front of it, which "         \
         "computes the same then.")                                                   \
    RULE(Q11, FIXED,                                                                  \
         "A layer that the HTP refuses in the formats of the spec stays floating "    \
         "point.")                                                                    \
    QDQI_PLAIN_FORMS_RULE(RULE, ON)                                                   \
    RULE(Q12, ON,                                                                     \
         "The int32 bias of a LayerNormalization or InstanceNormalization has a "     \
         "scale that its own largest number gives: that of the input would round it " \
         "coarsely where inputs are large, although they are divided by their "       \
         "deviation. Off: it has the scale of `Q4`.")                                 \
    QDQI_ATTENTION_RULE(RULE, ON)                                                     \
    RULE(Q13, AUTO,                                                                   \
         "The range of a mask that is added to scores in front of a Softmax, or "     \
         "stands for them, begins 12 below what makes a score the lowest one, where " \
         "the mask has -1000 or less. Off: the mask takes the whole range.")          \
    RULE(Q14, AUTO,                                                                   \
         "A Max, Min or Clip that bounds masked scores in front of the Softmax, and " \
         "what moves them, begin where `Q13` lets the scores begin. Off: such masks " \
         "take the whole range.")                                                     \
    RULE(Q15, AUTO,                                                                   \
         "The input and the output of a GELU that `Q7` makes one operator have the "  \
         "wider one of their formats. Off: each has its own, and the HTP leaves a "   \
         "GELU of two formats to the processor.")                                     \
    RULE(Q16, ON,                                                                     \
         "A layer with activations of 8 and of 16 bits is computed in 16 bits: a "    \
         "second pair converts the others in front of it, or what it makes behind "   \
         "it. The right operand of a MatMul has 8 bits, by which the HTP "            \
         "multiplies. Off: a layer of two formats is float16 on the HTP.")            \
    RULE(Q17, AUTO,                                                                   \
         "Masked scores that something else than a Softmax reads, too, stay "         \
         "floating point, and so does what reads them: no integers hold -10000 "      \
         "beside scores. Off: they have the range of the mask.")                      \
    RULE(Q18, ON,                                                                     \
         "A GELU with an Erf, or a LayerNormalization, that is made of several "      \
         "nodes is written as the one operator of opset 20 or 17, where the model "   \
         "can be brought to that and no entry names one of the nodes inside. Off: "   \
         "`Q7` says what becomes of the GELU, and pairs stand inside the "            \
         "LayerNormalization.")                                                       \
    QDQI_CAUSAL_RULE(RULE, ON)                                                        \
    RULE(Q19, AUTO,                                                                   \
         "The scales of a weight in front of activations of 16 bits are wider by "    \
         "less than a thousandth, so that what the HTP multiplies sums by has ten "   \
         "binary digits: v68 and v69 round it to eleven where they divide the zero "  \
         "point by it, by which each channel is up to 23 steps off. Off: the scales " \
         "are those of the weight alone.")                                            \
    RULE(Q20, AUTO,                                                                   \
         "A ReduceSum that drops its axes keeps them, and a Squeeze behind it drops " \
         "them, for v68 and v69: they make zeros of the sum of one row of products.") \
    RULE(Q21, ON,                                                                     \
         "A constant table that a Gather reads has the scale and the zero point of "  \
         "what is gathered, which has a pair. Off: the table is float16, and v68 "    \
         "does not load it.")                                                         \
    RULE(Q22, ON,                                                                     \
         "An operand that is made of sizes and constants has a pair beside "          \
         "activations, and so has a constant that a Concat joins or a Where "         \
         "selects. Off: such layers stay floating point.")                            \
    RULE(Q23, AUTO,                                                                   \
         "A ReduceL2 is written as the square root of a sum of squares for v68 and "  \
         "v69, which do not load a quotient by one in 16 bits.")                      \
    RULE(Q24, ON,                                                                     \
         "A Concat and its operands have one scale where they come from an input of " \
         "the model, or in 8 bits from another Concat, by layers that only move "     \
         "them: the HTP does not convert them. Off: each has its own.")               \
    QDQI_SAMPLED_MOMENTS_RULE(RULE, ON)

QDQI_RULE_ENUM(QNN_RULES);

/* The part that an operator has on the HTP (layer_rows.c). */
enum qdqi_htp_role {
    QDQI_HTP_NONE,     /* it falls to the processor, or is float16 */
    QDQI_HTP_COMPUTES, /* has an integer kernel between pairs */
    QDQI_HTP_UNIT,     /* the same, and its output is in [0, 1] for any data */
    QDQI_HTP_CLIPS,    /* the same, or the QuantizeLinear behind it clips */
    QDQI_HTP_MOVES,    /* moves integers as it moves floats */
};

enum qdqi_htp_role qdqi_htp_role(const char *op);

/* The target's own rows of layer support. */
enum { QDQI_N_QNN_CLASSES = 36 };
extern const struct qdqi_class qdqi_qnn_classes[QDQI_N_QNN_CLASSES];

/* By node: its part in a GELU of an Erf (gelu.c). */
enum qdqi_gelu_part {
    QDQI_GELU_NONE,
    QDQI_GELU_FIRST, /* reads what the GELU is computed from */
    QDQI_GELU_INNER, /* reads nothing but what parts make */
    QDQI_GELU_LAST,  /* makes the output, and may read the input, too */
};

/* Returns an array by node of enum qdqi_gelu_part in bytes, in the arena; NULL when out of
   memory. */
uint8_t *qdqi_mark_gelus(const struct qdq_model *model, struct qdqi_arena *arena);

/* The answers of the planned model to what the hooks ask, by node. */
struct qdqi_qnn_marks {
    const uint8_t *gelus;
    const bool *scores; /* rule Q17 leaves what it makes in floating point */
};

/* The hook begin(): p->marks are those. NO_MEMORY. */
enum qdq_code qdqi_qnn_begin(struct planner *p, struct qdq_error *err);

/* Returns the part of a layer in a GELU that has no pairs inside; NONE with rule Q7 off. */
enum qdqi_gelu_part qdqi_gelu_part(const struct planner *p, size_t node);

/* Gives the input and the output of each GELU the wider one of their formats (rule Q15). */
void qdqi_join_gelu_formats(struct planner *p);

/* Gives each kernel activations of one width, and tensors that have two a second pair (rule Q16,
   conversions.c). NO_MEMORY. */
enum qdq_code qdqi_qnn_convert(struct planner *p, struct qdq_error *err);

/* The hook `reform`: constants of one element, and spelled-out normalizations (forms.c). */
enum qdq_code qdqi_qnn_reform(const struct qdq_spec *spec,
                              const struct qdq_model *model, struct qdqi_edit *edit,
                              struct qdqi_arena *arena, bool *ret_any,
                              struct qdq_error *err);

/* Writes GELUs and LayerNormalizations as one operator each (rule Q18, joined.c); joined[i] becomes true for
   their nodes. NO_MEMORY. */
enum qdq_code qdqi_join_patterns(const struct qdq_spec *spec,
                                 const struct qdq_model *model, struct qdqi_edit *edit,
                                 struct qdqi_arena *arena, bool *joined,
                                 struct qdq_error *err);

/* Returns whether the layer is a Gather of a constant table that has pairs (tables.c). */
bool qdqi_qnn_reads_table(const struct planner *p, const struct qdq_layer *layer);

/* Gives what such a layer makes a pair, or leaves it in floating point. Returns false when out of memory. */
bool qdqi_decide_table(struct planner *p, struct qdq_layer *layer);

/* Gives tables the scales of what is gathered. */
void qdqi_settle_tables(struct planner *p);

/* The hook of that name: the opset that has these operators. */
int64_t qdqi_qnn_least_opset(const struct qdq_spec *spec,
                             const struct qdq_model *model);

/* Returns whether the layer's weight stands for an activation, and has the format of those: the hook
   is_operand. */
bool qdqi_qnn_is_operand(const struct planner *p, const struct qdq_layer *layer);

enum qdq_code qdqi_qnn_decide_outputs(struct planner *p, struct qdq_error *err);
enum qdq_code qdqi_qnn_complete(struct planner *p, struct qdq_error *err);

/* Returns why a layer stays in floating point (hindrances.c), or NULL: the hook of that name. */
const char *qdqi_qnn_hindrance(const struct planner *p, struct qdq_layer *layer,
                               bool wants_inputs);

/* Returns whether the HTP refuses an operator with 16 bits, or computes wrong numbers. */
bool qdqi_htp_refuses_wide(const char *op);

/* The hook of that name, which also warns of open sizes and of nodes in floating point. */
const char *qdqi_qnn_refusal(const struct planner *p, const struct qdq_layer *layer);
enum qdq_code qdqi_qnn_check_formats(struct planner *p, struct qdq_error *err);

extern const struct qdqi_lint qdqi_qnn_lints[];

#endif
