/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule P2, which several targets have: a table of embeddings that a head multiplies by, too, is
 * stored once. Its integers have a scale for each row, which is a channel of the head's output, and
 * Gathers select integers and scales.
 */
#ifndef QDQI_PLAN_TARGETS_SHARED_TIED_H
#define QDQI_PLAN_TARGETS_SHARED_TIED_H

#include "plan/placement/rules.h"

/* The rule's row in a target's list of rules. */
#define QDQI_TIED_RULE(RULE)                                                        \
    RULE(P2, AUTO,                                                                  \
         "A table whose rows Gathers select, and whose transpose a Gemm or MatMul " \
         "multiplies by, is stored once, as integers of 8 bits with a scale for "   \
         "each row: Gathers select integers, and what they make is dequantized. "   \
         "Off: it is stored in floating point for them once more.")

/* The row of rule P5, which is younger. */
#define QDQI_TIED_FORMS_RULE(RULE)                                                  \
    RULE(P5, AUTO,                                                                  \
         "Heads that read a table of P2 in several forms (a MatMul behind a "       \
         "Transpose, a Gemm) have one, so that it is stored once for all of them, " \
         "and each dequantizes it by itself. With weights alone onnxruntime makes " \
         "kernels of these alone, so that there any matrix of several layers is "   \
         "stored so, with 8 bits. Off: it is stored for each form, and "            \
         "onnxruntime dequantizes it in each run.")

/* Decides either rule by the recipe and the formats of a complete spec, and sets *ret_reason to the
   reason. */
bool qdqi_tied_decide(const struct qdq_spec *spec, const char **ret_reason);

/* The numbers of rules P2 and P5, or of what stands for both, among those of the plan's target. `whole`: Gathers
   and heads read one dequantized table. */
struct qdqi_tied_rules {
    int table, forms;
    bool whole;
};

/* Returns the reason for which rule P5 leaves a layer in floating point where activations are
   quantized, or NULL: other nodes keep its weight there, as the decisions on all layers are now. */
const char *qdqi_tied_reason(const struct planner *p, const struct qdq_layer *layer,
                             int rule);

/* Leaves the layers in floating point for which it returns a reason and that no entry selects. */
void qdqi_tied_leave(struct planner *p, int rule);

/* Marks the weights of the plan that are such tables, if rule P2 is on, and cites it, or P5, for their
   layers. */
void qdqi_tied_plan(struct planner *p, struct qdqi_tied_rules rules);

/* Marks the weights that several MatMuls read, and nothing else, as stored once for layers that
   dequantize them by themselves, if the rule is on, and cites it for the layers. */
void qdqi_apart_plan(struct planner *p, int rule);

#endif
