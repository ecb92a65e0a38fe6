/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moment of the patches of a 3 by 3 convolution that moves by one and keeps the size
 * of its input, from products of the image with itself, moved.
 *
 * The product of the elements (c, d) and (c', d') of a patch, summed over all positions, is
 * the sum over the pixels u of x[c][u] x[c'][u + d' - d], less the pixels whose patches
 * would be centred outside of the image. It depends on d' - d alone: 13 products of the
 * image with itself are enough for the 45 of a patch. The pixels outside are the first or
 * the last row or column, where d and d' agree in that direction; for all other pairs one
 * of the two factors is outside, too, and 0.
 *
 * So all positions of a sample cost about a third of what their patches would cost.
 */
#ifndef QDQI_NUMBERS_RANGE_SHIFTS_H
#define QDQI_NUMBERS_RANGE_SHIFTS_H

#include "numbers/range/patches.h"

struct qdqi_shifts;

/* Returns the bytes that a convolution with so many input channels takes, for its sums and
   for images that are put aside. */
uint64_t qdqi_shifts_bytes(size_t channels);

/* Returns whether an image is better taken in by these products than by `wanted` patches of
   it; channels are those of the image, of one group, whose moment is not in blocks. */
bool qdqi_shifts_pay(const struct qdqi_window *w, size_t channels, size_t height,
                     size_t width, size_t wanted);

/* Makes the sums of a layer; NULL when out of memory. */
struct qdqi_shifts *qdqi_shifts_new(size_t channels);
void qdqi_shifts_free(struct qdqi_shifts **shifts);

/* Takes in an image, [channels][height][width]. One with a NaN or an infinity is left
   out. Returns false when out of memory; the image is not taken in then. */
bool qdqi_shifts_add(struct qdqi_shifts *s, const float *image, size_t height,
                     size_t width, qdqi_share_fn *share, void *arg);

/* Adds what was taken in to the moment of the patches, and forgets it. */
void qdqi_shifts_finish(struct qdqi_shifts *s, struct qdqi_moment *to,
                        qdqi_share_fn *share, void *arg);

#endif
