/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/sequential.h"

#include <math.h>

const double qdqi_settled_db = 0.2, qdqi_settled_share = 0.005;

/* Standard errors of a half width. There are several looks at the same samples, so it is more than
   the two of one look. */
static const double errors = 2.5;

/* The part of draws that may mislead about a side, at one look. */
static const double misled = 0.06;

/* Returns the factor of a standard error for what was not drawn. */
static double
left_over(double n, double of)
{
    return n < of ? sqrt(1 - n / of) : 0;
}

double
qdqi_pooled_half_width(const struct qdqi_sample *samples, size_t n, int64_t of)
{
    double signal = 0, noise = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        signal += samples[i].signal;
        noise += samples[i].noise;
    }
    if (noise == 0)
        return 0;
    if (n < 2 || !isfinite(signal) || !isfinite(noise) || signal == 0)
        return INFINITY;
    const double count = (double)n;
    for (size_t i = 0; i < n; i++) {
        const double d =
            count * (samples[i].signal / signal - samples[i].noise / noise);
        squares += d * d; /* their sum is 0 */
    }
    return errors * 10 / M_LN10 * sqrt(squares / (count - 1) / count) *
           left_over(count, (double)of);
}

double
qdqi_share_half_width(double sum, double squares, int64_t n, int64_t of)
{
    const double count = (double)n;
    if (n < 2)
        return INFINITY;
    const double variance = fmax(0, (squares - sum * sum / count) / (count - 1));
    return errors * sqrt(variance / count) * left_over(count, (double)of);
}

/* Returns the logarithm of the number of ways to choose k of n. */
static double
log_choose(int64_t n, int64_t k)
{
    double sum = 0;
    for (int64_t i = 1; i <= k; i++)
        sum += log((double)(n - k + i) / (double)i);
    return sum;
}

/* Returns the probability that n of `of` samples, `all` of which are bad, have from `low` to `high`
   bad ones. */
static double
probability(int64_t n, int64_t of, int64_t all, int64_t low, int64_t high)
{
    double sum = 0;
    for (int64_t k = low; k <= high; k++)
        if (k <= all && k <= n && n - k <= of - all)
            sum += exp(log_choose(all, k) + log_choose(of - all, n - k) -
                       log_choose(of, n));
    return sum;
}

bool
qdqi_side_is_settled(int64_t n, int64_t bad, int64_t of, int64_t most)
{
    if (n >= of || bad > most || most >= of)
        return true;
    return probability(n, of, most + 1, 0, bad) <= misled ||
           probability(n, of, most, bad, most) <= misled;
}

int64_t
qdqi_sequential_first(int64_t of, int64_t most)
{
    int64_t n = QDQI_SEQUENTIAL_LEAST;
    while (n < of && !qdqi_side_is_settled(n, 0, of, most))
        n++;
    return n < of ? n : of;
}

/* Returns output i of splitmix64 (Steele, Lea and Flood, 2014), counted from 0. */
static uint64_t
number(uint64_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

int64_t
qdqi_sequential_draw(int64_t n, int64_t first, int64_t step, int64_t *ret)
{
    /* ret[i] is the place of sample i in the order; places become turns afterwards. Each new
       sample takes the place of one before it, or its own, and that one takes the new place. */
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = (int64_t)(number((uint64_t)i) % (uint64_t)(i + 1));
        ret[i] = i;
        if (k < i) {
            ret[i] = ret[k];
            ret[k] = i;
        }
    }
    int64_t turns = 1;
    for (int64_t i = 0; i < n; i++) {
        ret[i] = ret[i] < first ? 0 : 1 + (ret[i] - first) / step;
        turns = ret[i] + 1 > turns ? ret[i] + 1 : turns;
    }
    return turns;
}
