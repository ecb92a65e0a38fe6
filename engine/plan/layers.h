/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model as a plan and the insertion cases see it: the class of each node, and the
 * neighbours of a layer, looked at through what only passes data on (Identity, Dropout,
 * Transpose, Reshape…, and the bias Add that belongs to a layer).
 *
 * Everything together is linear in the size of the graph but for chains of nodes that
 * pass data on, which are walked again by each who asks.
 */
#ifndef QDQI_LAYERS_H
#define QDQI_LAYERS_H

#include "plan/classes.h"

struct qdqi_layers {
    const struct qdq_model *model;
    const struct qdqi_class **classes; /* by node; NULL: no support */
    bool *named; /* by node: an entry of the user's spec names it, or its glob does */
    int *n_consumers; /* by node, -1 before it is first asked for */
};

/* Borrows model and classes. NO_MEMORY. */
enum qdq_code qdqi_layers_new(const struct qdq_model *model,
                              const struct qdqi_classes *classes,
                              struct qdqi_arena *arena, struct qdqi_layers **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* The node of that reported name, or that makes the tensor of "@TENSOR"; NULL: none. A
   bias Add stands for the layer that it belongs to. */
const struct qdqi_node *qdqi_layer_find(const struct qdqi_layers *layers,
                                        const char *name);

/* Index of a node in the graph, by which the arrays above go. */
size_t qdqi_node_index(const struct qdqi_layers *layers, const struct qdqi_node *node);

/* Whether input i is data that can get a pair: computed, floating, not the weight. */
bool qdqi_is_data_input(const struct qdqi_layers *layers, const struct qdqi_node *node,
                        int i);

/* The node that makes input i; NULL for an input of the graph and for a constant. */
const struct qdqi_node *qdqi_layer_producer(const struct qdqi_layers *layers,
                                            const struct qdqi_node *node, int i);

/* Calls `see` for every use of the node's outputs by another layer, in file order. */
void qdqi_layer_consumers(const struct qdqi_layers *layers,
                          const struct qdqi_node *node,
                          void (*see)(void *arg, const struct qdqi_node *consumer),
                          void *arg);

/* How many uses that are; an output of the graph, and a use in a nested graph, is one.
 */
int qdqi_layer_n_consumers(struct qdqi_layers *layers, const struct qdqi_node *node);

#endif
