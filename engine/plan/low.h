/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes compute in float16 or bfloat16, where the spec's `float` asks for it: those
 * of the main graph that can, by their operator's schema, by their constants and by the
 * ranges that are known of what they read and make. All others stay float32.
 */
#ifndef QDQI_PLAN_LOW_H
#define QDQI_PLAN_LOW_H

#include "base/warnings.h"
#include "model/model.h"
#include "qdq/report.h"
#include "qdq/spec.h"

/* What an operator does with inputs and outputs of float32 when it is low. */
struct qdqi_low_op {
    const char *op;
    int64_t half, bfloat;               /* first opset that takes the type; 0: none */
    uint32_t high_inputs, high_outputs; /* that stay float32; by bits */
    const char *kept;                   /* why it stays float32 all the same, or NULL */
};

/* NULL: the operator stays float32. */
const struct qdqi_low_op *qdqi_low_op(const char *op);

/* The type that the spec asks for; QDQI_UNKNOWN where it asks for none. */
enum qdqi_dtype qdqi_low_dtype(const struct qdq_spec *spec);

/* The opset that Q/DQ of it need, and that from which all operators know it. */
enum { QDQI_OPSET_LOW = 19, QDQI_OPSET_BFLOAT16 = 22 };

/* UNSUPPORTED where the model's opset, or what it has besides a graph, rules it out. */
enum qdq_code qdqi_low_check(const struct qdq_model *model, const struct qdq_spec *spec,
                             struct qdq_error *err) QDQ_MUST_CHECK;

struct qdqi_low {
    enum qdqi_dtype dtype;
    bool *nodes; /* by node of the model: it is low */
    size_t n_low;
    struct qdq_kept_node *kept; /* those that work with float32, in their order */
    size_t n_kept;
};

/*
 * `beyond` has the names of tensors that are known to leave the type's range; `seen` is
 * filled with what was found out of constants, and saves reading them again where it is
 * passed once more with the same model. INVALID_MODEL, NO_MEMORY.
 */
enum qdq_code qdqi_low_decide(const struct qdq_model *model, enum qdqi_dtype dtype,
                              const struct qdqi_map *beyond, struct qdqi_map *seen,
                              struct qdqi_arena *arena, struct qdqi_low *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* One warning for each reason. */
enum qdq_code qdqi_low_warn(const struct qdqi_low *low, struct qdqi_warnings *warnings,
                            struct qdqi_arena *arena,
                            struct qdq_error *err) QDQ_MUST_CHECK;

#endif
