/* SPDX-License-Identifier: Apache-2.0 */
/* float16 (IEEE 754 binary16). Each of its values is exactly a float32. */
#ifndef QDQI_NUMBERS_ARITHMETIC_HALF_H
#define QDQI_NUMBERS_ARITHMETIC_HALF_H

#include "ground/base/dtype.h"

#include <stddef.h>
#include <stdint.h>

/* Converts n little-endian float16 values at any alignment to float32. NaN and the
   infinities are kept. */
void qdqi_floats_of_halves(float *to, const void *from, size_t n);

/* Copies n elements of float32, float16 or float64 data as float32. The last are rounded,
   and must be aligned. */
void qdqi_load_floats(float *to, enum qdqi_dtype dtype, const void *from, size_t n);

/*
 * Returns the normal float16 value that is nearest to x > 0, ties to even. Smaller
 * numbers than the smallest normal value become that value, larger ones than the
 * largest become the largest.
 */
float qdqi_normal_half(double x);

#endif
