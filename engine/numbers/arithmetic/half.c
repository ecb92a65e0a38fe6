/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/half.h"

#include "numbers/arithmetic/both.h"
#include "numbers/arithmetic/simd.h"

#include <math.h>
#include <string.h>

QDQI_LOOP void
halves_loop(float *to, const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, from + i * sizeof half, sizeof half);
        to[i] = qdqi_half_widened(half);
    }
}

QDQI_VARIANTS(void, halves, (float *to, const unsigned char *from, size_t n),
              (to, from, n))

void
qdqi_floats_of_halves(float *to, const void *from, size_t n)
{
    halves(to, from, n);
}

void
qdqi_load_floats(float *to, enum qdqi_dtype dtype, const void *from, size_t n)
{
    if (dtype == QDQI_FLOAT16)
        qdqi_floats_of_halves(to, from, n);
    else if (dtype == QDQI_FLOAT64)
        for (size_t i = 0; i < n; i++)
            to[i] = (float)((const double *)from)[i];
    else if (n > 0)
        memcpy(to, from, n * sizeof *to);
}

float
qdqi_normal_half(double x)
{
    const double least = 0x1p-14, largest = 65504;
    if (x <= least)
        return (float)least;
    if (x >= largest)
        return (float)largest;
    double unit = ldexp(1, ilogb(x) - 10); /* value of the last bit */
    return (float)(nearbyint(x / unit) * unit);
}
