/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram of an observer in few bins, and what a range does to its values. */
#ifndef QDQI_NUMBERS_RANGE_OUTLINE_H
#define QDQI_NUMBERS_RANGE_OUTLINE_H

#include "qdq/report.h"
#include "numbers/range/method.h"

/*
 * Fills in *ret for an observer with a histogram that observed something, with at most `most`
 * bins. The counts are in the arena. Returns false when out of memory.
 *
 * An observer counts magnitudes. They are the values of a tensor that has no negative ones,
 * and mirrored those of a tensor that has no positive ones.
 */
bool qdqi_outline(const struct qdqi_observer *observer,
                  const struct qdqi_range_use *use, const struct qdqi_range *range,
                  size_t most, struct qdqi_arena *arena,
                  struct qdq_histogram_report *ret);

/* Returns the noise that quantization with this range adds to an observer's tensor, as a part
   of the power of its values; 0 when it has no histogram or saw nothing but zeros. */
double qdqi_outline_noise(const struct qdqi_observer *observer,
                          const struct qdqi_range_use *use,
                          const struct qdqi_range *range);

#endif
