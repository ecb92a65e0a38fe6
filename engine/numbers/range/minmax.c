/* SPDX-License-Identifier: Apache-2.0 */
/* The whole observed range, exactly. */
#include "config.h"
#include "numbers/range/method.h"

static struct qdqi_range
range_seen(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    (void)use;
    return qdqi_range_seen(observer);
}

QDQI_METHOD(minmax, .range = range_seen);
