/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/minmax.h"

#include "numbers/arithmetic/simd.h"

#include <math.h>

static inline uint32_t
bits_at(const unsigned char *data, size_t i)
{
    uint32_t bits;
    memcpy(&bits, data + i * sizeof bits, sizeof bits);
    return bits;
}

static const uint32_t INFINITY_BITS = 0x7f800000;

QDQI_LOOP void
extremes_loop(struct qdqi_extremes *e, const unsigned char *data, size_t n)
{
    int32_t min = e->min, max = e->max;
    for (size_t i = 0; i < n; i++) {
        int32_t key = qdqi_key_of(bits_at(data, i));
        min = key < min ? key : min;
        max = key > max ? key : max;
    }
    e->min = min;
    e->max = max;
}

QDQI_VARIANTS(void, extremes,
              (struct qdqi_extremes * e, const unsigned char *data, size_t n),
              (e, data, n))

void
qdqi_extremes_update(struct qdqi_extremes *e, const void *data, size_t n)
{
    extremes(e, data, n);
}

void
qdqi_extremes_merge(struct qdqi_extremes *e, const struct qdqi_extremes *other)
{
    e->min = other->min < e->min ? other->min : e->min;
    e->max = other->max > e->max ? other->max : e->max;
}

float
qdqi_extremes_amax(const struct qdqi_extremes *e)
{
    return fmaxf(fabsf(qdqi_float_of_key(e->min)), fabsf(qdqi_float_of_key(e->max)));
}

bool
qdqi_extremes_empty(const struct qdqi_extremes *e)
{
    return e->min > e->max;
}

bool
qdqi_extremes_finite(const struct qdqi_extremes *e)
{
    return e->min > qdqi_key_of(INFINITY_BITS | 0x80000000u) &&
           e->max < qdqi_key_of(INFINITY_BITS);
}

/* This compares magnitudes as integers: without the sign, the bits are in the order
   of the magnitudes. */
QDQI_LOOP int32_t
magnitude_loop(const unsigned char *data, size_t n)
{
    int32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t magnitude = (int32_t)(bits_at(data, i) & 0x7fffffff);
        max = magnitude > max ? magnitude : max;
    }
    return max;
}

QDQI_VARIANTS(int32_t, magnitude, (const unsigned char *data, size_t n), (data, n))

float
qdqi_amax(const void *data, size_t n)
{
    return qdqi_float_of_key(magnitude(data, n));
}

QDQI_LOOP void
columns_loop(const unsigned char *row, size_t rows, size_t n, float *amax)
{
    for (size_t r = 0; r < rows; r++, row += n * sizeof(float))
        for (size_t c = 0; c < n; c++) {
            int32_t magnitude = (int32_t)(bits_at(row, c) & 0x7fffffff);
            int32_t max = (int32_t)bits_at((unsigned char *)amax, c);
            max = magnitude > max ? magnitude : max;
            memcpy(&amax[c], &max, sizeof max);
        }
}

QDQI_VARIANTS(void, columns,
              (const unsigned char *row, size_t rows, size_t n, float *amax),
              (row, rows, n, amax))

void
qdqi_amax_columns(const void *data, size_t rows, size_t n, float *amax)
{
    columns(data, rows, n, amax);
}
