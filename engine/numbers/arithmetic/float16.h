/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between float32 and the 16-bit types float16 and bfloat16. */
#ifndef QDQI_NUMBERS_ARITHMETIC_FLOAT16_H
#define QDQI_NUMBERS_ARITHMETIC_FLOAT16_H

#include "ground/base/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the largest finite number of the type. */
float qdqi_float16_largest(enum qdqi_dtype type);

/* Converts n float32 values at any alignment to the nearest numbers of the type,
   ties to even. Numbers beyond its range become infinite, and a NaN stays a NaN. */
void qdqi_float16_of_floats(uint16_t *to, enum qdqi_dtype type, const void *from,
                            size_t n);

/* Returns the exact value of the bits. */
float qdqi_float16_widened(enum qdqi_dtype type, uint16_t bits);

/* Returns whether the type has the number x, or x is a NaN. */
bool qdqi_float16_has(enum qdqi_dtype type, float x);

/*
 * Returns the scale in the type for a positive and finite float32 scale: the nearest
 * normal number. If that would move a number `steps` steps away from zero by more than
 * half a step, it returns the next larger number.
 */
float qdqi_float16_scale(enum qdqi_dtype type, float scale, double steps);

#endif
