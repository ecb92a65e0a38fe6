/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "range/peaks.h"

#include <float.h>
#include <math.h>

static float
larger(float a, float value)
{
    float v = fabsf(value);
    return v > a && v <= FLT_MAX ? v : a; /* false for NaN */
}

bool
qdqi_peaks_take(struct qdqi_peaks *p, const float *data, size_t rank,
                const int64_t *dims)
{
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
                largest = larger(largest, data[i]);
            p->largest[c] = largest;
        }
    return true;
}
