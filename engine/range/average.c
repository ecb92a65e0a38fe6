/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "range/method.h"

static struct qdqi_range
averaged(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    (void)use;
    return (struct qdqi_range){observer->average.min, observer->average.max};
}

const struct qdqi_method qdqi_method_moving_average = {"moving_average",
                                                       QDQI_NEEDS_AVERAGE, averaged};
