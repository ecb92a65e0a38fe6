/* SPDX-License-Identifier: Apache-2.0 */
/* The table of supported layers that a plan uses, and the matching of nodes to its
   rows. */
#ifndef QDQI_GRAPH_LAYERS_CLASSES_H
#define QDQI_GRAPH_LAYERS_CLASSES_H

#include "files/model/model.h"
#include "qdq/plan.h"

/* Whether a class is quantized by default, and otherwise what has to select it; see
   tbl/layers.h. */
enum qdqi_state { QDQI_ON, QDQI_OFF, QDQI_ASKED, QDQI_NAMED };

struct qdqi_class {
    struct qdq_layer_support support;
    enum qdq_kind kind;
    enum qdqi_state state;
    bool is_given;   /* a spec or an operator's case has the row, and no table */
    bool moves_data; /* the operator moves data and computes nothing */
    /* the weight is one of two equivalent operands, and has the format of activations */
    bool is_operand;
    bool is_table;     /* the weight is all that can be quantized */
    bool is_recurrent; /* input QDQI_RECURRENT is a weight, too */
    /* Returns the channel axis of a weight of `rank` dimensions, -1 if it has none,
       or QDQI_BAD_AXIS if the weight lacks the axis that was given for it. */
    int (*axis)(const struct qdqi_class *cls, const struct qdqi_node *node,
                int weight_input, size_t rank);
    bool (*is)(const struct qdq_model *model, const struct qdqi_node *node);
    int given_axis; /* channel axis of a row from a spec or an operator's case */
};

enum { QDQI_BAD_AXIS = -2 };

/* The input of a recurrent layer that its state is multiplied by. */
enum { QDQI_RECURRENT = 2 };

/* The rows that a plan uses, in the order in which they are tried: those of the
   spec, of the operator, of the target and of the library. */
struct qdqi_classes;

/*
 * Writes the rows that a given row stands for to `ret` and returns their number: one
 * for each row of the library with its class, or else one for all nodes of that
 * operator. `ret` can be NULL to count only. If `note` is NULL the rows keep the notes
 * of the library.
 */
size_t qdqi_given_rows(const struct qdq_support *given, const char *source,
                       const char *note, struct qdqi_class *ret);

/* Makes the rows of a spec, of n operators and of a target's own rows. They are in the arena
   and borrow from all of them. NO_MEMORY. */
enum qdq_code qdqi_classes_new(const struct qdqi_class *operators, size_t n,
                               const struct qdqi_class *own, size_t n_own,
                               const struct qdq_spec *spec, struct qdqi_arena *arena,
                               struct qdqi_classes **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the class of a node, or NULL when no row matches it. */
const struct qdqi_class *qdqi_class_of(const struct qdqi_classes *classes,
                                       const struct qdq_model *model,
                                       const struct qdqi_node *node);

/* Returns whether `name` is a class or an operator of the rows; the second function
   returns the most similar such name, or NULL. */
bool qdqi_class_is_known(const struct qdqi_classes *classes, const char *name);
const char *qdqi_class_nearest(const struct qdqi_classes *classes, const char *name);

/* Returns whether a spec entry for the class `name` applies to nodes of this class. */
bool qdqi_class_goes_by(const struct qdqi_class *cls, const char *name);

/* Returns row i of the library's table, or NULL behind the last one. */
const struct qdq_layer_support *qdqi_library_layer(size_t i);

/* Returns the input index of the weight of a weighted node: its constant operand, or
   else the index in the row. */
int qdqi_weight_input(const struct qdqi_class *cls, const struct qdqi_node *node);

/* The first function returns whether input i exists and is constant, the second one
   whether it exists and is computed from data. */
bool qdqi_input_is_constant(const struct qdqi_node *node, int i);
bool qdqi_input_is_computed(const struct qdqi_node *node, int i);

#endif
