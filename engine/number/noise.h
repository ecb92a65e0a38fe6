/* SPDX-License-Identifier: Apache-2.0 */
/* How far two arrays of float32 are apart: the sums that an SQNR is made of. */
#ifndef QDQI_NUMBER_NOISE_H
#define QDQI_NUMBER_NOISE_H

#include <stddef.h>

struct qdqi_noise {
    double signal, noise; /* sums of f^2 and of (f - q)^2 */
};

/*
 * Adds n elements, which need not be aligned. The sums are those of a fixed order,
 * whatever the processor. What is not finite stays in them.
 */
void qdqi_noise_add(struct qdqi_noise *sums, const void *f, const void *q, size_t n);

/* 10 log10(signal / noise); +inf where there is no noise. */
double qdqi_noise_db(const struct qdqi_noise *sums);

#endif
