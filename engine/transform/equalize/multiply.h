/* SPDX-License-Identifier: Apache-2.0 */
/* A Mul that multiplies the channels of an activation by factors, for those of its readers
   whose weights are divided by the factors. */
#ifndef QDQI_TRANSFORM_EQUALIZE_MULTIPLY_H
#define QDQI_TRANSFORM_EQUALIZE_MULTIPLY_H

#include "graph/edit/edit.h"
#include "transform/equalize/chain.h"

/*
 * Adds the Mul behind the activation of a chain that `is_multiplied`, and makes the readers of
 * the chain read what it makes. New names begin with that of the activation; where it is long
 * they begin with "smooth" and `i`. Returns the name of the node; NULL when out of memory.
 */
const char *qdqi_multiply(struct qdqi_edit *edit, const struct qdq_model *source,
                          const struct qdqi_chain *chain, const double *factors,
                          size_t i, struct qdqi_arena *arena);

/* Tells the copy of a model the names of n such nodes. Returns false when out of memory. */
bool qdqi_multiply_note(struct qdq_model *copy, const char *const *names, size_t n);

#endif
