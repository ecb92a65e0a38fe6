/* SPDX-License-Identifier: Apache-2.0 */
/* Layers inside an If whose input is quantized and made outside of it: with `pairs_in_branches` of the
   plan each branch has a pair of its own, with the same scale, so that it quantizes the same. */
#ifndef QDQI_PLAN_PLACEMENT_BRANCHES_H
#define QDQI_PLAN_PLACEMENT_BRANCHES_H

#include "plan/placement/plan.h"

/* Returns the graph of the branch in which a node reads activation `i` from a pair of the branch;
   0: it reads the one pair of the tensor. */
size_t qdqi_branch_of(const struct qdq_model *source, const struct qdq_plan *plan,
                      size_t node, size_t i);

/* Returns whether the If of a branch needs what a layer outside computes that reads activation `i` from the
   one pair of the tensor, so that this layer comes first. `marks` has room for all nodes. */
bool qdqi_branch_follows(const struct qdq_model *source, const struct qdq_plan *plan,
                         size_t branch, size_t i, bool *marks);

/* Returns whether all layers read activation `i` in branches, so that no other pair is needed. */
bool qdqi_all_read_in_branches(const struct qdq_model *source,
                               const struct qdq_plan *plan, size_t i);

/* Returns how many pairs a result has, those in branches included. */
size_t qdqi_count_pairs(const struct qdq_model *source, const struct qdq_plan *plan);

#endif
