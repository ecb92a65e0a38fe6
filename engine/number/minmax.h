/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extremes of float32 data, exact, in one pass over integers.
 *
 * The bits of a float32, with the lower 31 flipped where the sign is set, compare as
 * signed integers in the order of the numbers. NaN and the infinities then lie at the
 * ends, so the same pass finds them; and integer minima vectorize, which those of
 * floating point (with NaN and signed zero to heed) do not.
 */
#ifndef QDQI_NUMBER_MINMAX_H
#define QDQI_NUMBER_MINMAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An empty range has min > max. */
struct qdqi_extremes {
    int32_t min, max; /* keys of the order above */
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

/* Takes in n little-endian float32 at any alignment. */
void qdqi_extremes_update(struct qdqi_extremes *e, const void *data, size_t n);

/* Takes in what another one has seen. */
void qdqi_extremes_merge(struct qdqi_extremes *e, const struct qdqi_extremes *other);

bool qdqi_extremes_empty(const struct qdqi_extremes *e);
/* False when a NaN or an infinity was among the data. */
bool qdqi_extremes_finite(const struct qdqi_extremes *e);
/* The largest |x|, of finite ones that are not empty. */
float qdqi_extremes_amax(const struct qdqi_extremes *e);

/* The largest |x| of n float32; not finite when one of them is not. */
float qdqi_amax(const void *data, size_t n);
/* amax[c] = the largest |data[r][c]| of `rows` rows of n columns; takes in, does not
   reset. */
void qdqi_amax_columns(const void *data, size_t rows, size_t n, float *amax);

#endif
