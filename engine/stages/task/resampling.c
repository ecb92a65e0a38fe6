/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/task/resampling.h"

#include "ground/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { DRAWS = 2000 };

#define SEED 0x9e3779b97f4a7c15U

/* xorshift64* (S. Vigna, 2016). The state is never 0. */
static uint64_t
next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dU;
}

/* Returns a number below n, at most 2^32 - 1. */
static size_t
next_below(uint64_t *state, size_t n)
{
    return (size_t)((next(state) >> 32) * (uint64_t)n >> 32);
}

double
qdqi_quotient(const struct qdqi_fraction *samples, size_t n)
{
    double numerator = 0, denominator = 0;
    for (size_t i = 0; i < n; i++) {
        numerator += samples[i].numerator;
        denominator += samples[i].denominator;
    }
    return denominator == 0 ? NAN : numerator / denominator;
}

/* Returns the difference for n samples that are drawn with replacement. */
static double
draw(const struct qdqi_fraction *first, const struct qdqi_fraction *second, size_t n,
     uint64_t *state)
{
    struct qdqi_fraction a = {0}, b = {0};
    for (size_t i = 0; i < n; i++) {
        const size_t k = next_below(state, n);
        a.numerator += first[k].numerator;
        a.denominator += first[k].denominator;
        b.numerator += second[k].numerator;
        b.denominator += second[k].denominator;
    }
    return a.denominator == 0 || b.denominator == 0
               ? NAN
               : a.numerator / a.denominator - b.numerator / b.denominator;
}

struct qdqi_interval
qdqi_bootstrap(const struct qdqi_fraction *first, const struct qdqi_fraction *second,
               size_t n)
{
    static const double outside = 0.025; /* of either side */
    double drops[DRAWS];
    uint64_t state = SEED;
    size_t kept = 0;
    for (size_t i = 0; n >= 2 && n <= UINT32_MAX && i < DRAWS; i++) {
        const double drop = draw(first, second, n, &state);
        if (!isnan(drop))
            drops[kept++] = drop;
    }
    if (kept == 0)
        return (struct qdqi_interval){NAN, NAN};
    qsort(drops, kept, sizeof *drops, qdqi_compare_doubles);
    const size_t below = (size_t)(outside * (double)(kept - 1));
    return (struct qdqi_interval){drops[below], drops[kept - 1 - below]};
}

void
qdqi_draw_groups(unsigned char *ret, size_t n, size_t groups)
{
    uint64_t state = SEED;
    for (size_t i = 0; i < n; i++)
        ret[i] = (unsigned char)(i % groups);
    for (size_t i = n; i > 1; i--) {
        const size_t k = next_below(&state, i);
        const unsigned char last = ret[i - 1];
        ret[i - 1] = ret[k];
        ret[k] = last;
    }
}

struct qdqi_interval
qdqi_jackknife(double drop, const struct qdqi_fraction first[QDQI_TASK_GROUPS],
               const struct qdqi_fraction second[QDQI_TASK_GROUPS])
{
    static const double t = 2.093; /* of Student's, 0.975 and 19 degrees of freedom */
    const double n = QDQI_TASK_GROUPS;
    double drops[QDQI_TASK_GROUPS], mean = 0, squares = 0;
    for (size_t i = 0; i < QDQI_TASK_GROUPS; i++) {
        drops[i] = qdqi_quotient(&first[i], 1) - qdqi_quotient(&second[i], 1);
        mean += drops[i] / n;
    }
    for (size_t i = 0; i < QDQI_TASK_GROUPS; i++)
        squares += (drops[i] - mean) * (drops[i] - mean);
    const double half = t * sqrt((n - 1) / n * squares);
    return (struct qdqi_interval){drop - half, drop + half};
}
