/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observe nodes that read tensors in ONNX Runtime's own layout.
 *
 * On a CPU the runtime computes convolutions, and what stands between them, in the layout
 * NCHWc: in blocks of 8 or 16 channels. A node that it does not know reads a copy in the
 * plain layout, for which the tensor is reordered in each run. A Gelu of the runtime's domain
 * reads the blocks directly, as other elementwise operators do, and operators of a session
 * go before those of the runtime. So an Observe node bears that name where a tensor may be
 * in blocks; it has an output, which nothing reads. Whether the tensor is in blocks is the
 * runtime's choice: extremes and histograms do not depend on the order of the elements, and
 * samples follow one another in both layouts.
 *
 * If the runtime needs its own Gelu in the model, the session cannot be opened.
 */
#ifndef QDQI_TRANSFORM_REWRITE_BLOCKED_H
#define QDQI_TRANSFORM_REWRITE_BLOCKED_H

#include "plan/placement/plan.h"

#define QDQI_RUNTIME_DOMAIN "com.microsoft"
#define QDQI_OBSERVE_BLOCKED "Gelu" /* one input, one output */

/*
 * Finds the wanted activations that the runtime may hold in blocks. (*ret)[i] is the number
 * of channels of activation i, or 0 when it is observed in the plain layout; *ret is NULL
 * when all are. The channels fill the blocks of this processor, so that no element pads one.
 */
enum qdq_code qdqi_find_blocked(const struct qdq_model *source,
                                const struct qdq_plan *plan, const bool *wanted,
                                struct qdqi_arena *arena, const size_t **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
