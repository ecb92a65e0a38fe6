/* SPDX-License-Identifier: Apache-2.0 */
/* Layers whose outputs are the largest or the smallest of several numbers. */
#ifndef QDQI_LAYERS_EXTREMES_H
#define QDQI_LAYERS_EXTREMES_H

#include "model/model.h"

/*
 * Marks a ReduceMax, a ReduceMin and a GlobalMaxPool, and the nodes behind them that a
 * runtime may compute in the same kernel: those that change the shape alone, activation functions, and
 * arithmetic with a constant or with another marked tensor; a Concat, where it joins one of
 * them. Returns an array by node, in the arena; NULL when out of memory.
 */
bool *qdqi_mark_extremes(const struct qdqi_graph *graph, struct qdqi_arena *arena);

#endif
