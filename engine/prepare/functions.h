/* SPDX-License-Identifier: Apache-2.0 */
/* The local functions of a model: who calls which, and which are to be taken apart. */
#ifndef QDQI_PREPARE_FUNCTIONS_H
#define QDQI_PREPARE_FUNCTIONS_H

#include "prepare/prepare.h"

struct qdqi_function {
    const Onnx__FunctionProto *proto;
    bool is_inlined;  /* its calls become what it is made of */
    bool is_foreign;  /* would be, but for operator sets that the model does not have */
    bool is_needed;   /* by something that stays */
    unsigned visited; /* while they are looked at: not yet, now, done */
};

struct qdqi_functions {
    size_t n;
    struct qdqi_function *rows;
    struct qdqi_map *by_key;
    struct qdqi_map *wanted; /* operators for whose sake a function is taken apart */
    const struct qdq_model *model;
    struct qdqi_arena *arena; /* for keys */
};

/*
 * Of a model. Those are inlined that have, themselves or in what they call, an operator
 * that is quantized by default or that the spec speaks of by its class. INVALID_MODEL
 * for a function that calls itself, LIMIT_EXCEEDED, NO_MEMORY.
 */
enum qdq_code qdqi_functions_find(const struct qdqi_preparing *p,
                                  struct qdqi_arena *arena, struct qdqi_functions *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* The function that a node calls, or NULL. */
struct qdqi_function *qdqi_function_called(const struct qdqi_functions *functions,
                                           const Onnx__NodeProto *node);

/* Marks what is still called when the others are inlined. */
void qdqi_functions_mark_needed(const struct qdqi_functions *functions);

/* A text field that the parser's schema does not know; "" when it is not there. */
const char *qdqi_unknown_text(const ProtobufCMessage *message, uint32_t field,
                              struct qdqi_arena *arena);

/* The default value of a function's attribute, or NULL; in the arena. */
const Onnx__AttributeProto *qdqi_function_default(const struct qdqi_function *function,
                                                  const char *name,
                                                  struct qdqi_arena *arena);

#endif
