/* SPDX-License-Identifier: Apache-2.0 */
/* The largest magnitude of each channel of an activation, over all samples. */
#ifndef QDQI_NUMBERS_RANGE_PEAKS_H
#define QDQI_NUMBERS_RANGE_PEAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qdqi_peaks {
    size_t channels;
    size_t from_end; /* axis of the channels, counted from the end: 1 is the last */
    float
        *largest; /* by channel, 0 at first; numbers that are not finite do not count */
};

/* The peaks that a session collects, by slot of its Peak nodes. */
struct qdqi_all_peaks {
    struct qdqi_peaks *rows;
    size_t n;
    bool
        is_nonfinite; /* a tensor since the caller reset this had a NaN or an infinity */
};

/* Takes in a float32 tensor of a slot. Returns false when its shape does not have the
   channels. */
bool qdqi_peaks_add(struct qdqi_all_peaks *all, size_t slot, const float *data,
                    size_t rank, const int64_t *dims);

#endif
