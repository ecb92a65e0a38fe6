/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "range/method.h"

static struct qdqi_range
range_seen(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    (void)use;
    return qdqi_range_seen(observer);
}

const struct qdqi_method qdqi_method_minmax = {"minmax", 0, range_seen};
