/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that a Loop or Scan carries from one step to the next and never changes, as converters write the LSTM of
   Keras: a layer in its body multiplies by what no constant is. */
#ifndef QDQI_PLAN_PLACEMENT_CARRIED_WEIGHTS_H
#define QDQI_PLAN_PLACEMENT_CARRIED_WEIGHTS_H

#include "plan/placement/planner.h"

/* Warns of the layers that have such a weight, if there are any. NO_MEMORY. */
enum qdq_code qdqi_warn_carried(struct planner *p,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
