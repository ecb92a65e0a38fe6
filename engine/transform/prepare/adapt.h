/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the opset conversion: a node while it is adapted, and the operations
   on it. */
#ifndef QDQI_TRANSFORM_PREPARE_ADAPT_H
#define QDQI_TRANSFORM_PREPARE_ADAPT_H

#include "transform/prepare/value_types.h"
#include "transform/prepare/nodes.h"
#include "transform/prepare/convert_opset.h"

struct qdqi_opset_conversion {
    const struct qdq_model *source;
    struct qdqi_arena *arena;
    struct qdqi_map *names;  /* names that were made here */
    struct qdqi_map *known;  /* from the name of a value to struct qdqi_value_type */
    int64_t from, to;        /* opsets of the graph or function that is being walked */
    struct qdqi_nodes nodes; /* its nodes that are finished */
};

/* A node that is converted from opset to opset: a copy with arrays of its own. */
struct qdqi_adapting {
    struct qdqi_opset_conversion *r;
    Onnx__NodeProto *node;
    struct qdqi_nodes after; /* nodes to insert behind it */
    bool was_upsample; /* a Resize that was an Upsample, so its scales are at least 1 */
    const char *invalid; /* the part that the node lacks; NULL: it is complete */
};

/* Converts the node to the row's opset. Returns NULL, or the reason why that is
   impossible. Allocations may fail silently: the walk checks the arena at the end. */
typedef const char *(*qdqi_adapter)(struct qdqi_adapting *a);

struct qdqi_opset_row {
    const char *op;
    int64_t opset;
    qdqi_adapter adapt;
};

extern const struct qdqi_opset_row qdqi_opset_rows[];
extern const size_t qdqi_n_opset_rows;

/* --- queries for adapters ------------------------------------------------ */

/* Returns whether the node has at least these numbers of inputs and outputs that are
   not omitted; sets `invalid` if not. */
bool qdqi_adapt_needs(struct qdqi_adapting *a, size_t inputs, size_t outputs);
/* Returns an attribute, or NULL; *why is set when it is a parameter of a function. */
const Onnx__AttributeProto *qdqi_adapt_attribute(const struct qdqi_adapting *a,
                                                 const char *name, const char **why);
/* Returns type and rank of input i, as far as known; NULL for an omitted input or an
   unknown value. */
const struct qdqi_value_type *qdqi_adapt_known(const struct qdqi_adapting *a, size_t i);
/* Returns whether an output has no name, or neither a node reads it nor the model
   returns it. */
bool qdqi_adapt_is_idle(const struct qdqi_adapting *a, size_t output);

/* --- changes by adapters ------------------------------------------------- */

/* Changes the operator; `op` is a literal. */
void qdqi_adapt_rename(struct qdqi_adapting *a, const char *op);
void qdqi_adapt_drop_attribute(struct qdqi_adapting *a, const char *name);
void qdqi_adapt_set_int(struct qdqi_adapting *a, const char *name, int64_t value);
void qdqi_adapt_set_text(struct qdqi_adapting *a, const char *name, const char *text);
/* Sets input i; missing inputs before it become omitted ones. */
void qdqi_adapt_set_input(struct qdqi_adapting *a, size_t i, const char *tensor);
/* Removes all outputs but the first. */
void qdqi_adapt_one_output(struct qdqi_adapting *a);
/* Returns an unused name derived from the node's name. */
const char *qdqi_adapt_name(struct qdqi_adapting *a, const char *suffix);

/* Add a constant before the node and return its tensor's name: integers, of rank 0
   if `scalar`; floats likewise, of a floating-point type other than bfloat16. */
const char *qdqi_adapt_ints(struct qdqi_adapting *a, const char *suffix,
                            const int64_t *values, size_t n, bool scalar);
const char *qdqi_adapt_floats(struct qdqi_adapting *a, const char *suffix,
                              enum qdqi_dtype dtype, const float *values, size_t n,
                              bool scalar);

/* Adds a node of ONNX's own domain before this one and returns its output. The list
   of inputs ends with NULL. */
const char *qdqi_adapt_before(struct qdqi_adapting *a, const char *op,
                              const char *suffix, const char *const *inputs,
                              const char *attribute, int64_t value);
/* Adds a node behind this one that computes `output`. */
void qdqi_adapt_after(struct qdqi_adapting *a, const char *op,
                      const char *const *inputs, const char *output);

#endif
