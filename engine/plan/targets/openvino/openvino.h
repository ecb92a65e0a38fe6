/* SPDX-License-Identifier: Apache-2.0 */
/* The placement rules of the target openvino, and its hooks that stand in files of their own;
   plan/placement/target.h explains both. */
#ifndef QDQI_PLAN_TARGETS_OPENVINO_OPENVINO_H
#define QDQI_PLAN_TARGETS_OPENVINO_OPENVINO_H

#include "plan/placement/target.h"
#include "plan/placement/masked_sums.h"
#include "plan/placement/sampled_moments.h"
#include "plan/placement/zero_points.h"
#include "plan/targets/shared/plain_forms.h"
#include "plan/targets/shared/saturation.h"
#include "plan/targets/shared/tied.h"

#define OPENVINO_RULES(RULE)                                                           \
    RULE(V1, FIXED,                                                                    \
         "A Conv, ConvTranspose, Gemm or MatMul with a constant weight has a pair on " \
         "its data input and its weight as integers.")                                 \
    RULE(V2, FIXED, "A weight has a scale for each output channel.")                   \
    RULE(V3, FIXED,                                                                    \
         "Other layers have no pair of their own: OpenVINO moves pairs through pools " \
         "and copies itself, and a pair between layers in floating point costs time.") \
    RULE(V4, AUTO,                                                                     \
         "A Gemm or MatMul stays floating point where processors lack VNNI, since "    \
         "its integer kernel is slower there.")                                        \
    RULE(V5, AUTO,                                                                     \
         "A BatchNormalization, or the Add of one constant for each channel, is "      \
         "folded into the Conv, ConvTranspose or Gemm in front of it, which "          \
         "computes the same then.")                                                    \
    RULE(V6, FIXED,                                                                    \
         "A layer whose weight cannot be divided into whole blocks stays floating "    \
         "point, since OpenVINO refuses to load it.")                                  \
    RULE(                                                                              \
        V7, AUTO,                                                                      \
        "A layer whose output is squared, as a part of a spectrum is, stays floating " \
        "point.")                                                                      \
    RULE(V8, AUTO,                                                                     \
         "A Conv whose groups have one input channel each stays floating point where " \
         "processors lack VNNI, since its integer kernel is slower there.")            \
    RULE(V9, AUTO,                                                                     \
         "A Conv whose groups have one input channel each, and whose kernel has more " \
         "than nine elements, stays floating point, since its integer kernel is "      \
         "slower.")                                                                    \
    RULE(V10, AUTO,                                                                    \
         "A Conv with strides that reads an input of the model, and multiplies each "  \
         "number of it fewer than 24 times, stays floating point, since integers "     \
         "cost more time to make than they gain.")                                     \
    RULE(V11, AUTO,                                                                    \
         "A pointwise Conv from fewer than 16 channels to fewer than 12, without "     \
         "groups, stays floating point, since its integer kernel is slower.")          \
    RULE(V12, AUTO,                                                                    \
         "A layer that reads what a ReduceMax, a ReduceMin or a GlobalMaxPool makes, " \
         "perhaps behind activations, stays floating point, since OpenVINO computes "  \
         "wrong numbers there.")                                                       \
    RULE(V13, AUTO,                                                                    \
         "A layer stays floating point that reads a factor below zero, 1 - x or an "   \
         "absolute value behind a pool of windows, a Concat, a change of the shape, "  \
         "or the Relu or LeakyRelu of a Conv without biases, since OpenVINO computes " \
         "wrong numbers there.")                                                       \
    RULE(V14, AUTO,                                                                    \
         "A ReduceMean or ReduceSum that drops its axes keeps them, and a Squeeze "    \
         "behind it drops them: OpenVINO multiplies the wrong axis by the factors of " \
         "channels otherwise.")                                                        \
    RULE(V15, AUTO,                                                                    \
         "A Gemm or MatMul stays floating point that reads what a Concat makes, "      \
         "unless that joins along the last axis, since OpenVINO cannot compile it.")   \
    RULE(V16, AUTO,                                                                    \
         "An AveragePool whose windows count their padding has no pair, since "        \
         "OpenVINO computes wrong numbers there.")                                     \
    RULE(V17, AUTO,                                                                    \
         "Activations of int8 are stored as uint8 with zero points that are 128 "      \
         "larger, which is the same, since OpenVINO computes wrong numbers of int8 "   \
         "behind a Concat.")                                                           \
    RULE(V18, AUTO,                                                                    \
         "The weight of a ConvTranspose with a pair on its data is int8 where uint8 "  \
         "is asked for, since OpenVINO reads its bytes as int8; a given one leaves "   \
         "the layer in float.")                                                        \
    RULE(V19, AUTO,                                                                    \
         "The weight of a MatMul has one scale where it has three axes or more, "      \
         "since OpenVINO computes wrong numbers of others behind activations whose "   \
         "zero point is 0.")                                                           \
    RULE(                                                                              \
        V20, AUTO,                                                                     \
        "A model of opset 11 or 12 with a Softmax that joins several axes is brought " \
        "to opset 13, since OpenVINO normalizes it along one axis.")                   \
    RULE(                                                                              \
        V21, AUTO,                                                                     \
        "Gemms and MatMuls in a row, of weights of at most 256 by 256, stay floating " \
        "point where the model is fed at most eight rows or a Reshape makes them, "    \
        "unless a vector of biases is added to the first and no number multiplied, "   \
        "since OpenVINO makes one kernel of them that computes wrong numbers.")        \
    RULE(V22, AUTO,                                                                    \
         "Each Conv without biases has biases of 1e-30; a layer stays floating point " \
         "that reads data of an open size times a vector of factors below zero, or, "  \
         "as a Gemm or MatMul, what follows a Concat of rows by clips and scalars; "   \
         "and a Neg behind a bias does not end a row of small products: "              \
         "OpenVINO computes wrong numbers there, or does not compile.")                \
    RULE(V24, AUTO,                                                                    \
         "A weight that cannot be divided into whole blocks has a scale for each "     \
         "channel instead, but for those of mxfp4, mxfp8 and nvfp4.")                  \
    QDQI_SATURATION_RULE(RULE)                                                         \
    QDQI_PLAIN_FORMS_RULE(RULE, AUTO)                                                  \
    QDQI_TIED_RULE(RULE)                                                               \
    QDQI_ATTENTION_RULE(RULE, AUTO)                                                    \
    QDQI_MASKS_RULE(RULE)                                                              \
    QDQI_TIED_FORMS_RULE(RULE)                                                         \
    QDQI_EINSUM_RULE(RULE, V25)                                                        \
    QDQI_ZERO_POINTS_RULE(RULE)                                                        \
    QDQI_CAUSAL_RULE(RULE, AUTO)                                                       \
    QDQI_SAMPLED_MOMENTS_RULE(RULE, AUTO)                                              \
    RULE(V26, AUTO,                                                                    \
         "A layer stays floating point that reads an AveragePool behind an "           \
         "activation of a layer times a vector of factors below "                      \
         "zero, or data of an open size times such factors and one number added, "     \
         "since OpenVINO computes wrong numbers there.")

QDQI_RULE_ENUM(OPENVINO_RULES);

/* Writes the nodes of which OpenVINO computes wrong numbers in another form, where the spec's
   rules ask for it: the hook `reform` of plan/placement/target.h. */
enum qdq_code qdqi_openvino_reform(const struct qdq_spec *spec,
                                   const struct qdq_model *model,
                                   struct qdqi_edit *edit, struct qdqi_arena *arena,
                                   bool *ret_any, struct qdq_error *err);

/* Returns the opset in which OpenVINO computes each Softmax right, 0 for any: the hook `least_opset`
   of plan/placement/target.h. */
int64_t qdqi_openvino_least_opset(const struct qdq_spec *spec,
                                  const struct qdq_model *model);

/* Warns of nodes of the model that was given, of which OpenVINO computes wrong numbers.
   NO_MEMORY. */
enum qdq_code qdqi_openvino_warn_given(struct planner *p,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes the marks that the vetoes and the warnings use. NO_MEMORY. */
enum qdq_code qdqi_openvino_begin(struct planner *p, struct qdq_error *err);

extern const struct qdqi_veto qdqi_openvino_vetoes[];
extern const struct qdqi_lint qdqi_openvino_lints[];

/* --- layers behind which OpenVINO computes wrong numbers of a pair (faults.h) --- */

/*
 * Marks a ReduceMax, a ReduceMin and a GlobalMaxPool, and the nodes behind them that may be in
 * the same kernel: those that change the shape alone, activation functions, and arithmetic
 * with a constant or with another marked tensor; a Concat, where it joins one of them. Returns
 * an array by node, in the arena; NULL when out of memory.
 */
bool *qdqi_mark_extremes(const struct qdqi_graph *graph, struct qdqi_arena *arena);

/*
 * Marks the nodes on whose way from the last layer that computes a sum stand a pool of windows,
 * a Concat, a change of the shape or the Relu of a Conv without biases, and, behind it, a function that falls: a factor below
 * zero, a constant minus the data, a negation, an absolute value. Returns an array by node, in
 * the arena; NULL when out of memory.
 */
bool *qdqi_mark_turned(const struct qdq_model *model, struct qdqi_arena *arena);

/* Marks the nodes whose output is an average, in windows, of an activation of sums times factors of channels below zero
   (rule V26). Returns an array by node, in the arena; NULL when out of memory. */
bool *qdqi_mark_averaged(const struct qdq_model *model, struct qdqi_arena *arena);

/* Marks the nodes behind a Conv or ConvTranspose without biases, up to where the last function
   does: what the mark above starts from. */
bool *qdqi_mark_unbiased(const struct qdq_model *model, struct qdqi_arena *arena);

/*
 * Marks the Gemms and MatMuls of at most 256 by 256 weights that stand in a row, with at most
 * elementwise nodes between, where the model is fed at most eight rows or a Reshape makes them. A
 * vector of biases right behind the first one, with functions of one operand alone behind that,
 * makes them right. Returns an array by node, in the arena; NULL when out of memory.
 */
bool *qdqi_mark_small_chains(const struct qdq_model *model, struct qdqi_arena *arena,
                             bool ends_at_neg);

/*
 * Marks the nodes on whose way from an input of the model, or from a node that computes neither sums nor
 * elements by themselves, stand constant factors alone, one of them a vector, whose product is below zero for
 * some channel, and activations behind them, where an input of the model has an open size: OpenVINO takes the
 * factors into the pair (rule V22); with `shifted` also where one number is added behind them (V26). Returns an
 * array by node, in the arena; NULL when out of memory.
 */
bool *qdqi_mark_loose_factors(const struct qdq_model *model, struct qdqi_arena *arena,
                              bool shifted);

/* Returns whether a Concat that does not join along the last axis makes the tensor, perhaps in
   front of copies, or, with `uniform`, of clips and of arithmetic with a constant of one element. */
bool qdqi_reads_joined_rows(const struct qdqi_graph *graph, const struct qdqi_tensor *t,
                            bool uniform);

#endif
