/* SPDX-License-Identifier: Apache-2.0 */
/* The placement rules of the target openvino, and its hooks that stand in files of their own;
   plan/placement/target.h explains both. */
#ifndef QDQI_PLAN_TARGETS_OPENVINO_OPENVINO_H
#define QDQI_PLAN_TARGETS_OPENVINO_OPENVINO_H

#include "plan/placement/target.h"
#include "plan/targets/shared/saturation.h"

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
         "A layer that reads what a pool of windows makes, and behind it a factor "    \
         "below zero, 1 - x or an absolute value, stays floating point, since "        \
         "OpenVINO computes wrong numbers there.")                                     \
    QDQI_SATURATION_RULE(RULE)

QDQI_RULE_ENUM(OPENVINO_RULES);

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
 * Marks the nodes on whose way from the last layer that computes a sum stand a pool of windows
 * and, behind it, a function that falls: a factor below zero, a constant minus the data, a
 * negation, an absolute value. Returns an array by node, in the arena; NULL when out of memory.
 */
bool *qdqi_mark_turned(const struct qdq_model *model, struct qdqi_arena *arena);

#endif
