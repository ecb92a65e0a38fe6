/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "weights/approximate.h"

#include "number/simd.h"

#include <math.h>
#include <string.h>

/* Products and sums are fused here, which only makes the errors smaller: the bound holds
   with it and without it. */
#ifdef __clang__
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

enum { LANES = QDQI_APPROXIMATE_LANES };

/* Elements beyond these would make squares that are no normal numbers of float32. */
static const float SMALLEST = 1e-12F, LARGEST = 1e12F;

bool
qdqi_approximate_init(struct qdqi_approximate *a, const float *x, size_t n)
{
    a->n = (n + LANES - 1) / LANES * LANES;
    memcpy(a->x, x, n * sizeof *x);
    memset(a->x + n, 0, (a->n - n) * sizeof *x);
    float largest = 0;
    for (size_t i = 0; i < a->n; i++)
        largest = fabsf(a->x[i]) > largest ? fabsf(a->x[i]) : largest;
    a->largest = largest;
    return largest >= SMALLEST && largest <= LARGEST;
}

/* Multiplies by 1 / scale instead of dividing, and adds in float32, in lanes. The loop over
   the lanes becomes one vector. */
QDQI_LOOP float
error_loop(const float *restrict x, size_t n, float scale, float low, float high)
{
    const float inverse = 1 / scale, round = 0x1.8p23F;
    float sums[LANES] = {0};
    for (size_t i = 0; i < n; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            float q = x[i + k] * inverse;
            q = q > low ? q : low;
            q = q < high ? q : high;
            q = q + round - round;
            float d = x[i + k] - q * scale;
            sums[k] += d * d;
        }
    for (size_t k = 0; k < LANES / 2; k++)
        sums[k] += sums[k + LANES / 2];
    for (size_t k = 0; k < LANES / 4; k++)
        sums[k] += sums[k + LANES / 4];
    return sums[0] + sums[1] + (sums[2] + sums[3]);
}

QDQI_LOOP void
errors_loop(const struct qdqi_approximate *a,
            const struct qdqi_approximate_scale *scales, size_t n, float *ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = error_loop(a->x, a->n, scales[i].scale, scales[i].low, scales[i].high);
}

QDQI_VARIANTS(void, errors,
              (const struct qdqi_approximate *a,
               const struct qdqi_approximate_scale *scales, size_t n, float *ret),
              (a, scales, n, ret))

/*
 * The bound. A quotient differs from the exact one by at most 2^-22 of itself, and so does
 * each difference, relative to the largest element, also where the quotient lies between
 * two integers and another one is chosen: both are then as near. A square thus differs by
 * 2 |d| 2^-22 largest and the sum of n squares E by 2^-21 largest sqrt(n E), because the
 * sum of |d| is at most sqrt(n E). The sum itself rounds n / LANES + LANES times. Both are
 * taken four times and more.
 */
void
qdqi_approximate_errors(const struct qdqi_approximate *a,
                        const struct qdqi_approximate_scale *scales, size_t n,
                        double *ret_low, double *ret_high)
{
    enum { GROUP = 64 };
    float group[GROUP];
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < GROUP ? n - i : GROUP;
        errors(a, scales + i, m, group);
        for (size_t k = 0; k < m; k++) {
            double e = (double)group[k], unit = (double)a->largest * 0x1p-19;
            double off = unit * sqrt((double)a->n * e) + e * 0x1p-16 +
                         unit * unit * (double)a->n;
            ret_low[i + k] = e - off;
            ret_high[i + k] = e + off;
        }
    }
}
