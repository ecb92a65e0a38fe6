/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of a model that plans and insertion cases use: the class of each node and
 * the neighbours of each layer. Nodes that only pass data on are skipped: Identity,
 * Dropout, Transpose, Reshape…, and the bias Add of a layer.
 *
 * The view is made in one pass in file order. If a file is not in topological order, a
 * node that stands behind its reader is not skipped.
 */
#ifndef QDQI_GRAPH_LAYERS_LAYERS_H
#define QDQI_GRAPH_LAYERS_LAYERS_H

#include "graph/layers/classes.h"

struct qdqi_layers {
    const struct qdq_model *model;
    const struct qdqi_classes *rows;
    /* Arrays by node: */
    /* NULL when there is no support for it or it is in an opaque graph */
    const struct qdqi_class **classes;
    const int8_t *passes; /* index of the input that the node passes on, or -1 */
    /* of a node that passes data on: the node that makes the data, or -1 */
    const int64_t *sources;
    /* whether it is a DequantizeLinear, or passes on what one makes */
    const bool *dequantized;
    const int *n_consumers; /* see qdqi_layer_consumers() */
    bool *named;            /* whether a spec entry selects it by name or pattern */
    const struct qdqi_node **queue; /* work space for visiting consumers */
    const bool *infinite; /* whether its outputs may hold infinities (infinities.h) */
    /* whether layers have pairs on what is made of sizes and constants, and Concats on constants */
    bool pairs_sizes;
};

/* Borrows model and rows. NO_MEMORY. */
enum qdq_code qdqi_layers_new(const struct qdq_model *model,
                              const struct qdqi_classes *rows, struct qdqi_arena *arena,
                              struct qdqi_layers **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the index of a node in the graph and in the arrays above. */
size_t qdqi_layer_index(const struct qdqi_layers *layers, const struct qdqi_node *node);

/*
 * Returns the node with that reported name, or for "@TENSOR" the node that makes the
 * tensor; NULL when there is none. For a bias Add it returns the layer that the Add
 * belongs to.
 */
const struct qdqi_node *qdqi_layer_find(const struct qdqi_layers *layers,
                                        const char *name);

/* The kind of an input of a layer, for a plan. */
enum qdqi_input_kind {
    QDQI_INPUT_DATA,     /* data that can get a pair */
    QDQI_INPUT_NO_DATA,  /* missing, the weight, or a parameter */
    QDQI_INPUT_CONSTANT, /* data that never changes */
    QDQI_INPUT_SHAPE,    /* computed from shapes alone */
    QDQI_INPUT_PAIRED,   /* made by a DequantizeLinear of the model */
    QDQI_INPUT_INTEGER,
    QDQI_INPUT_FLOAT16, /* float16, with an opset whose Q/DQ lack it */
    QDQI_INPUT_NOT_FLOAT32,
    QDQI_INPUT_UNKNOWN,  /* the model does not state its type */
    QDQI_INPUT_INFINITE, /* a constant of the model gives it infinities */
};

/* The first opset whose Q/DQ accept float16 and bfloat16 (QuantizeLinear-19). */
enum { QDQI_OPSET_FLOAT16 = 19 };

/* Returns the type of input i. If the model does not state it, the weight's type is
   used, because operators bind both to the same type variable T. */
enum qdqi_dtype qdqi_layer_dtype(const struct qdqi_class *cls,
                                 const struct qdqi_node *node, int i);
enum qdqi_input_kind qdqi_layer_input(const struct qdqi_layers *layers,
                                      const struct qdqi_node *node, int i);
/* The first function returns the kind of a data input of that type; the second one
   returns how a report explains why such an input is not quantized. */
enum qdqi_input_kind qdqi_input_of_dtype(const struct qdq_model *model,
                                         enum qdqi_dtype dtype);
const char *qdqi_input_reason(enum qdqi_input_kind input);

/* Returns whether input i, which may be a weight, comes from a DequantizeLinear of
   the model itself. Nodes that pass data on are skipped. */
bool qdqi_layer_is_paired(const struct qdqi_layers *layers,
                          const struct qdqi_node *node, int i);

/* Returns the node that makes input i, or NULL for an input of the graph or a
   constant. */
const struct qdqi_node *qdqi_layer_producer(const struct qdqi_layers *layers,
                                            const struct qdqi_node *node, int i);

/*
 * Calls `see` for each use of the node's outputs by another layer. `n_consumers` is the
 * number of these calls, plus 1 for each output that is an output of its graph and 1
 * for each that a nested graph captures.
 */
void qdqi_layer_consumers(const struct qdqi_layers *layers,
                          const struct qdqi_node *node,
                          void (*see)(void *arg, const struct qdqi_node *consumer),
                          void *arg);

#endif
