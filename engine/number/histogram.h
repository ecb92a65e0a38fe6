/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of |x| that grows by doubling, of fixed size.
 *
 * Bin j counts the values with j * 2^e <= |x| < (j + 1) * 2^e. Before values come in
 * whose largest |x| lies beyond the last bin, the width doubles until it does not: pairs
 * of bins become one, and no count is ever divided. The width is a power of two and
 * multiplying a float32 by one is exact, so each value is counted in the very bin that
 * it belongs to. The final e follows from the largest |x| alone, the smallest for which
 * it fits. So the histogram depends on the multiset of the values and on nothing else:
 * not on their order, nor on how they are cut into batches, parts or threads.
 *
 * Of QDQI_BINS bins more than half lie below the largest |x|; only where that is smaller
 * than 2^-116 there are fewer. Magnitudes are what symmetric ranges need; one for
 * asymmetric ranges would be a second row of bins for the negative values, on the same
 * grid.
 */
#ifndef QDQI_NUMBER_HISTOGRAM_H
#define QDQI_NUMBER_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { QDQI_BINS = 2048 };

struct qdqi_histogram {
    int exponent; /* of the bins' width, 2^exponent */
    uint64_t counts[QDQI_BINS];
};

void qdqi_histogram_init(struct qdqi_histogram *h);

/* Takes in n little-endian float32 at any alignment, finite and of at most `amax`. */
void qdqi_histogram_update(struct qdqi_histogram *h, float amax, const void *data,
                           size_t n);

/* Takes in what another one counted. */
void qdqi_histogram_merge(struct qdqi_histogram *h, const struct qdqi_histogram *other);

double qdqi_histogram_width(const struct qdqi_histogram *h);
/* Bins up to the last one that is not empty. */
size_t qdqi_histogram_used(const struct qdqi_histogram *h);
uint64_t qdqi_histogram_total(const struct qdqi_histogram *h);

#endif
