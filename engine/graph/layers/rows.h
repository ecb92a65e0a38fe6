/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The macro LAYER of tables of layer support, for the library's (ground/tbl/layers.h, which
 * explains its arguments) and for those of targets: it makes a struct qdqi_class of a row.
 * A target's table may have two more kinds:
 *
 *   OPERAND    WEIGHTED, and the weight is one of two equivalent operands
 *   TABLE      the weight is a table whose rows integer inputs select
 *   RECURRENT  input 0 is data, input 1 a constant weight and input 2 the constant weight
 *              of the state
 *
 * A row's predicate is the function qdqi_is_PREDICATE, and its axis qdqi_axis_AXIS. Those
 * that tables share are declared here.
 */
#ifndef QDQI_GRAPH_LAYERS_ROWS_H
#define QDQI_GRAPH_LAYERS_ROWS_H

#include "graph/layers/classes.h"

#define QDQI_BY_ON "default"
#define QDQI_BY_OFF "any"
#define QDQI_BY_ASKED "name_or_class"
#define QDQI_BY_NAMED "name"

#define QDQI_KIND_WEIGHTED .kind = QDQ_WEIGHTED, .support.kind = "weighted"
#define QDQI_KIND_OPERAND QDQI_KIND_WEIGHTED, .is_operand = true
#define QDQI_KIND_TABLE QDQI_KIND_WEIGHTED, .is_table = true
#define QDQI_KIND_RECURRENT QDQI_KIND_WEIGHTED, .is_recurrent = true
#define QDQI_KIND_NON_WEIGHTED .kind = QDQ_NON_WEIGHTED, .support.kind = "non_weighted"
#define QDQI_KIND_MOVING QDQI_KIND_NON_WEIGHTED, .moves_data = true
#define QDQI_KIND_PASS QDQI_KIND_MOVING, .support.pass_through = true
#define QDQI_KIND_MULTI_INPUT .kind = QDQ_MULTI_INPUT, .support.kind = "multi_input"

#define LAYER(class_name, op_name, row_kind, weight, row_axis, row_state, predicate, \
              text)                                                                  \
    {                                                                                \
        .support.cls = class_name,                                                   \
        .support.op = op_name,                                                       \
        .support.weight_input = weight,                                              \
        .support.quantize_input = QDQI_##row_state == QDQI_ON,                       \
        .support.quantize_weight = QDQI_##row_state == QDQI_ON && (weight) >= 0,     \
        .support.selected_by = QDQI_BY_##row_state,                                  \
        .support.note = text,                                                        \
        .support.source = "library",                                                 \
        QDQI_KIND_##row_kind,                                                        \
        .state = QDQI_##row_state,                                                   \
        .axis = qdqi_axis_##row_axis,                                                \
        .is = qdqi_is_##predicate,                                                   \
    },

bool qdqi_is_any_node(const struct qdq_model *model, const struct qdqi_node *node);
bool qdqi_is_one_constant_operand(const struct qdq_model *model,
                                  const struct qdqi_node *node);

/* The head of a function that returns the channel axis of a weight; it need not use all
   arguments. */
#define QDQI_UNUSED __attribute__((unused))
#define QDQI_AXIS(name)                                            \
    int qdqi_axis_##name(const struct qdqi_class *cls QDQI_UNUSED, \
                         const struct qdqi_node *node QDQI_UNUSED, \
                         int weight_input QDQI_UNUSED, size_t rank QDQI_UNUSED)

QDQI_AXIS(NONE);
QDQI_AXIS(LAST);

#endif
