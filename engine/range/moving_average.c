/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moving average of each sample's extremes, weight 0.01, in the order of the
 * samples; onnxruntime's. Depends on that order, but not on how many samples a run
 * takes, as long as the tensor's axis 0 counts samples (struct qdqi_reached says what
 * else happens).
 */
#include "config.h"
#include "range/method.h"

static struct qdqi_range
averaged(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    (void)use;
    return (struct qdqi_range){observer->average.min, observer->average.max};
}

QDQI_METHOD(moving_average, .needs = QDQI_NEEDS_AVERAGE, .range = averaged);
