/* SPDX-License-Identifier: Apache-2.0 */
/* The range that an observer has seen, whole and within a threshold. */
#include "config.h"
#include "numbers/range/method.h"

#include <math.h>

struct qdqi_range
qdqi_range_seen(const struct qdqi_observer *observer)
{
    const struct qdqi_extremes *e = &observer->all.extremes;
    return (struct qdqi_range){(double)qdqi_float_of_key(e->min),
                               (double)qdqi_float_of_key(e->max)};
}

struct qdqi_range
qdqi_range_within(const struct qdqi_observer *observer, double t)
{
    struct qdqi_range seen = qdqi_range_seen(observer);
    return (struct qdqi_range){fmin(fmax(seen.min, -t), t),
                               fmax(fmin(seen.max, t), -t)};
}

double
qdqi_steps_within(const struct qdqi_observer *observer,
                  const struct qdqi_range_use *use, double t)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)use->format);
    double low = (double)row->lowest, high = (double)row->highest;
    struct qdqi_range r = qdqi_range_within(observer, t);
    if (use->symmetric)
        return low < 0 ? high : (high - low) / 2;
    double width = fmax(r.max, 0) - fmin(r.min, 0);
    return width > t ? (high - low) * (t / width) : high - low;
}
