/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moving average of the extremes of each sample, with weight 0.01, in the order of
 * the samples, as in onnxruntime. It depends on that order, but not on the number of
 * samples in a run if axis 0 of the tensor counts samples (struct qdqi_reached
 * describes the other case).
 */
#include "config.h"
#include "numbers/range/method.h"

static struct qdqi_range
averaged(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    (void)use;
    return (struct qdqi_range){observer->average.min, observer->average.max};
}

QDQI_METHOD(moving_average, .needs = QDQI_NEEDS_AVERAGE, .range = averaged);
