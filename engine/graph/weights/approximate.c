/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/approximate.h"

#include "numbers/arithmetic/minmax.h"
#include "numbers/arithmetic/simd.h"

#include <math.h>

/* Products and sums are fused here, which only makes the errors smaller: the bound holds
   with it and without it. */
QDQI_FUSED

enum {
    SCALES = QDQI_APPROXIMATE_SCALES,
    STEP = QDQI_APPROXIMATE_PAD, /* elements that each sum takes between two stores */
    PIECE = 256,                 /* elements that are added in float32 */
    VECTOR = 8,                  /* scales are padded to a multiple of it */
};

/* Elements beyond these would make squares that are no normal numbers of float32. */
static const float SMALLEST = 1e-12F, LARGEST = 1e12F;

/* 1.5 * 2^23: a float of this size has no fraction bits. */
static const float ROUND = 12582912;

/* --- errors ---------------------------------------------------------------- */

/* The scales, one in each lane. */
struct lanes {
    float scale[SCALES], inverse[SCALES];
    float low[SCALES], high[SCALES]; /* the ends, plus ROUND */
    float sums[SCALES];
};

/* Returns a sum and the squared error of an element. */
QDQI_LOOP float
plus_error(const struct lanes *l, size_t k, float x, float sum)
{
    float q = x * l->inverse[k] + ROUND;
    q = q > l->low[k] ? q : l->low[k];
    q = q < l->high[k] ? q : l->high[k];
    float d = x - (q - ROUND) * l->scale[k];
    return sum + d * d;
}

/* Adds the errors of n elements to the sum of each of the first lanes, STEP elements at a
   time. The loop over the lanes becomes vectors. */
QDQI_LOOP void
errors_loop(const float *restrict x, size_t n, struct lanes *restrict l, size_t lanes)
{
    for (size_t i = 0; i < n; i += STEP)
        for (size_t k = 0; k < lanes; k++) {
            float sum = plus_error(l, k, x[i], 0);
            sum = plus_error(l, k, x[i + 1], sum);
            sum = plus_error(l, k, x[i + 2], sum);
            sum = plus_error(l, k, x[i + 3], sum);
            sum = plus_error(l, k, x[i + 4], sum);
            sum = plus_error(l, k, x[i + 5], sum);
            sum = plus_error(l, k, x[i + 6], sum);
            l->sums[k] += plus_error(l, k, x[i + 7], sum);
        }
}

QDQI_VARIANTS(void, errors, (const float *x, size_t n, struct lanes *l, size_t lanes),
              (x, n, l, lanes))

/* Returns the number of lanes that are filled, a multiple of VECTOR. */
static size_t
fill_lanes(struct lanes *l, const struct qdqi_approximate_scales *s)
{
    size_t n = (s->n + VECTOR - 1) / VECTOR * VECTOR;
    for (size_t k = 0; k < s->n; k++) {
        l->scale[k] = s->scales[k];
        l->low[k] = s->low[k] + ROUND;
        l->high[k] = s->high[k] + ROUND;
    }
    for (size_t k = s->n; k < n; k++) {
        l->scale[k] = l->scale[0];
        l->low[k] = l->low[0];
        l->high[k] = l->high[0];
    }
    for (size_t k = 0; k < n; k++)
        l->inverse[k] = 1 / l->scale[k];
    return n;
}

void
qdqi_approximate_errors(const struct qdqi_approximate *a,
                        const struct qdqi_approximate_scales *s, double *ret)
{
    struct lanes l;
    size_t lanes = fill_lanes(&l, s);
    for (size_t k = 0; k < s->n; k++)
        ret[k] = 0;
    for (size_t i = 0; i < a->n; i += PIECE) {
        for (size_t k = 0; k < lanes; k++)
            l.sums[k] = 0;
        errors(a->x + i, a->n - i < PIECE ? a->n - i : PIECE, &l, lanes);
        for (size_t k = 0; k < s->n; k++)
            ret[k] += (double)l.sums[k];
    }
}

/* --- their bound ----------------------------------------------------------- */

/*
 * The difference of an approximate error from that of the definition, with u = 2^-24, an
 * element x, its exact quotient y, and its integers q. The definition's quotient is off by
 * u |y|, and the one here by 2 u |y| (the inverse and, where it is not fused, the product).
 *
 * Where both are rounded to the same q, the numbers q scale are off by u |q scale| each, and
 * the difference from x by u times itself. Otherwise a number that lies halfway between two
 * integers is no further from y than the quotients are, so that the magnitudes of both
 * differences are that of half a step but for 2 u |x| each.
 *
 * |q scale| is at most |x| and the difference. So all differences together, as a vector, are
 * off by u (6 norm + 3 sqrt(E)) if E is the sum of their squares, and E by twice that times
 * sqrt(E), by the inequality of Cauchy and Schwarz, and by its square, which is smaller than
 * by_elements() squared. The sum itself rounds STEP times and once for each step. Both bounds
 * are taken a little larger.
 */
static double
by_elements(const struct qdqi_approximate *a)
{
    return a->norm * (13 * 0x1p-24);
}

static double
by_sums(const struct qdqi_approximate *a)
{
    size_t steps = (a->n < PIECE ? a->n : PIECE) / STEP;
    return (double)(steps + STEP + 16) * 0x1p-24;
}

double
qdqi_approximate_most(const struct qdqi_approximate *a, double error)
{
    double unit = by_elements(a);
    return error * (1 + by_sums(a)) + unit * sqrt(error) + unit * unit;
}

/* Solves e (1 - by_sums) - unit sqrt(e) - unit^2 = most, whose left side is a lower bound of
   the error with approximation e. */
double
qdqi_approximate_limit(const struct qdqi_approximate *a, double most)
{
    double unit = by_elements(a), part = 1 - by_sums(a);
    double root =
        (unit + sqrt(unit * unit + 4 * part * (most + unit * unit))) / part / 2;
    return root * root * (1 + 0x1p-40);
}

/* --- what is clipped ------------------------------------------------------- */

/* Adds the squared distances of elements from an interval, in float32. */
QDQI_LOOP float
beyond_loop(const float *restrict x, size_t n, float low, float high)
{
    float sums[STEP] = {0};
    for (size_t i = 0; i < n; i += STEP)
        for (size_t k = 0; k < STEP; k++) {
            float above = x[i + k] - high, below = low - x[i + k];
            float d = above > below ? above : below;
            d = d > 0 ? d : 0;
            sums[k] += d * d;
        }
    return sums[0] + sums[1] + (sums[2] + sums[3]) + (sums[4] + sums[5]) +
           (sums[6] + sums[7]);
}

QDQI_VARIANTS(float, beyond, (const float *x, size_t n, float low, float high),
              (x, n, low, high))

static double
sum_beyond(const struct qdqi_approximate *a, float low, float high)
{
    double sum = 0;
    for (size_t i = 0; i < a->n; i += PIECE)
        sum += (double)beyond(a->x + i, a->n - i < PIECE ? a->n - i : PIECE, low, high);
    return sum;
}

double
qdqi_approximate_beyond(const struct qdqi_approximate *a, double low, double high)
{
    const double wider = 1 + 1e-6; /* than the ends with all of their roundings */
    return sum_beyond(a, (float)(low * wider), (float)(high * wider)) * (1 - 0x1p-16);
}

bool
qdqi_approximate_init(struct qdqi_approximate *a, const float *x, size_t n)
{
    *a = (struct qdqi_approximate){.x = x, .n = (n + STEP - 1) / STEP * STEP};
    a->largest = qdqi_amax(x, n);
    if (!(a->largest >= SMALLEST && a->largest <= LARGEST))
        return false;
    a->norm = sqrt(sum_beyond(a, 0, 0)) * (1 + 0x1p-16);
    return true;
}
