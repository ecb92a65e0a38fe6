/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With widths of a bin as the unit, scale s and k = min(127, round(x / s)), the integral
 * of the squared error from 0 to x is F(x) = k s^3 / 12 + (x - k s)^3 / 3, clipping
 * included; a bin adds its count times the difference of F over it.
 */
#include "config.h"
#include "range/method.h"

#include "number/quantize.h"

enum { STEP = 16 };

struct search {
    const struct qdqi_histogram *histogram;
    size_t n;    /* bins */
    double best; /* threshold, in bins */
    double least;
};

static double
error_below(double x, double scale, double per_scale)
{
    int k = (int)(x * per_scale + 0.5);
    k = k < QDQI_INT8_MAX ? k : QDQI_INT8_MAX;
    double rest = x - k * scale;
    return k * (scale * scale * scale) / 12 + rest * rest * rest / 3;
}

static double
error_of(const struct search *s, double t)
{
    double scale = t / QDQI_INT8_MAX, per_scale = QDQI_INT8_MAX / t;
    double sum = 0, before = 0;
    for (size_t j = 0; j < s->n; j++) {
        double upto = error_below((double)(j + 1), scale, per_scale);
        sum += (double)s->histogram->counts[j] * (upto - before);
        before = upto;
    }
    return sum;
}

static void
try_threshold(struct search *s, double t)
{
    double error = error_of(s, t);
    if (error < s->least || (error == s->least && t < s->best)) {
        s->least = error;
        s->best = t;
    }
}

static struct qdqi_range
least_error(const struct qdqi_observer *observer,
            const struct qdq_calibration_spec *spec)
{
    (void)spec;
    const struct qdqi_histogram *h = observer->all.histogram;
    double width = qdqi_histogram_width(h);
    double amax = (double)qdqi_extremes_amax(&observer->all.extremes) / width;
    struct search s = {.histogram = h, .n = qdqi_histogram_used(h), .best = amax};
    if (s.n <= STEP)
        return qdqi_range_seen(observer);
    s.least = error_of(&s, amax);
    for (size_t t = STEP; (double)t < amax; t += STEP)
        try_threshold(&s, (double)t);
    double middle = s.best;
    for (double t = (double)(int)middle - STEP + 1; t < middle + STEP; t++)
        if (t >= STEP && t < amax)
            try_threshold(&s, t);
    return s.best < amax ? qdqi_range_within(observer, s.best * width)
                         : qdqi_range_seen(observer);
}

const struct qdqi_method qdqi_method_mse = {"mse", QDQI_NEEDS_HISTOGRAM, least_error};

/* Where output_mse begins; engine/whatif/refine.c goes on from there. */
const struct qdqi_method qdqi_method_output_mse = {"output_mse", QDQI_NEEDS_HISTOGRAM,
                                                   least_error};
