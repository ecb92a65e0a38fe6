/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two models in one graph: the float one, and beside it the quantized one with names of
 * its own, both fed by the same inputs. At each tensor that is to be compared stands a
 * Compare node, which reads it in both halves and has no output, so neither half runs
 * otherwise than it does alone.
 *
 * ONNX Runtime takes the nodes of a graph in the order of a depth-first search that
 * begins at the last node that nothing reads. The Compare nodes stand at the end, the
 * first tensor's last: so both halves go in step, and an activation is gone when both
 * have passed. Graph outputs come through Pass nodes before them, which the runtime's
 * optimizations cannot move behind. Only the peak of memory hangs on this order.
 */
#ifndef QDQI_REWRITE_TWIN_H
#define QDQI_REWRITE_TWIN_H

#include "model/write.h"

/* Operators in QDQI_DOMAIN: two inputs, no output, attribute "slot"; a tensor
   that becomes the output. */
#define QDQI_COMPARE "Compare"
#define QDQI_PASS "Pass"

struct qdqi_twin {
    /* outputs: the float half's, then the quantized half's; so its files, too */
    struct qdqi_runnable model;
};

/*
 * Of `quantized`, which was made of `f` by insertion of pairs. tensors[i], a name of
 * the main graph of both, gets slot i. Everything lies in the arena or is borrowed from
 * the models. *ret must stay where it is. UNSUPPORTED where the two do not fit together
 * (operator sets, inputs, outputs).
 */
enum qdq_code qdqi_twin(const struct qdq_model *f, const struct qdq_model *quantized,
                        const char *const *tensors, size_t n, struct qdqi_arena *arena,
                        struct qdqi_twin *ret, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
