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
