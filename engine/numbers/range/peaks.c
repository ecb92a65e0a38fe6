/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/range/peaks.h"

#include <float.h>
#include <math.h>

static float
larger(float a, float value, bool *is_nonfinite)
{
    float v = fabsf(value);
    bool is_finite = v <= FLT_MAX; /* false for NaN */
    *is_nonfinite |= !is_finite;
    return v > a && is_finite ? v : a;
}

bool
qdqi_peaks_add(struct qdqi_all_peaks *all, size_t slot, const float *data, size_t rank,
               const int64_t *dims)
{
    struct qdqi_peaks *p = &all->rows[slot];
    size_t outer = 1, inner = 1;
    if (rank < p->from_end || (size_t)dims[rank - p->from_end] != p->channels)
        return false;
    for (size_t i = 0; i < rank - p->from_end; i++)
        outer *= (size_t)dims[i];
    for (size_t i = rank - p->from_end + 1; i < rank; i++)
        inner *= (size_t)dims[i];
    for (size_t o = 0; o < outer; o++)
        for (size_t c = 0; c < p->channels; c++, data += inner) {
            float largest = p->largest[c];
            for (size_t i = 0; i < inner; i++)
                largest = larger(largest, data[i], &all->is_nonfinite);
            p->largest[c] = largest;
        }
    return true;
}
