/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of two float32 arrays, as the sums of which an SQNR consists. */
#ifndef QDQI_NUMBERS_ARITHMETIC_NOISE_H
#define QDQI_NUMBERS_ARITHMETIC_NOISE_H

#include <stdbool.h>
#include <stddef.h>

struct qdqi_noise {
    double signal, noise; /* sums of f^2 and of (f - q)^2 */
};

/*
 * Adds n elements, which need not be aligned. The order of additions is fixed, so that
 * every processor gives the same sums. Elements that are the same infinity, or NaN, in both are left
 * out; others that are not finite make the sums so.
 */
void qdqi_noise_add(struct qdqi_noise *sums, const void *f, const void *q, size_t n);

/* Returns whether two elements are the same infinity, or both NaN. */
bool qdqi_same_nonfinite(float f, float q);

/* Returns 10 log10(signal / noise), or +inf if there is no noise. */
double qdqi_noise_db(const struct qdqi_noise *sums);

#endif
