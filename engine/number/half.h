/* SPDX-License-Identifier: Apache-2.0 */
/* float16 (IEEE 754 binary16): any of its values is a float32, exactly. */
#ifndef QDQI_NUMBER_HALF_H
#define QDQI_NUMBER_HALF_H

#include "base/dtype.h"

#include <stddef.h>
#include <stdint.h>

/* n little-endian halves at any alignment; NaN and the infinities stay what they are. */
void qdqi_floats_of_halves(float *to, const void *from, size_t n);

/* n elements of float32 or float16 data as float32. */
void qdqi_load_floats(float *to, enum qdqi_dtype dtype, const void *from, size_t n);

/* The nearest value of a half that is normal, ties to even; x > 0. What is smaller than
   the least of them becomes that, what is larger than the largest likewise. */
float qdqi_normal_half(double x);

/* The bits of such a value. */
uint16_t qdqi_half_bits(float normal_half);

#endif
