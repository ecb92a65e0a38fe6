/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "number/quantize.h"

#include "number/half.h"
#include "number/minmax.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

float
qdqi_symmetric_scale(double amax)
{
    if (amax == 0)
        return 1;
    double scale = amax / QDQI_INT8_MAX;
    return scale < (double)FLT_MIN ? FLT_MIN : (float)scale;
}

float
qdqi_scale_of(enum qdqi_dtype dtype, double amax)
{
    if (dtype != QDQI_FLOAT16 || amax == 0)
        return qdqi_symmetric_scale(amax);
    return qdqi_normal_half(amax / QDQI_INT8_MAX);
}

size_t
qdqi_weight_inner(const struct qdqi_constant *w, int axis)
{
    size_t inner = 1;
    if (w->strides)
        return (size_t)w->strides[axis];
    for (size_t i = (size_t)axis + 1; i < w->rank; i++)
        inner *= (size_t)w->dims[i];
    return inner;
}

/*
 * amax of each index of `axis`. Whatever the order of the other axes, the data is
 * stored as [outer][channels][inner].
 */
static void
channel_amax(const struct qdqi_constant *w, int axis, float *amax, size_t channels)
{
    size_t inner = qdqi_weight_inner(w, axis), outer = w->n / (channels * inner);
    if (inner == 1) {
        qdqi_amax_columns(w->bytes, outer, channels, amax);
        return;
    }
    const uint8_t *data = w->bytes;
    for (size_t o = 0; o < outer; o++)
        for (size_t c = 0; c < channels; c++, data += inner * sizeof(float)) {
            float m = qdqi_amax(data, inner);
            if (!(m <= amax[c])) /* also when m is NaN */
                amax[c] = m;
        }
}

enum { PIECE = 4096 }; /* elements that are converted at a time */

/* The same of halves: a piece has elements of one channel, or of rows of channels. */
static void
half_amax(const struct qdqi_constant *w, int axis, float *amax, size_t channels)
{
    float piece[PIECE];
    size_t n = qdqi_constant_is_fill(w) ? 1 : w->n;
    size_t inner = channels > 1 && n > 1 ? qdqi_weight_inner(w, axis) : n;
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < PIECE ? n - at : PIECE;
        qdqi_load_floats(piece, w->dtype, w->bytes + at * 2, m);
        for (size_t i = 0; i < m; i++) {
            float x = fabsf(piece[i]), *to = &amax[(at + i) / inner % channels];
            if (!(x <= *to)) /* also when x is NaN */
                *to = x;
        }
    }
    for (size_t i = 1; qdqi_constant_is_fill(w) && i < channels; i++)
        amax[i] = amax[0];
}

static void
find_amax(const struct qdqi_constant *w, int axis, float *amax, size_t channels)
{
    if (w->n == 0)
        return;
    if (w->dtype == QDQI_FLOAT16) {
        half_amax(w, axis, amax, channels);
        return;
    }
    if (channels > 1 && !qdqi_constant_is_fill(w)) {
        channel_amax(w, axis, amax, channels);
        return;
    }
    amax[0] = qdqi_amax(w->bytes, qdqi_constant_is_fill(w) ? 1 : w->n);
    for (size_t i = 1; i < channels; i++)
        amax[i] = amax[0];
}

static int
compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median of the channels that are not all zeros; 0 when there is none. */
static float
median_amax(const float *amax, size_t n, float *scratch)
{
    size_t alive = 0;
    for (size_t i = 0; i < n; i++)
        if (amax[i] > 0)
            scratch[alive++] = amax[i];
    qsort(scratch, alive, sizeof *scratch, compare_floats);
    return alive ? scratch[alive / 2] : 0;
}

enum qdq_code
qdqi_weight_scales(const struct qdqi_constant *w, int axis, const char *name,
                   struct qdqi_arena *arena, float **ret, size_t *ret_n,
                   struct qdq_error *err)
{
    size_t n = axis >= 0 ? (size_t)w->dims[axis] : 1;
    float *scales = qdqi_arena_array(arena, n, sizeof *scales);
    float *scratch = qdqi_arena_array(arena, n, sizeof *scratch);
    if (!scales || !scratch)
        return qdqi_no_memory(err);
    if (w->dtype != QDQI_FLOAT32 && w->dtype != QDQI_FLOAT16)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_TENSOR, name,
                             "weight '%s' is neither float32 nor float16", name);
    find_amax(w, axis, scales, n);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(scales[i]))
            return qdq_error_set(err, QDQ_NONFINITE, QDQ_AT_TENSOR, name,
                                 "weight '%s' holds a NaN or an infinity (channel %zu)",
                                 name, i);
    float dead = median_amax(scales, n, scratch);
    for (size_t i = 0; i < n; i++)
        scales[i] = qdqi_scale_of(w->dtype, (double)(scales[i] > 0 ? scales[i] : dead));
    *ret = scales;
    *ret_n = n;
    return QDQ_OK;
}
