/* SPDX-License-Identifier: Apache-2.0 */
/* A plan while it is made: plan.c walks through the steps, decide.c is one of them. */
#ifndef QDQI_PLAN_PLANNER_H
#define QDQI_PLAN_PLANNER_H

#include "layers/patterns.h"
#include "plan/plan.h"
#include "plan/select.h"

/* Pairs on the outputs of layers (plan/outputs.h); no maps where the target places none. */
struct qdqi_outputs {
    struct qdqi_map *leaders; /* tensor -> the first of those whose numbers it has */
    struct qdqi_map *units;   /* tensors that lie in [0, 1] */
    struct qdqi_map *paired;  /* tensors that get a pair */
};

struct planner {
    const struct qdq_catalog *catalog;
    const struct qdq_model *model;
    const struct qdq_spec *spec;
    struct qdq_plan *plan;
    struct qdqi_layers *graph;
    struct qdqi_patterns *patterns;
    struct qdqi_selection selection;
    struct qdq_layer *layers;
    size_t n_layers;
    struct qdqi_warnings warnings;
    bool per_channel;
    struct qdq_layer **by_node; /* NULL: of no known class */
    /* By node, when all are decided on: what it makes is read as int8, perhaps behind
       copies and activations. */
    bool *feeds_int8;
    struct qdqi_outputs outputs;
    struct qdqi_map
        *activations; /* name -> its row in the plan, when all are collected */
};

/* What a report says of a layer that is off, and that nothing asked for. */
#define QDQI_OFF_BY_DEFAULT "off by default"

/* Runs a case, and lets its entries choose; adds their number to *n_entries. */
enum qdq_code qdqi_run_case(struct planner *p, const struct qdq_case_use *use,
                            const char *pointer, size_t *n_entries,
                            struct qdq_error *err) QDQ_MUST_CHECK;

/* Decides on node i, if it is of a class: which of its inputs get a pair, and why. */
enum qdq_code qdqi_decide(struct planner *p, size_t i,
                          struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * The axis that blocks of a weight lie along, that over which the layer sums, for a layer
 * whose channels lie along `axis`; `axis` where there are no blocks to be made.
 */
int qdqi_block_axis(const struct planner *p, const struct qdqi_node *node, int axis,
                    const int64_t *dims, size_t rank);
/* Elements of a block of a planned weight; 0: it has channels, or one scale. */
int64_t qdqi_block_of(const struct planner *p, const struct qdq_layer *layer,
                      const struct qdqi_tensor *weight);

/* UNSUPPORTED where the opset lacks what the formats need; warns of those that the target
   would refuse. */
enum qdq_code qdqi_check_formats(struct planner *p,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Whether an entry's quantization_index has input i; without one (or entry) all are in
   it. */
bool qdqi_is_indexed(const struct qdq_layer_entry *entry, int i);

#endif
