/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/range/method.h"

#include <math.h>
#include <string.h>

static const struct qdqi_method *const methods[] = {
#define METHOD(name) &qdqi_method_##name,
#include "numbers/range/methods.inc"
#undef METHOD
};

const struct qdqi_method *
qdqi_method_find(const char *name)
{
    for (size_t i = 0; i < QDQI_N_METHODS; i++)
        if (strcmp(methods[i]->name, name) == 0)
            return methods[i];
    return NULL;
}

bool
qdq_range_method(size_t i, struct qdq_range_method *ret)
{
    if (i >= QDQI_N_METHODS)
        return false;
    *ret = (struct qdq_range_method){methods[i]->name, methods[i]->uses_percentile};
    return true;
}

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
