/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "range/method.h"

static struct qdqi_range
range_seen(const struct qdqi_observer *observer,
           const struct qdq_calibration_spec *spec)
{
    (void)spec;
    return qdqi_range_seen(observer);
}

const struct qdqi_method qdqi_method_minmax = {"minmax", 0, range_seen};
