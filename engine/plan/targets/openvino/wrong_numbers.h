/* SPDX-License-Identifier: Apache-2.0 */
/* Layers behind which OpenVINO computes wrong numbers of a pair (faults.h). */
#ifndef QDQI_PLAN_TARGETS_OPENVINO_WRONG_NUMBERS_H
#define QDQI_PLAN_TARGETS_OPENVINO_WRONG_NUMBERS_H

#include "files/model/model.h"

/*
 * Marks a ReduceMax, a ReduceMin and a GlobalMaxPool, and the nodes behind them that may be in
 * the same kernel: those that change the shape alone, activation functions, and arithmetic
 * with a constant or with another marked tensor; a Concat, where it joins one of them. Returns
 * an array by node, in the arena; NULL when out of memory.
 */
bool *qdqi_mark_extremes(const struct qdqi_graph *graph, struct qdqi_arena *arena);

/*
 * Marks the nodes on whose way from the last layer that computes a sum stand a pool of windows
 * and, behind it, a function that falls: a factor below zero, a constant minus the data, a
 * negation, an absolute value. Returns an array by node, in the arena; NULL when out of memory.
 */
bool *qdqi_mark_turned(const struct qdq_model *model, struct qdqi_arena *arena);

#endif
