/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the threshold t with the least squared error of quantization with the scale
 * that follows from t (t / 127 for symmetric int8). The error includes rounding and
 * clipping. The values within a bin are assumed to be spread evenly, and the squared
 * error is integrated over the bin in closed form; the value at the centre is not
 * enough, because a step of the scale may be as narrow as a bin. The candidates are the
 * upper edges of all bins from the 16th on and the largest |x|. The search tries every
 * 16th edge first and then all edges near the best one. The smallest of several
 * candidates with the least error wins.
 *
 * F(x) is the integral of the squared error from 0 to x, in units of the scale. Between
 * two neighbouring numbers of the format with distance d it grows by d^3 / 12. From a
 * number of the format to a value at distance r that is rounded to it, it grows by r^3
 * / 3. So after k steps of d
 *
 *   F(x) = k d^3 / 12 + (x - k d)^3 / 3,  k = round(x / d)
 *
 * With k limited to the last step this includes clipping. A float format consists of
 * binades, each with its own step. A bin adds its count times the difference of F
 * between its ends.
 */
#include "config.h"
#include "numbers/range/method.h"

#include <math.h>

enum { STEP = 16, MAX_BINADES = 48 };

/* The numbers of an integer format for a threshold. */
struct grid {
    double scale, per_scale; /* in bins, and its reciprocal */
    int last;                /* largest integer */
};

struct search {
    const struct qdqi_observer *observer;
    const struct qdqi_range_use *use;
    const struct qdqi_format_row *row;
    const struct qdqi_histogram *histogram;
    double width; /* width of a bin */
    size_t n;     /* number of bins */
    /* for float formats: F at the beginning of each binade */
    double before[MAX_BINADES];
    double best; /* best threshold so far, in bins */
    double least;
};

/* --- one threshold -------------------------------------------------------- */

static double
integer_error(double x, const struct grid *g)
{
    int k = (int)(x * g->per_scale + 0.5);
    k = k < g->last ? k : g->last;
    double rest = x - k * g->scale;
    return k * (g->scale * g->scale * g->scale) / 12 + rest * rest * rest / 3;
}

/* Returns the beginning of binade i of a float format and sets *ret_step to its
   step. The first binade includes the subnormal numbers, which have the same step. */
static double
binade(const struct qdqi_format_row *row, int i, double *ret_step)
{
    int exponent = row->min_exponent + i;
    *ret_step = ldexp(1, exponent - row->fraction_bits);
    return i > 0 ? ldexp(1, exponent) : 0;
}

static double
float_error(const struct search *s, double x, const struct grid *g)
{
    double step, v = x * g->per_scale, top = fmin(v, (double)s->row->highest);
    int i = top > 0 ? ilogb(top) - s->row->min_exponent : 0;
    i = i > 0 ? i : 0;
    double begin = binade(s->row, i, &step);
    double k = floor((top - begin) / step + 0.5), rest = v - begin - k * step;
    double error =
        s->before[i] + k * (step * step * step) / 12 + rest * rest * rest / 3;
    return error * (g->scale * g->scale * g->scale);
}

static struct grid
grid_of(const struct search *s, double t)
{
    if (s->row->fraction_bits > 0) {
        double highest = (double)s->row->highest;
        return (struct grid){t / highest, highest / t, 0};
    }
    double steps = qdqi_steps_within(s->observer, s->use, t * s->width);
    return (struct grid){t / steps, steps / t, (int)(steps + 0.5)};
}

static double
error_of(const struct search *s, double t)
{
    bool is_float = s->row->fraction_bits > 0;
    struct grid g = grid_of(s, t);
    double sum = 0, before = 0;
    for (size_t j = 0; j < s->n; j++) {
        double x = (double)(j + 1);
        double upto = is_float ? float_error(s, x, &g) : integer_error(x, &g);
        sum += (double)s->histogram->counts[j] * (upto - before);
        before = upto;
    }
    return sum;
}

/* --- the search ------------------------------------------------------------- */

static void
add_binades(struct search *s)
{
    double step, begin = 0, error = 0;
    for (int i = 0; i < MAX_BINADES && begin < (double)s->row->highest; i++) {
        s->before[i] = error;
        begin = binade(s->row, i, &step);
        double end = ldexp(1, s->row->min_exponent + i + 1);
        error += (end - begin) / step * (step * step * step) / 12;
    }
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

static struct search
begin_search(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    const struct qdqi_histogram *h = observer->all.histogram;
    double width = qdqi_histogram_width(h);
    struct search s = {.observer = observer,
                       .use = use,
                       .row = qdqi_format_row((int)use->format),
                       .histogram = h,
                       .width = width,
                       .n = qdqi_histogram_used(h),
                       .best =
                           (double)qdqi_extremes_amax(&observer->all.extremes) / width};
    if (s.row->fraction_bits > 0)
        add_binades(&s);
    return s;
}

double
qdqi_mse_error(const struct qdqi_observer *observer, const struct qdqi_range_use *use,
               double t)
{
    struct search s = begin_search(observer, use);
    return error_of(&s, t);
}

static struct qdqi_range
least_error(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    struct search s = begin_search(observer, use);
    double amax = s.best;
    if (s.n <= STEP)
        return qdqi_range_seen(observer);
    s.least = error_of(&s, amax);
    for (size_t t = STEP; (double)t < amax; t += STEP)
        try_threshold(&s, (double)t);
    double middle = s.best;
    for (double t = (double)(int)middle - STEP + 1; t < middle + STEP; t++)
        if (t >= STEP && t < amax)
            try_threshold(&s, t);
    return s.best < amax ? qdqi_range_within(observer, s.best * s.width)
                         : qdqi_range_seen(observer);
}

QDQI_METHOD(mse, .needs = QDQI_NEEDS_HISTOGRAM, .range = least_error);
