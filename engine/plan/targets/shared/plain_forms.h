/* SPDX-License-Identifier: Apache-2.0 */
/* Rule P1, which several targets have: what keeps a layer from being one in the file, and not in
   the function, is undone before the plan. */
#ifndef QDQI_PLAN_TARGETS_SHARED_PLAIN_FORMS_H
#define QDQI_PLAN_TARGETS_SHARED_PLAIN_FORMS_H

#include "plan/placement/rules.h"

/* The rule's row in a target's list of rules. Its state is ON, or AUTO where a target has rules that
   it decides. */
#define QDQI_PLAIN_FORMS_RULE(RULE, STATE)                                        \
    RULE(P1, STATE,                                                               \
         "A weight that is computed from constants becomes one, and what ONNX "   \
         "Runtime's optimizer fused (FusedConv, FusedGemm, FusedMatMul) becomes " \
         "operators of ONNX again.")

/* The row of rule P3, which is younger. */
#define QDQI_ATTENTION_RULE(RULE, STATE)                                           \
    RULE(P3, STATE,                                                                \
         "The operator Attention of com.microsoft, which has the weight of three " \
         "projections inside, becomes operators of ONNX again.")

/* The row of rule P7, which is younger still. */
#define QDQI_CAUSAL_RULE(RULE, STATE)                                              \
    RULE(P7, STATE,                                                                \
         "P3 holds for an Attention whose positions see those before them alone, " \
         "too. Off: such a one stays.")

/* The row of the rule about Einsums, of which each target has its own number. */
#define QDQI_EINSUM_RULE(RULE, ID)                                               \
    RULE(ID, AUTO,                                                               \
         "An Einsum of a constant weight that is a product of matrices becomes " \
         "a MatMul, with Reshapes and Transposes where it has several axes.")

/* Decides rules P1, P3 and P7: they are on. */
bool qdqi_plain_forms_decide(const char **ret_reason);

/* Return whether a complete spec's target has rule P1, P3 or P7, and it is on. */
bool qdqi_has_plain_forms(const struct qdq_spec *spec);
bool qdqi_has_plain_attention(const struct qdq_spec *spec);
bool qdqi_has_plain_causal(const struct qdq_spec *spec);

#endif
