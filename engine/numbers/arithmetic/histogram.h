/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of |x| with a fixed number of bins whose width grows by doubling.
 *
 * Bin j counts the values with j * 2^e <= |x| < (j + 1) * 2^e. Before values are added
 * whose largest |x| is beyond the last bin, the width is doubled until it is not: pairs
 * of bins are joined, and no count is ever divided. The width is a power of two, by
 * which a float32 can be multiplied exactly, so each value is counted in exactly the
 * right bin. The final e depends only on the largest |x|: it is the smallest that fits.
 * So the histogram depends only on the multiset of the values, not on their order or on
 * their division into batches, parts or threads.
 *
 * More than half of the QDQI_BINS bins are below the largest |x|, unless that is
 * smaller than 2^-116. Symmetric ranges need only magnitudes. For asymmetric ranges
 * there could be a second row of bins, for the negative values, with the same widths.
 */
#ifndef QDQI_NUMBERS_ARITHMETIC_HISTOGRAM_H
#define QDQI_NUMBERS_ARITHMETIC_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { QDQI_BINS = 2048 };

struct qdqi_histogram {
    int exponent; /* the width of a bin is 2^exponent */
    uint64_t counts[QDQI_BINS];
};

void qdqi_histogram_init(struct qdqi_histogram *h);

/* Adds n little-endian float32 values at any alignment. They are finite and at most
   `amax`. */
void qdqi_histogram_update(struct qdqi_histogram *h, float amax, const void *data,
                           size_t n);

/* Adds the counts of another histogram. */
void qdqi_histogram_merge(struct qdqi_histogram *h, const struct qdqi_histogram *other);

double qdqi_histogram_width(const struct qdqi_histogram *h);
/* Returns the number of bins up to the last one that is not empty. */
size_t qdqi_histogram_used(const struct qdqi_histogram *h);
uint64_t qdqi_histogram_total(const struct qdqi_histogram *h);

#endif
