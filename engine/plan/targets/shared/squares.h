/* SPDX-License-Identifier: Apache-2.0 */
/* Layers whose outputs are squared, as the parts of a spectrum are. */
#ifndef QDQI_PLAN_TARGETS_SHARED_SQUARES_H
#define QDQI_PLAN_TARGETS_SHARED_SQUARES_H

#include "files/model/model.h"

/*
 * Marks the nodes whose outputs are squared. Squares span twice as many decibels as what
 * is squared, and a logarithm often follows: the noise of 8 bits hides all but the loudest
 * part. Returns an array by node, in the arena; NULL when out of memory.
 */
bool *qdqi_mark_squared(const struct qdqi_graph *graph, struct qdqi_arena *arena);

#endif
