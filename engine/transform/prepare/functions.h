/* SPDX-License-Identifier: Apache-2.0 */
/* The local functions of a model: their calls, and the choice of those to inline. */
#ifndef QDQI_TRANSFORM_PREPARE_FUNCTIONS_H
#define QDQI_TRANSFORM_PREPARE_FUNCTIONS_H

#include "transform/prepare/prepare.h"

struct qdqi_function {
    const Onnx__FunctionProto *proto;
    bool is_inlined; /* its calls are replaced by its nodes */
    /* would be inlined, but imports operator sets that the model does not */
    bool is_foreign;
    bool is_needed;   /* something that stays in the model calls it */
    uint64_t n_nodes; /* with each call replaced by the nodes of its function */
    unsigned depth;   /* 1, or 1 more than that of the deepest function that it calls */
    unsigned visited; /* state of the depth-first search: not yet, now, done */
};

struct qdqi_functions {
    size_t n;
    struct qdqi_function *rows;
    struct qdqi_map *by_key;
    struct qdqi_map *wanted; /* operators whose presence makes a function be inlined */
    const struct qdq_model *model;
    struct qdqi_arena *arena; /* holds the keys */
};

/*
 * Finds the functions of a model, and marks those to inline: functions that contain,
 * directly or through calls, an operator that is quantized by default or whose class
 * the spec names. INVALID_MODEL for a recursive function, LIMIT_EXCEEDED, NO_MEMORY.
 */
enum qdq_code qdqi_functions_find(const struct qdqi_preparing *p,
                                  struct qdqi_arena *arena, struct qdqi_functions *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the function that a node calls, or NULL. */
struct qdqi_function *qdqi_function_called(const struct qdqi_functions *functions,
                                           const Onnx__NodeProto *node);

/* Marks the functions that are still called after the inlining. */
void qdqi_functions_mark_needed(const struct qdqi_functions *functions);

/* Returns the default value of a function's attribute, in the arena, or NULL. */
const Onnx__AttributeProto *qdqi_function_default(const struct qdqi_function *function,
                                                  const char *name,
                                                  struct qdqi_arena *arena);

#endif
