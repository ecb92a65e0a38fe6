/* SPDX-License-Identifier: Apache-2.0 */
/* The layer support that a plan goes by, and how nodes are matched to its rows. */
#ifndef QDQI_LAYERS_CLASSES_H
#define QDQI_LAYERS_CLASSES_H

#include "model/model.h"
#include "qdq/plan.h"

/* Whether a class is quantized, and what has to select it; see tbl/layers.h. */
enum qdqi_state { QDQI_ON, QDQI_OFF, QDQI_ASKED, QDQI_NAMED };

struct qdqi_class {
    struct qdq_layer_support support;
    enum qdq_kind kind;
    enum qdqi_state state;
    bool moves_data; /* the operator computes nothing */
    /* Channel axis of a weight of `rank` dimensions: -1 for none, QDQI_BAD_AXIS when
       the weight lacks the axis that was given for it. */
    int (*axis)(const struct qdqi_class *cls, const struct qdqi_node *node,
                int weight_input, size_t rank);
    bool (*is)(const struct qdq_model *model, const struct qdqi_node *node);
    int given_axis; /* of a row that a spec or an operator gave */
};

enum { QDQI_BAD_AXIS = -2 };

/* The rows that a plan goes by, in the order in which they are tried: the spec's, the
   operator's, the library's. */
struct qdqi_classes;

/*
 * The rows that a given one stands for: one in the place of each row of the library that
 * bears its class, else one for every node of that operator. `note` NULL: how those are
 * recognized. Returns how many; `ret` NULL: counts alone.
 */
size_t qdqi_given_rows(const struct qdq_support *given, const char *source,
                       const char *note, struct qdqi_class *ret);

/* Of a spec and an operator's n rows; borrows from both, lies in the arena. NO_MEMORY.
 */
enum qdq_code qdqi_classes_new(const struct qdqi_class *operators, size_t n,
                               const struct qdq_spec *spec, struct qdqi_arena *arena,
                               struct qdqi_classes **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* The class of a node, or NULL when no row fits it. */
const struct qdqi_class *qdqi_class_of(const struct qdqi_classes *classes,
                                       const struct qdq_model *model,
                                       const struct qdqi_node *node);

/* Whether `name` is a class or an operator of the rows; the nearest one, or NULL. */
bool qdqi_class_is_known(const struct qdqi_classes *classes, const char *name);
const char *qdqi_class_nearest(const struct qdqi_classes *classes, const char *name);

/* Whether a class entry of that name takes in nodes of this class. */
bool qdqi_class_goes_by(const struct qdqi_class *cls, const char *name);

/* Row i of the library's table, NULL past the last. */
const struct qdq_layer_support *qdqi_library_layer(size_t i);

/* Whether the weight is one operand of two that are alike (tbl/operands.h): then it has
   the activations' format. */
bool qdqi_class_is_operand(const struct qdqi_class *cls);

/* Input index of the weight of a weighted node: its constant operand, else the row's.
 */
int qdqi_weight_input(const struct qdqi_class *cls, const struct qdqi_node *node);

/* Whether input i is there and constant; whether it is there and computed from data. */
bool qdqi_input_is_constant(const struct qdqi_node *node, int i);
bool qdqi_input_is_computed(const struct qdqi_node *node, int i);

#endif
