/* SPDX-License-Identifier: Apache-2.0 */
/* Begins with the ranges of mse. engine/stages/whatif/refine.c then adjusts them by their
   effect on the outputs. */
#include "config.h"
#include "numbers/range/method.h"

static struct qdqi_range
least_error(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    return qdqi_method_mse.range(observer, use);
}

QDQI_METHOD(output_mse, .needs = QDQI_NEEDS_HISTOGRAM, .range = least_error,
            .start = &qdqi_method_mse);
