/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about parts of a plan that the target does not fuse, or computes slowly. */
#ifndef QDQI_PLAN_PLACEMENT_LINT_H
#define QDQI_PLAN_PLACEMENT_LINT_H

#include "plan/placement/planner.h"

/*
 * Adds one warning for each row of the target's lints that applies to at least one
 * layer, in the order of the rows. The rules must have been applied to all layers, and
 * the activations collected. NO_MEMORY.
 */
enum qdq_code qdqi_lint(struct planner *p, struct qdq_error *err) QDQ_MUST_CHECK;

/* Layers that a warning counts, with the name of the first. */
struct qdqi_layer_count {
    size_t n;
    const char *first;
};

struct qdqi_layer_count qdqi_count_layers(const struct planner *p,
                                          bool (*means)(const struct planner *p,
                                                        const struct qdq_layer *layer));

/* Warns of the layers as "2 layers (a, ...): text", if there are any. NO_MEMORY. */
enum qdq_code qdqi_warn_count(struct planner *p, const struct qdqi_layer_count *count,
                              const char *code, const char *text,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* Warns with misread_by_target of nodes that the runtime computes otherwise than the standard,
   quantized or not, if there are any. NO_MEMORY. */
enum qdq_code qdqi_warn_misread(struct planner *p, const struct qdqi_names *nodes,
                                const char *text, struct qdq_error *err) QDQ_MUST_CHECK;

/* Does the same for each QuantizeLinear of the model's own that gives an activation several scales. */
enum qdq_code qdqi_warn_several_scales(struct planner *p, const char *text,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

#endif
