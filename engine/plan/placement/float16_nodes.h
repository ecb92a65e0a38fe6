/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of the nodes that compute in float16 or bfloat16 where the spec's `float`
 * asks for it. A node of the main graph is chosen if the schema of its operator, its
 * constants and the known ranges of its inputs and outputs allow it. All other nodes
 * stay float32.
 */
#ifndef QDQI_PLAN_PLACEMENT_FLOAT16_NODES_H
#define QDQI_PLAN_PLACEMENT_FLOAT16_NODES_H

#include "ground/base/warnings.h"
#include "files/model/model.h"
#include "qdq/report.h"
#include "qdq/spec.h"

/* The types of an operator's inputs and outputs when it computes in float16 or
   bfloat16. */
struct qdqi_float16_op {
    const char *const *ops; /* the last one is NULL */
    /* first opset with float16, and with bfloat16; 0: no opset has it */
    int64_t half, bfloat;
    /* inputs and outputs that stay float32, as bits */
    uint32_t float32_inputs, float32_outputs;
    /* the reason why the operator stays float32 nevertheless, or NULL */
    const char *kept;
};

/* Returns the row of an operator, or NULL for an operator that stays float32. */
const struct qdqi_float16_op *qdqi_float16_op(const char *op);

/* Returns the type that the spec asks for, or QDQI_UNKNOWN when it asks for none. */
enum qdqi_dtype qdqi_float16_dtype(const struct qdq_spec *spec);

/* Fails with UNSUPPORTED when the model's opset, or a part of the model outside its
   main graph, rules the type out. */
enum qdq_code qdqi_float16_check(const struct qdq_model *model,
                                 const struct qdq_spec *spec,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

struct qdqi_float16_nodes {
    enum qdqi_dtype dtype;
    bool *nodes; /* by node of the model: whether the node computes in the type */
    size_t n_chosen;
    /* the nodes that stay float32, in the order of the model */
    struct qdq_kept_node *kept;
    size_t n_kept;
};

/*
 * Chooses the nodes. `beyond` maps the names of tensors that are known to leave the
 * type's range to the reason. The function stores its findings about constants in `seen`; a second
 * call with the same model and the same `seen` does not read these constants again.
 * INVALID_MODEL, NO_MEMORY.
 */
enum qdq_code qdqi_float16_choose_nodes(const struct qdq_model *model,
                                        enum qdqi_dtype dtype,
                                        const struct qdqi_map *beyond,
                                        struct qdqi_map *seen, struct qdqi_arena *arena,
                                        struct qdqi_float16_nodes *ret,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/* Adds one warning for each reason why nodes stay float32. */
enum qdq_code qdqi_float16_warn(const struct qdqi_float16_nodes *nodes,
                                struct qdqi_warnings *warnings,
                                struct qdqi_arena *arena,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
