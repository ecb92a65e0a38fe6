/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model as a plan and the insertion cases see it: the class of each node, and the
 * neighbours of a layer, looked at through what only passes data on (Identity, Dropout,
 * Transpose, Reshape…, and the bias Add that belongs to a layer).
 *
 * Made in one walk in file order; nodes of a file that is not in order (a user before
 * the maker) are not seen through.
 */
#ifndef QDQI_LAYERS_LAYERS_H
#define QDQI_LAYERS_LAYERS_H

#include "layers/classes.h"

struct qdqi_layers {
    const struct qdq_model *model;
    const struct qdqi_classes *rows;
    /* By node: */
    const struct qdqi_class **classes; /* NULL: no support, or in an opaque graph */
    const int8_t *passes;              /* the input that comes out as it is, or -1 */
    const int64_t *sources; /* of a node that passes on: whose data; -1: none's */
    const int *n_consumers; /* uses of the outputs by other layers; see below */
    bool *named;            /* an entry of the user's spec names it, or its glob does */
    const struct qdqi_node **queue; /* room for a walk over consumers */
};

/* Borrows model and rows. NO_MEMORY. */
enum qdq_code qdqi_layers_new(const struct qdq_model *model,
                              const struct qdqi_classes *rows, struct qdqi_arena *arena,
                              struct qdqi_layers **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* Index of a node in the graph, by which the arrays above go. */
size_t qdqi_layer_index(const struct qdqi_layers *layers, const struct qdqi_node *node);

/* The node of that reported name, or that makes the tensor of "@TENSOR"; NULL: none. A
   bias Add stands for the layer that it belongs to. */
const struct qdqi_node *qdqi_layer_find(const struct qdqi_layers *layers,
                                        const char *name);

/* What input i of a layer is to the plan. */
enum qdqi_input_kind {
    QDQI_INPUT_DATA,     /* can get a pair */
    QDQI_INPUT_NO_DATA,  /* not there, the weight, or a parameter */
    QDQI_INPUT_CONSTANT, /* data that never changes */
    QDQI_INPUT_SHAPE,    /* computed, but from shapes alone */
    QDQI_INPUT_PAIRED,   /* a DequantizeLinear of the model makes it */
    QDQI_INPUT_INTEGER,
    QDQI_INPUT_FLOAT16, /* which the opset has no Q/DQ for */
    QDQI_INPUT_NOT_FLOAT32,
    QDQI_INPUT_UNKNOWN, /* nothing says its type */
};

/* First opset of ONNX with Q/DQ of float16 (QuantizeLinear-19). */
enum { QDQI_OPSET_FLOAT16 = 19 };

/* The type of input i, known for all that are data: the weight's where nothing else says
   it, for operators bind both to one T. */
enum qdqi_dtype qdqi_layer_dtype(const struct qdqi_class *cls,
                                 const struct qdqi_node *node, int i);
enum qdqi_input_kind qdqi_layer_input(const struct qdqi_layers *layers,
                                      const struct qdqi_node *node, int i);
/* What keeps an input of a type from being data, and how a report says it. */
enum qdqi_input_kind qdqi_input_of_dtype(const struct qdq_model *model,
                                         enum qdqi_dtype dtype);
const char *qdqi_input_reason(enum qdqi_input_kind input);

/* Whether input i, also a weight, comes from a DequantizeLinear of the model itself,
   seen through those that pass on. */
bool qdqi_layer_is_paired(const struct qdqi_layers *layers,
                          const struct qdqi_node *node, int i);

/* The node that makes input i; NULL for an input of the graph and for a constant. */
const struct qdqi_node *qdqi_layer_producer(const struct qdqi_layers *layers,
                                            const struct qdqi_node *node, int i);

/*
 * Calls `see` for every use of the node's outputs by another layer. How many these are
 * says n_consumers, which also counts 1 for an output of its graph and 1 for being, as
 * it is, one of a nested graph.
 */
void qdqi_layer_consumers(const struct qdqi_layers *layers,
                          const struct qdqi_node *node,
                          void (*see)(void *arg, const struct qdqi_node *consumer),
                          void *arg);

#endif
