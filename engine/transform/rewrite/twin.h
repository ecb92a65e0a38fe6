/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins two models into one graph, a twin: the float model and the quantized one, whose
 * tensors get new names. Both read the same inputs. Each tensor to be compared has a
 * Compare node, which reads it in both halves. A Compare node has no output, so each
 * half runs as it would run alone.
 *
 * ONNX Runtime orders the nodes of a graph by a depth-first search from the last node
 * that no other node reads. The Compare nodes are at the end, the one of the first
 * tensor last, so the two halves advance in step and an activation can be freed when
 * both halves have passed it. Graph outputs go through Pass nodes in front of the
 * Compare nodes; the runtime's optimizations cannot move those. This order affects only
 * the peak of memory.
 */
#ifndef QDQI_TRANSFORM_REWRITE_TWIN_H
#define QDQI_TRANSFORM_REWRITE_TWIN_H

#include "files/model/write.h"

/* Operators in QDQI_DOMAIN. Compare has two inputs, no output and the attribute
   "slot". Pass has one output, which equals its input. */
#define QDQI_COMPARE "Compare"
#define QDQI_PASS "Pass"

struct qdqi_twin {
    /* Outputs and files of the float half come first, then those of the quantized
       half. */
    struct qdqi_runnable model;
};

/*
 * Joins `f` and `quantized`, which was made from `f` by the insertion of pairs.
 * tensors[i], a name of the main graph of both, gets slot i. All memory is in the arena
 * or borrowed from the models. *ret must not move. UNSUPPORTED when the two do not
 * match (operator sets, inputs, outputs), and where ONNX Runtime keeps a state of theirs
 * (qdqi_model_keeps_state()).
 */
enum qdq_code qdqi_twin(const struct qdq_model *f, const struct qdq_model *quantized,
                        const char *const *tensors, size_t n, struct qdqi_arena *arena,
                        struct qdqi_twin *ret, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
