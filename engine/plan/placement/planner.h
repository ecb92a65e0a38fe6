/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a plan while it is made. plan.c walks through the steps, and decide.c
   is one of them. */
#ifndef QDQI_PLAN_PLACEMENT_PLANNER_H
#define QDQI_PLAN_PLACEMENT_PLANNER_H

#include "graph/layers/layers.h"
#include "plan/placement/plan.h"
#include "plan/placement/select.h"

/* Pairs on the outputs of layers (plan/placement/outputs.h). The maps are NULL for a target
   that places no pairs there. */
struct qdqi_outputs {
    /* maps a tensor to the first of the tensors whose scale and zero point it shares */
    struct qdqi_map *leaders;
    struct qdqi_map *units;  /* tensors that lie in [0, 1] */
    struct qdqi_map *paired; /* tensors that get a pair */
};

struct planner {
    const struct qdq_catalog *catalog;
    const struct qdq_model *model;
    const struct qdq_spec *spec;
    struct qdq_plan *plan;
    struct qdqi_layers *graph;
    struct qdqi_selection selection;
    int64_t script_time; /* processor time that is left to the spec's cases, in ns */
    struct qdq_layer *layers;
    size_t n_layers;
    struct qdqi_warnings warnings;
    bool has_axes; /* the model's opset has scales along an axis */
    /* by node: the formats that an entry states for its layer, or for another layer of the same
       weight; NULL: the plan's; the whole is NULL where no entry states any */
    const struct qdq_layer_format **formats;
    /* the layer of each node; NULL: the node is of no known class */
    struct qdq_layer **by_node;
    /* what the target found out about the model: only its own files know the type. Its hook
       begin() makes it; NULL where the target has none */
    void *marks;
    struct qdqi_outputs outputs;
    /* maps a name to its row in the plan; filled when all are collected */
    struct qdqi_map *activations;
};

/* Returns the node of a layer. */
static inline const struct qdqi_node *
qdqi_node_of(const struct planner *p, const struct qdq_layer *layer)
{
    return &p->model->graph.nodes[layer->node];
}

/* Makes the whole plan but its warnings' rows. */
enum qdq_code qdqi_planner_make(struct planner *p,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Warns of rows of the spec's layer support without which the plan, which is made, is the
   same. NO_MEMORY. */
enum qdq_code qdqi_warn_idle_support(struct planner *p,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Runs a case and applies the entries that it returns. Adds their number to *n_entries.
 */
enum qdq_code qdqi_run_case(struct planner *p, const struct qdq_case_use *use,
                            const char *pointer, size_t *n_entries,
                            struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether a constant of the model gives a tensor infinities, as that of a mask, and the spec no
   range. */
bool qdqi_is_infinite(const struct planner *p, const struct qdqi_tensor *t);

/* Decides which inputs of node i get a pair, and why, if the node is of a known
   class. */
enum qdq_code qdqi_decide(struct planner *p, size_t i,
                          struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the axis of the weight of a Conv, ConvTranspose, Gemm or MatMul along which its inputs
   lie, if its outputs lie along `axis`. The weight has two axes or more. */
int qdqi_input_axis(const struct qdqi_node *node, int axis, size_t rank);

/*
 * Returns the axis that blocks of a weight lie along. That is the axis over which the
 * layer sums, for a layer whose channels lie along `axis`. Returns `axis` where there
 * can be no blocks.
 */
int qdqi_block_axis(const struct planner *p, const struct qdq_layer *layer, int axis,
                    const int64_t *dims, size_t rank);
/* Returns the number of elements in a block of a planned weight, or 0 when the
   weight has a scale for each channel or one scale. */
int64_t qdqi_block_of(const struct planner *p, const struct qdq_layer *layer,
                      const struct qdqi_tensor *weight);

/* Returns the first reason why the target's runtime does not load a layer, or NULL. */
const char *qdqi_first_refusal(const struct planner *p);

/* Fails with UNSUPPORTED when the opset lacks something that the formats need. Warns
   of formats that the target would refuse. */
enum qdq_code qdqi_check_formats(struct planner *p,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether an entry's quantization_index has input i. Without an index, or
   without an entry, every input counts as selected. */
bool qdqi_is_indexed(const struct qdq_layer_entry *entry, int i);

#endif
