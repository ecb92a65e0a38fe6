/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/fake.h"

#include "numbers/arithmetic/simd.h"

#include <string.h>

QDQI_LOOP void
store(unsigned char *bytes, size_t i, float x)
{
    memcpy(bytes + i * sizeof x, &x, sizeof x);
}

/* --- one scale ------------------------------------------------------------ */

QDQI_LOOP void
apart_loop(const unsigned char *restrict from, unsigned char *restrict to, size_t n,
           float scale, float low, float high)
{
    for (size_t i = 0; i < n; i++)
        store(to, i, qdqi_fake_integer(qdqi_float_at(from, i), scale, low, high));
}

QDQI_LOOP void
in_place_loop(unsigned char *at, size_t n, float scale, float low, float high)
{
    for (size_t i = 0; i < n; i++)
        store(at, i, qdqi_fake_integer(qdqi_float_at(at, i), scale, low, high));
}

QDQI_VARIANTS(void, apart,
              (const unsigned char *from, unsigned char *to, size_t n, float scale,
               float low, float high),
              (from, to, n, scale, low, high))
QDQI_VARIANTS(void, in_place,
              (unsigned char *at, size_t n, float scale, float low, float high),
              (at, n, scale, low, high))

static void
one_float_scale(const unsigned char *from, unsigned char *to, size_t n, float scale,
                struct qdqi_rounding r)
{
    for (size_t i = 0; i < n; i++)
        store(to, i,
              qdqi_fake_float(qdqi_float_at(from, i), scale, r.high, r.fraction_bits,
                              r.min_exponent));
}

/* Quantizes n consecutive elements with scale i. */
static void
one_scale(const struct qdqi_fake *f, size_t i, const unsigned char *from,
          unsigned char *to, size_t n)
{
    struct qdqi_rounding r =
        qdqi_rounding_of(f->format, f->zero_points ? f->zero_points[i] : 0);
    float scale = f->scales[i];
    if (r.fraction_bits > 0)
        one_float_scale(from, to, n, scale, r);
    else if (from == to)
        in_place(to, n, scale, r.low, r.high);
    else
        apart(from, to, n, scale, r.low, r.high);
}

/* --- a scale for each element -------------------------------------------- */

QDQI_LOOP void
each_loop(const unsigned char *restrict from, unsigned char *restrict to, size_t n,
          const float *restrict scales, float low, float high)
{
    for (size_t i = 0; i < n; i++)
        store(to, i, qdqi_fake_integer(qdqi_float_at(from, i), scales[i], low, high));
}

QDQI_VARIANTS(void, each,
              (const unsigned char *from, unsigned char *to, size_t n,
               const float *scales, float low, float high),
              (from, to, n, scales, low, high))

/* Quantizes n elements with scales first … first + n - 1, one for each element. */
static void
each_scale(const struct qdqi_fake *f, size_t first, const unsigned char *from,
           unsigned char *to, size_t n)
{
    struct qdqi_rounding r = qdqi_rounding_of(f->format, 0);
    const float *scales = f->scales + first;
    if (f->zero_points || r.fraction_bits > 0 || from == to)
        for (size_t i = 0; i < n; i++) {
            if (f->zero_points)
                r = qdqi_rounding_of(f->format, f->zero_points[first + i]);
            store(to, i, qdqi_fake_number(qdqi_float_at(from, i), scales[i], r));
        }
    else
        each(from, to, n, scales, r.low, r.high);
}

/* --- tensors -------------------------------------------------------------- */

static size_t
min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The channels are the innermost axis. Quantizes one run of all channels after the
   other; the first run may begin in the middle. */
static void
channels_inside(const struct qdqi_fake *f, const unsigned char *from, unsigned char *to,
                size_t first, size_t n)
{
    for (size_t i = first, m; i < first + n; i += m) {
        size_t c = i % f->channels;
        m = min_size(f->channels - c, first + n - i);
        each_scale(f, c, from + i * sizeof(float), to + i * sizeof(float), m);
    }
}

static void
channels_outside(const struct qdqi_fake *f, const unsigned char *from,
                 unsigned char *to, size_t first, size_t n)
{
    for (size_t i = first, m; i < first + n; i += m) {
        size_t row = i / f->inner;
        m = min_size((row + 1) * f->inner, first + n) - i;
        one_scale(f, row % f->channels, from + i * sizeof(float),
                  to + i * sizeof(float), m);
    }
}

/* Quantizes a tensor with blocks: either runs of elements that share a scale, or
   runs in which each element has its own. */
static void
blocks(const struct qdqi_fake *f, const unsigned char *from, unsigned char *to,
       size_t first, size_t n)
{
    size_t per_outer = (f->channels + f->block - 1) / f->block;
    for (size_t i = first, m; i < first + n; i += m) {
        size_t row = i / f->inner, at = i % f->inner, c = row % f->channels;
        size_t scale = (row / f->channels * per_outer + c / f->block) * f->inner + at;
        size_t left = f->inner == 1 ? f->block - c % f->block : f->inner - at;
        if (f->inner == 1 && left > f->channels - c)
            left = f->channels - c;
        m = min_size(left, first + n - i);
        (f->inner == 1 ? one_scale : each_scale)(f, scale, from + i * sizeof(float),
                                                 to + i * sizeof(float), m);
    }
}

void
qdqi_fake_quantize(const struct qdqi_fake *f, const void *from, void *to, size_t first,
                   size_t n)
{
    size_t at = first * sizeof(float);
    if (f->on && f->chosen)
        memcpy((unsigned char *)to + at, f->chosen + first, n * sizeof(float));
    else if (!f->on && from != to)
        memcpy((unsigned char *)to + at, (const unsigned char *)from + at,
               n * sizeof(float));
    else if (f->on && f->block > 0)
        blocks(f, from, to, first, n);
    else if (f->on && f->channels == 1)
        one_scale(f, 0, (const unsigned char *)from + at, (unsigned char *)to + at, n);
    else if (f->on && f->inner == 1)
        channels_inside(f, from, to, first, n);
    else if (f->on)
        channels_outside(f, from, to, first, n);
}
