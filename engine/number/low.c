/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "number/low.h"

#include "number/both.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* --- numbers -------------------------------------------------------------- */

/* Returns the upper half of a float32, rounded half to even. A carry out of the
   largest exponent gives infinity. */
static uint16_t
bfloat_narrowed(float x)
{
    uint32_t bits = qdqi_float_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        /* a quiet NaN; without the bit it could become infinity */
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t
narrowed(enum qdqi_dtype low, float x)
{
    return low == QDQI_FLOAT16 ? qdqi_half_narrowed(x) : bfloat_narrowed(x);
}

float
qdqi_low_widened(enum qdqi_dtype low, uint16_t bits)
{
    return low == QDQI_FLOAT16 ? qdqi_half_widened(bits)
                               : qdqi_float_of_bits((uint32_t)bits << 16);
}

float
qdqi_low_largest(enum qdqi_dtype low)
{
    return low == QDQI_FLOAT16 ? 65504 : qdqi_float_of_bits(0x7f7f0000);
}

void
qdqi_low_of_floats(uint16_t *to, enum qdqi_dtype low, const void *from, size_t n)
{
    const unsigned char *bytes = from;
    for (size_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, bytes + i * sizeof x, sizeof x);
        to[i] = narrowed(low, x);
    }
}

bool
qdqi_low_has(enum qdqi_dtype low, float x)
{
    return isnan(x) || qdqi_low_widened(low, narrowed(low, x)) == x;
}

float
qdqi_low_scale(enum qdqi_dtype low, float scale, double steps)
{
    const float least = low == QDQI_FLOAT16 ? 0x1p-14F : FLT_MIN;
    const float largest = qdqi_low_largest(low);
    if (scale <= least || scale >= largest)
        return scale <= least ? least : largest;
    uint16_t bits = narrowed(low, scale);
    float nearest = qdqi_low_widened(low, bits);
    if (steps * ((double)scale / (double)nearest - 1) > 0.5 && nearest < largest)
        nearest = qdqi_low_widened(low, (uint16_t)(bits + 1));
    return nearest;
}
