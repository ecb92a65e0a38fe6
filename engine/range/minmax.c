/* SPDX-License-Identifier: Apache-2.0 */
/* The range that was seen, all of it. */
#include "config.h"
#include "range/method.h"

static struct qdqi_range
range_seen(const struct qdqi_observer *observer)
{
    return (struct qdqi_range){(double)qdqi_float_of_key(observer->extremes.min),
                               (double)qdqi_float_of_key(observer->extremes.max)};
}

const struct qdqi_method qdqi_method_minmax = {"minmax", range_seen};
