/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact extremes of float32 data, in one pass of integer comparisons.
 *
 * When the lower 31 bits of the negative numbers are flipped, the bits of float32
 * numbers compare as signed integers in the order of the numbers. NaN and the
 * infinities are then at the ends, so the same pass detects them. Integer minima
 * vectorize, unlike those of floating point, which must respect NaN and signed zeros.
 */
#ifndef QDQI_NUMBERS_ARITHMETIC_MINMAX_H
#define QDQI_NUMBERS_ARITHMETIC_MINMAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The smallest and largest key of some data. Without data, min > max. */
struct qdqi_extremes {
    int32_t min, max; /* keys in the order described above */
};

#define QDQI_NO_EXTREMES ((struct qdqi_extremes){INT32_MAX, INT32_MIN})

static inline int32_t
qdqi_key_of(uint32_t bits)
{
    int32_t key = (int32_t)bits;
    return key ^ (int32_t)((uint32_t)(key >> 31) >> 1);
}

static inline float
qdqi_float_of_key(int32_t key)
{
    key ^= (int32_t)((uint32_t)(key >> 31) >> 1);
    float value;
    memcpy(&value, &key, sizeof value);
    return value;
}

/* Adds n little-endian float32 values at any alignment. */
void qdqi_extremes_update(struct qdqi_extremes *e, const void *data, size_t n);

/* Adds the data that another one has seen. */
void qdqi_extremes_merge(struct qdqi_extremes *e, const struct qdqi_extremes *other);

bool qdqi_extremes_empty(const struct qdqi_extremes *e);
/* Returns false when a NaN or an infinity was among the data. */
bool qdqi_extremes_finite(const struct qdqi_extremes *e);
/* Returns the largest |x|. The extremes must be finite and not empty. */
float qdqi_extremes_amax(const struct qdqi_extremes *e);

/* Returns the largest |x| of n float32 values. It is not finite when one of them is
   not. */
float qdqi_amax(const void *data, size_t n);
/* Sets amax[c] to the largest of amax[c] and |data[r][c]| for all r, of `rows` rows
   and n columns. */
void qdqi_amax_columns(const void *data, size_t rows, size_t n, float *amax);

#endif
