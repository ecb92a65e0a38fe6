/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that a Loop or Scan carries from one step to the next and never changes, as converters write the LSTM of
   Keras: a layer in its body multiplies by what no constant is. */
#ifndef QDQI_PLAN_PLACEMENT_CARRIED_WEIGHTS_H
#define QDQI_PLAN_PLACEMENT_CARRIED_WEIGHTS_H

#include "plan/placement/planner.h"

/*
 * Returns the input of a Loop or Scan by which it carries the tensor, an input of its body that begins as a
 * constant and is the same after each step; -1: there is none. A Loop's body has its condition in front of
 * what it carries.
 */
int64_t qdqi_carried_input(const struct qdqi_graph *graph, const struct qdqi_tensor *t);

/* Returns the tensor that a chain of Identities passes on. */
const struct qdqi_tensor *qdqi_before_identities(const struct qdqi_graph *graph,
                                                 const struct qdqi_tensor *t);

/* Warns of the layers that have such a weight, if there are any. NO_MEMORY. */
enum qdq_code qdqi_warn_carried(struct planner *p,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
