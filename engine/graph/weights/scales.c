/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/scales.h"

#include "numbers/arithmetic/half.h"
#include "numbers/arithmetic/minmax.h"
#include "numbers/arithmetic/simd.h"
#include "graph/weights/walk.h"

#include <float.h>
#include <math.h>
#include <string.h>

bool
qdqi_weight_is_symmetric(enum qdqi_format format)
{
    return qdqi_format_row((int)format)->lowest < 0;
}

/* --- the largest |x| ------------------------------------------------------ */

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

/* Computes amax of each index of `axis`. The data is stored as
   [outer][channels][inner], whatever the order of the other axes. */
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
            if (!(m <= amax[c]) && !isnan(amax[c])) /* a NaN is kept */
                amax[c] = m;
        }
}

enum { PIECE = 4096 }; /* elements that are converted together */

/* Does the same for float16 data. */
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
            if (!(x <= *to) && !isnan(*to)) /* a NaN is kept */
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

/* --- both ends of the range ------------------------------------------------ */

/* The range of the elements of each scale. Every range contains 0. */
struct ranges {
    float *low, *high; /* low is NULL for ranges from -high to high */
    size_t n;
    size_t bad; /* first scale with an element that is not finite, or SIZE_MAX */
};

/* Adds n elements that share scale i. */
static void
add_run(struct ranges *r, size_t i, const float *x, size_t n)
{
    float low = r->low[i], high = r->high[i];
    bool finite = true;
    for (size_t k = 0; k < n; k++) {
        low = x[k] < low ? x[k] : low;
        high = x[k] > high ? x[k] : high;
        finite &= fabsf(x[k]) <= FLT_MAX;
    }
    r->low[i] = low;
    r->high[i] = high;
    if (!finite && r->bad == SIZE_MAX)
        r->bad = i;
}

/* Widens n ranges by an element each. Returns whether all elements are finite. */
QDQI_LOOP bool
widen_loop(float *restrict low, float *restrict high, const float *restrict x, size_t n)
{
    uint32_t finite = 1;
    for (size_t k = 0; k < n; k++) {
        low[k] = x[k] < low[k] ? x[k] : low[k];
        high[k] = x[k] > high[k] ? x[k] : high[k];
        finite &= fabsf(x[k]) <= FLT_MAX;
    }
    return finite;
}

QDQI_VARIANTS(bool, widen,
              (float *restrict low, float *restrict high, const float *restrict x,
               size_t n),
              (low, high, x, n))

/* Adds n elements that have a scale each. */
static void
add_each(struct ranges *r, size_t first, const float *x, size_t n)
{
    const bool finite = widen(r->low + first, r->high + first, x, n);
    for (size_t k = 0; k < n && !finite && r->bad == SIZE_MAX; k++)
        if (!isfinite(x[k]))
            r->bad = first + k;
}

/* Adds n elements of the last step, from index `first` on. */
static void
add_piece(struct ranges *r, const struct qdqi_step *step, size_t scale, size_t first,
          const float *piece, size_t n)
{
    if (step->block == 1 && step->scales == 1) {
        add_each(r, scale + first, piece, n);
        return;
    }
    for (size_t i = 0, run; i < n; i += run) {
        run = qdqi_step_run(step, first + i, n - i);
        add_run(r, scale + (first + i) / step->block * step->scales, piece + i, run);
    }
}

static void
find_fill(const struct qdqi_constant *w, struct ranges *r)
{
    float x;
    qdqi_load_floats(&x, w->dtype, w->bytes, 1);
    for (size_t i = 0; i < r->n; i++)
        add_run(r, i, &x, 1);
}

static void
find_ends(const struct qdqi_constant *w, const struct qdqi_walk *walk, struct ranges *r)
{
    const struct qdqi_step *step = qdqi_walk_last(walk);
    size_t size = qdqi_dtype_size((int)w->dtype), element, scale;
    const bool as_they_are = step->elements == 1 && w->dtype == QDQI_FLOAT32 &&
                             (uintptr_t)w->bytes % sizeof(float) == 0;
    float room[PIECE];
    for (size_t row = 0; row < walk->n_rows; row++) {
        qdqi_walk_row(walk, row, &element, &scale);
        for (size_t i = 0, n; i < step->n; i += n) {
            const float *piece = room;
            n = step->n - i < PIECE ? step->n - i : PIECE;
            for (size_t k = 0; k < n && step->elements != 1; k++)
                qdqi_load_floats(room + k, w->dtype,
                                 w->bytes + (element + (i + k) * step->elements) * size,
                                 1);
            if (as_they_are)
                piece = (const float *)(const void *)w->bytes + element + i;
            else if (step->elements == 1)
                qdqi_load_floats(room, w->dtype, w->bytes + (element + i) * size, n);
            add_piece(r, step, scale, i, piece, n);
        }
    }
}

/* Finds the ranges of a weight. Symmetric formats without blocks have a faster way. */
static bool
find_ranges(const struct qdqi_constant *w, const struct qdqi_params *p,
            struct qdqi_arena *arena, struct ranges *r)
{
    struct qdqi_walk walk;
    r->n = p->n;
    r->bad = SIZE_MAX;
    r->high = qdqi_arena_array(arena, r->n, sizeof *r->high);
    if (!r->high)
        return false;
    if (qdqi_weight_is_symmetric(p->format) && p->block == 0) {
        find_amax(w, p->axis, r->high, r->n);
        return true;
    }
    if (!(r->low = qdqi_arena_array(arena, r->n, sizeof *r->low)) ||
        !qdqi_walk_init(&walk, arena, w, p))
        return false;
    if (w->n && qdqi_constant_is_fill(w))
        find_fill(w, r);
    else
        find_ends(w, &walk, r);
    return true;
}

/* --- scales --------------------------------------------------------------- */

/* Returns a number that is proportional to the scale of range i. */
static float
reach(const struct ranges *r, bool symmetric, size_t i)
{
    float low = r->low ? -r->low[i] : r->high[i];
    if (symmetric)
        return low > r->high[i] ? low : r->high[i];
    return low / 2 + r->high[i] / 2;
}

/* Returns the number that has `rank` smaller or equal numbers before it when they are
   sorted. Changes their order. The pivots are drawn, so that no order is a slow one. */
static float
select_rank(float *x, size_t n, size_t rank)
{
    size_t first = 0, last = n - 1;
    uint64_t draw = 26;
    while (first < last) {
        draw = draw * UINT64_C(6364136223846793005) + 1442695040888963407;
        float pivot = x[first + (size_t)(draw >> 33) % (last - first)];
        size_t i = first, k = last;
        for (;; i++, k--) {
            while (x[i] < pivot)
                i++;
            while (x[k] > pivot)
                k--;
            if (i >= k)
                break;
            float swapped = x[i];
            x[i] = x[k];
            x[k] = swapped;
        }
        if (rank <= k)
            last = k;
        else
            first = k + 1;
    }
    return x[rank];
}

/* Returns the median reach of the ranges that are not all zeros, for those that are; 0
   when there are none of the one or the other kind. */
static float
median_reach(const struct ranges *r, bool symmetric, float *scratch)
{
    size_t alive = 0;
    for (size_t i = 0; i < r->n; i++)
        if (reach(r, symmetric, i) > 0)
            scratch[alive++] = reach(r, symmetric, i);
    return alive > 0 && alive < r->n ? select_rank(scratch, alive, alive / 2) : 0;
}

/* Computes scales and zero points from the ranges, and counts those of zeros. Returns
   whether a zero point is not 0. */
static bool
scale_ranges(const struct qdqi_constant *w, const struct ranges *r,
             struct qdqi_params *p, size_t *ret_dead)
{
    bool symmetric = qdqi_weight_is_symmetric(p->format), any = false;
    double dead = (double)median_reach(r, symmetric, p->scales);
    *ret_dead = 0;
    for (size_t i = 0; i < r->n; i++) {
        bool alive = reach(r, symmetric, i) > 0;
        *ret_dead += !alive;
        double high = alive ? (double)r->high[i] : symmetric ? dead : 2 * dead;
        double low = !alive ? 0 : r->low ? (double)r->low[i] : -high;
        int32_t zero_point;
        qdqi_range_params(p->format, symmetric, w->dtype, low, high, &p->scales[i],
                          &zero_point);
        if (p->zero_points)
            p->zero_points[i] = zero_point;
        any |= zero_point != 0;
    }
    return any;
}

static enum qdq_code
nonfinite(const char *name, size_t i, struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_NONFINITE, QDQ_AT_TENSOR, name,
                         "weight '%s' holds a NaN or an infinity (channel %zu)", name,
                         i);
}

enum qdq_code
qdqi_weight_params_new(const struct qdqi_constant *w, const char *name,
                       struct qdqi_arena *arena, struct qdqi_params *p,
                       struct qdq_error *err)
{
    bool symmetric = qdqi_weight_is_symmetric(p->format);
    if (w->dtype != QDQI_FLOAT32 && w->dtype != QDQI_FLOAT16)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_TENSOR, name,
                             "weight '%s' is neither float32 nor float16", name);
    if (!qdqi_count_scales(w, p->axis, p->block, &p->n))
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_TENSOR, name,
                             "weight '%s' has too many scales", name);
    p->scales = qdqi_arena_array(arena, p->n, sizeof *p->scales);
    p->zero_points =
        symmetric ? NULL : qdqi_arena_array(arena, p->n, sizeof *p->zero_points);
    return p->scales && (symmetric || p->zero_points) ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_weight_params_find(const struct qdqi_constant *w, const char *name, size_t first,
                        struct qdqi_params *p, size_t *ret_dead, struct qdq_error *err)
{
    struct ranges r = {.n = 0};
    struct qdqi_arena *scratch = qdqi_arena_new();
    if (!scratch)
        return qdqi_no_memory(err);
    enum qdq_code code = find_ranges(w, p, scratch, &r) ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; !code && i < r.n; i++)
        if (!isfinite(r.high[i]) || (r.low && !isfinite(r.low[i])))
            code = nonfinite(name, first + i, err);
    if (!code && r.bad != SIZE_MAX)
        code = nonfinite(name, first + r.bad, err);
    if (!code && !scale_ranges(w, &r, p, ret_dead))
        p->zero_points = NULL;
    qdqi_arena_free(&scratch);
    return code;
}

void
qdqi_scales_shorten(struct qdqi_params *p, double factor)
{
    static const double digits = 1024,
                        rounding = 1e-4; /* of float32, of scales that are short */
    for (size_t i = 0; i < p->n; i++) {
        int exponent;
        const double part = frexp(fabs((double)p->scales[i]) * factor, &exponent);
        const double wider = ldexp(ceil(part * digits - rounding) / digits, exponent);
        if (isnormal((float)(wider / factor)))
            p->scales[i] = copysignf((float)(wider / factor), p->scales[i]);
    }
}
