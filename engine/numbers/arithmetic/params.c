/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/params.h"

#include "numbers/arithmetic/half.h"

#include <float.h>
#include <math.h>

bool
qdqi_has_zero_points(const struct qdqi_params *p)
{
    for (size_t i = 0; p->zero_points && i < p->n; i++)
        if (p->zero_points[i] != 0)
            return true;
    return false;
}

/* Returns the zero point of a format when it is used symmetrically. That is 0, or for a
   format without negative numbers the middle of its range, rounded half to even. */
static int32_t
symmetric_zero_point(enum qdqi_format format)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    if (row->lowest < 0)
        return 0;
    return (int32_t)nearbyint(((double)row->lowest + (double)row->highest) / 2);
}

static double
clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Limits x > 0 to the normal numbers of the type, without rounding. */
static double
normal(enum qdqi_dtype dtype, double x)
{
    return dtype == QDQI_FLOAT16 ? clamp(x, 0x1p-14, 65504)
                                 : clamp(x, (double)FLT_MIN, (double)FLT_MAX);
}

static float
nearest(enum qdqi_dtype dtype, double x)
{
    return dtype == QDQI_FLOAT16 ? qdqi_normal_half(x) : (float)x;
}

/* Returns the scale, or the next smaller one where so many steps of it are no finite number of the type and
   of that one they are: the scale of a range as wide as the type's may have been rounded up. */
static float
finite_scale(enum qdqi_dtype dtype, float scale, double steps)
{
    const double end =
        dtype == QDQI_FLOAT16 ? 65520 : 0x1.ffffffp127; /* rounds to an infinity */
    const float less = dtype == QDQI_FLOAT16
                           ? nearest(dtype, (double)scale * (1 - 0x1p-10))
                           : nextafterf(scale, 0);
    return (double)scale * steps < end || (double)less * steps >= end ? scale : less;
}

void
qdqi_range_params(enum qdqi_format format, bool symmetric, enum qdqi_dtype dtype,
                  double min, double max, float *ret_scale, int32_t *ret_zero_point)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    double low = (double)row->lowest, high = (double)row->highest;
    double amax = fmax(fabs(min), fabs(max));
    *ret_zero_point = 0;
    *ret_scale = 1;
    if (amax == 0)
        return;
    if (symmetric || row->fraction_bits > 0) {
        double scale = low < 0 ? amax / high : amax / (high - low) * 2;
        *ret_zero_point = symmetric_zero_point(format);
        *ret_scale =
            finite_scale(dtype, nearest(dtype, normal(dtype, scale)), amax / scale);
        return;
    }
    min = fmin(min, 0);
    max = fmax(max, 0);
    double scale = normal(dtype, (max - min) / (high - low));
    *ret_zero_point = (int32_t)clamp(nearbyint(low - min / scale), low, high);
    *ret_scale = finite_scale(dtype, nearest(dtype, scale),
                              fmax(*ret_zero_point - low, high - *ret_zero_point));
}
