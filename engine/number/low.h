/* SPDX-License-Identifier: Apache-2.0 */
/* The floating types of 16 bits that a model can be written in: float16 and bfloat16. */
#ifndef QDQI_NUMBER_LOW_H
#define QDQI_NUMBER_LOW_H

#include "base/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest finite number of such a type. */
float qdqi_low_largest(enum qdqi_dtype low);

/* n floats, at any alignment, as such numbers: the nearest, ties to even. What is too
   large becomes an infinity; NaN stays one. */
void qdqi_low_of_floats(uint16_t *to, enum qdqi_dtype low, const void *from, size_t n);

/* The number of those bits, exactly. */
float qdqi_low_widened(enum qdqi_dtype low, uint16_t bits);

/* Whether the type has that number, or it is NaN. */
bool qdqi_low_has(enum qdqi_dtype low, float x);

/*
 * The scale of that type for one of float32, positive and finite: the nearest that is
 * normal, or the one above it where the nearest would move a number of `steps` steps by
 * more than half of one.
 */
float qdqi_low_scale(enum qdqi_dtype low, float scale, double steps);

#endif
