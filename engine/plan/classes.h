/* SPDX-License-Identifier: Apache-2.0 */
/* The layer support table (tbl/layers.h) and how nodes are matched to its rows. */
#ifndef QDQI_CLASSES_H
#define QDQI_CLASSES_H

#include "model/model.h"
#include "qdq/plan.h"

enum qdqi_kind { QDQI_WEIGHTED, QDQI_NON_WEIGHTED, QDQI_MULTI_INPUT };

struct qdqi_class {
    struct qdq_layer_support support;
    enum qdqi_kind kind;
    /* Channel axis of a weight of `rank` dimensions, -1 for none. */
    int (*axis)(const struct qdqi_node *node, int weight_input, size_t rank);
    bool (*is)(const struct qdq_model *model, const struct qdqi_node *node);
};

/* The class of a node, or NULL when the table has no row for it. */
const struct qdqi_class *qdqi_class_of(const struct qdq_model *model,
                                       const struct qdqi_node *node);

/* Input index of the weight of a weighted node: its constant operand, else the row's.
 */
int qdqi_weight_input(const struct qdqi_class *cls, const struct qdqi_node *node);

/* Whether input i is there and constant; whether it is there and computed. */
bool qdqi_input_is_constant(const struct qdqi_node *node, int i);
bool qdqi_input_is_computed(const struct qdqi_node *node, int i);

#endif
