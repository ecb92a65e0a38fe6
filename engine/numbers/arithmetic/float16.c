/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/float16.h"

#include "numbers/arithmetic/both.h"
#include "numbers/arithmetic/simd.h"

#include <float.h>
#include <math.h>

/* --- numbers -------------------------------------------------------------- */

/* Returns the upper half of a float32, rounded half to even. A carry out of the
   largest exponent gives infinity. */
QDQI_LOOP uint16_t
bfloat_narrowed(float x)
{
    uint32_t bits = qdqi_float_bits(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    /* a quiet NaN; without the bit it could become infinity */
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

QDQI_LOOP uint16_t
narrowed(enum qdqi_dtype type, float x)
{
    return type == QDQI_FLOAT16 ? qdqi_half_narrowed(x) : bfloat_narrowed(x);
}

float
qdqi_float16_widened(enum qdqi_dtype type, uint16_t bits)
{
    return type == QDQI_FLOAT16 ? qdqi_half_widened(bits)
                                : qdqi_float_of_bits((uint32_t)bits << 16);
}

float
qdqi_float16_largest(enum qdqi_dtype type)
{
    return type == QDQI_FLOAT16 ? 65504 : qdqi_float_of_bits(0x7f7f0000);
}

QDQI_LOOP void
narrow_loop(uint16_t *to, enum qdqi_dtype type, const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = narrowed(type, qdqi_float_at(from, i));
}

QDQI_LOOP void
to_halves_loop(uint16_t *to, const unsigned char *from, size_t n)
{
    narrow_loop(to, QDQI_FLOAT16, from, n);
}

QDQI_LOOP void
to_bfloats_loop(uint16_t *to, const unsigned char *from, size_t n)
{
    narrow_loop(to, QDQI_BFLOAT16, from, n);
}

QDQI_VARIANTS(void, to_halves, (uint16_t * to, const unsigned char *from, size_t n),
              (to, from, n))
QDQI_VARIANTS(void, to_bfloats, (uint16_t * to, const unsigned char *from, size_t n),
              (to, from, n))

void
qdqi_float16_of_floats(uint16_t *to, enum qdqi_dtype type, const void *from, size_t n)
{
    if (type == QDQI_FLOAT16)
        to_halves(to, from, n);
    else
        to_bfloats(to, from, n);
}

bool
qdqi_float16_has(enum qdqi_dtype type, float x)
{
    return isnan(x) || qdqi_float16_widened(type, narrowed(type, x)) == x;
}

float
qdqi_float16_scale(enum qdqi_dtype type, float scale, double steps)
{
    const float least = type == QDQI_FLOAT16 ? 0x1p-14F : FLT_MIN;
    const float largest = qdqi_float16_largest(type);
    if (scale <= least || scale >= largest)
        return scale <= least ? least : largest;
    uint16_t bits = narrowed(type, scale);
    float nearest = qdqi_float16_widened(type, bits);
    if (steps * ((double)scale / (double)nearest - 1) > 0.5 && nearest < largest)
        nearest = qdqi_float16_widened(type, (uint16_t)(bits + 1));
    return nearest;
}
