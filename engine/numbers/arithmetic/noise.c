/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/noise.h"

#include "numbers/arithmetic/both.h"
#include "numbers/arithmetic/simd.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 }; /* element i goes into lane i % LANES */

struct lanes {
    double signal[LANES], noise[LANES];
};

QDQI_LOOP void
noise_loop(struct lanes *sums, const unsigned char *f, const unsigned char *q, size_t n)
{
    struct lanes own = {{0}, {0}};
    for (size_t i = 0; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            double a = (double)qdqi_float_at(f, i + k);
            double e = a - (double)qdqi_float_at(q, i + k);
            own.signal[k] += a * a;
            own.noise[k] += e * e;
        }
    *sums = own;
}

QDQI_VARIANTS(void, noise,
              (struct lanes * sums, const unsigned char *f, const unsigned char *q,
               size_t n),
              (sums, f, q, n))

bool
qdqi_same_nonfinite(float f, float q)
{
    return !isfinite(f) && (f == q || (isnan(f) && isnan(q)));
}

/* Computes the sums without the elements that are the same infinity, or NaN, in both. */
static void
add_finite(struct lanes *sums, const unsigned char *f, const unsigned char *q, size_t n)
{
    *sums = (struct lanes){{0}, {0}};
    for (size_t i = 0; i < n; i++) {
        float a = qdqi_float_at(f, i), b = qdqi_float_at(q, i);
        double e = (double)a - (double)b;
        if (qdqi_same_nonfinite(a, b))
            continue;
        sums->signal[i % LANES] += (double)a * (double)a;
        sums->noise[i % LANES] += e * e;
    }
}

static bool
are_finite(const struct lanes *sums)
{
    double all = 0;
    for (size_t k = 0; k < LANES; k++)
        all += sums->signal[k] + sums->noise[k];
    return isfinite(all);
}

void
qdqi_noise_add(struct qdqi_noise *sums, const void *f, const void *q, size_t n)
{
    struct lanes lanes;
    noise(&lanes, f, q, n);
    for (size_t i = n - n % LANES; i < n; i++) {
        double a = (double)qdqi_float_at(f, i), e = a - (double)qdqi_float_at(q, i);
        lanes.signal[i % LANES] += a * a;
        lanes.noise[i % LANES] += e * e;
    }
    if (!are_finite(&lanes))
        add_finite(&lanes, f, q, n);
    for (size_t k = 0; k < LANES; k++) {
        sums->signal += lanes.signal[k];
        sums->noise += lanes.noise[k];
    }
}

double
qdqi_noise_db(const struct qdqi_noise *sums)
{
    return sums->noise == 0 ? INFINITY : 10 * log10(sums->signal / sums->noise);
}
