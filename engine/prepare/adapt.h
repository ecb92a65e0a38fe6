/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the raising of a model: a node while it is adapted, and what can be done
   with it. */
#ifndef QDQI_PREPARE_ADAPT_H
#define QDQI_PREPARE_ADAPT_H

#include "prepare/known.h"
#include "prepare/nodes.h"
#include "prepare/raise.h"

struct qdqi_raising {
    const struct qdq_model *source;
    struct qdqi_arena *arena;
    struct qdqi_map *names;  /* those made here */
    struct qdqi_map *known;  /* value -> struct qdqi_known */
    int64_t from, to;        /* of what is walked through now */
    struct qdqi_nodes nodes; /* likewise: those of it that are done */
};

/* A node on its way from opset to opset: a copy with arrays of its own. */
struct qdqi_adapting {
    struct qdqi_raising *r;
    Onnx__NodeProto *node;
    struct qdqi_nodes after; /* what is to stand behind it */
    bool was_upsample;       /* a Resize that was one, so its scales are not below 1 */
    const char *invalid;     /* what the node lacks; NULL: nothing */
};

/* Brings the node to the row's opset. Returns why it cannot, or NULL. Allocations may
   fail: who walks asks the arena at the end. */
typedef const char *(*qdqi_adapter)(struct qdqi_adapting *a);

struct qdqi_opset_row {
    const char *op;
    int64_t opset;
    qdqi_adapter adapt;
};

extern const struct qdqi_opset_row qdqi_opset_rows[];
extern const size_t qdqi_n_opset_rows;

/* --- what adapters ask ---------------------------------------------------- */

/* Whether it has so many inputs and outputs that are not left out; sets `invalid`. */
bool qdqi_adapt_needs(struct qdqi_adapting *a, size_t inputs, size_t outputs);
/* An attribute, or NULL; *why is set where it is a parameter of a function. */
const Onnx__AttributeProto *qdqi_adapt_attribute(const struct qdqi_adapting *a,
                                                 const char *name, const char **why);
/* What is known of input i; NULL where it is left out, or nothing is. */
const struct qdqi_known *qdqi_adapt_known(const struct qdqi_adapting *a, size_t i);
/* Whether an output has no name, or nobody reads it and the model does not return it. */
bool qdqi_adapt_is_idle(const struct qdqi_adapting *a, size_t output);

/* --- what adapters do ----------------------------------------------------- */

/* `op` is a literal. */
void qdqi_adapt_rename(struct qdqi_adapting *a, const char *op);
void qdqi_adapt_drop_attribute(struct qdqi_adapting *a, const char *name);
void qdqi_adapt_set_int(struct qdqi_adapting *a, const char *name, int64_t value);
void qdqi_adapt_set_text(struct qdqi_adapting *a, const char *name, const char *text);
/* Inputs up to i that are not there are left out. */
void qdqi_adapt_set_input(struct qdqi_adapting *a, size_t i, const char *tensor);
/* Outputs beyond the first are not made any more. */
void qdqi_adapt_one_output(struct qdqi_adapting *a);
/* A name that nothing bears, for what belongs to the node. */
const char *qdqi_adapt_name(struct qdqi_adapting *a, const char *suffix);

/* Constants before the node: integers, of rank 0 if `scalar`; floats, likewise, of a
   floating type that is not bfloat16. They return their tensor. */
const char *qdqi_adapt_ints(struct qdqi_adapting *a, const char *suffix,
                            const int64_t *values, size_t n, bool scalar);
const char *qdqi_adapt_floats(struct qdqi_adapting *a, const char *suffix,
                              enum qdqi_dtype dtype, const float *values, size_t n,
                              bool scalar);

/* A node of ONNX's own before this one; returns its output. Inputs end with NULL. */
const char *qdqi_adapt_before(struct qdqi_adapting *a, const char *op,
                              const char *suffix, const char *const *inputs,
                              const char *attribute, int64_t value);
/* One behind it that makes `output`. */
void qdqi_adapt_after(struct qdqi_adapting *a, const char *op,
                      const char *const *inputs, const char *output);

#endif
