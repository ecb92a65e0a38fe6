/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "number/fake.h"

#include "number/quantize.h"
#include "number/simd.h"

#include <string.h>

QDQI_LOOP float
load(const unsigned char *bytes, size_t i)
{
    float x;
    memcpy(&x, bytes + i * sizeof x, sizeof x);
    return x;
}

QDQI_LOOP void
store(unsigned char *bytes, size_t i, float x)
{
    memcpy(bytes + i * sizeof x, &x, sizeof x);
}

/* --- one scale ------------------------------------------------------------ */

QDQI_LOOP void
apart_loop(const unsigned char *restrict from, unsigned char *restrict to, size_t n,
           float scale)
{
    for (size_t i = 0; i < n; i++)
        store(to, i, qdqi_quantized(load(from, i), scale) * scale);
}

QDQI_LOOP void
in_place_loop(unsigned char *at, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        store(at, i, qdqi_quantized(load(at, i), scale) * scale);
}

QDQI_AVX2 static void
apart_avx2(const unsigned char *from, unsigned char *to, size_t n, float scale)
{
    apart_loop(from, to, n, scale);
}

QDQI_AVX2 static void
in_place_avx2(unsigned char *at, size_t n, float scale)
{
    in_place_loop(at, n, scale);
}

static void
one_scale(const unsigned char *from, unsigned char *to, size_t n, float scale)
{
    bool avx2 = qdqi_has_avx2();
    if (from == to && avx2)
        in_place_avx2(to, n, scale);
    else if (from == to)
        in_place_loop(to, n, scale);
    else if (avx2)
        apart_avx2(from, to, n, scale);
    else
        apart_loop(from, to, n, scale);
}

/* --- a scale for each element of a run ------------------------------------ */

QDQI_LOOP void
each_loop(const unsigned char *restrict from, unsigned char *restrict to, size_t n,
          const float *restrict scales)
{
    for (size_t i = 0; i < n; i++)
        store(to, i, qdqi_quantized(load(from, i), scales[i]) * scales[i]);
}

QDQI_AVX2 static void
each_avx2(const unsigned char *from, unsigned char *to, size_t n, const float *scales)
{
    each_loop(from, to, n, scales);
}

static void
each_scale(const unsigned char *from, unsigned char *to, size_t n, const float *scales)
{
    if (from == to)
        for (size_t i = 0; i < n; i++)
            store(to, i, qdqi_quantized(load(to, i), scales[i]) * scales[i]);
    else if (qdqi_has_avx2())
        each_avx2(from, to, n, scales);
    else
        each_loop(from, to, n, scales);
}

/* --- tensors -------------------------------------------------------------- */

static size_t
min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The innermost axis is the channels': runs of all channels, the first perhaps cut. */
static void
channels_inside(const struct qdqi_fake *f, const unsigned char *from, unsigned char *to,
                size_t first, size_t n)
{
    for (size_t i = first, m; i < first + n; i += m) {
        size_t c = i % f->channels;
        m = min_size(f->channels - c, first + n - i);
        each_scale(from + i * sizeof(float), to + i * sizeof(float), m, f->scales + c);
    }
}

static void
channels_outside(const struct qdqi_fake *f, const unsigned char *from,
                 unsigned char *to, size_t first, size_t n)
{
    for (size_t i = first, m; i < first + n; i += m) {
        size_t row = i / f->inner;
        m = min_size((row + 1) * f->inner, first + n) - i;
        one_scale(from + i * sizeof(float), to + i * sizeof(float), m,
                  f->scales[row % f->channels]);
    }
}

void
qdqi_fake_quantize(const struct qdqi_fake *f, const void *from, void *to, size_t first,
                   size_t n)
{
    size_t at = first * sizeof(float);
    if (!f->on && from != to)
        memcpy((unsigned char *)to + at, (const unsigned char *)from + at,
               n * sizeof(float));
    else if (f->on && f->channels == 1)
        one_scale((const unsigned char *)from + at, (unsigned char *)to + at, n,
                  f->scales[0]);
    else if (f->on && f->inner == 1)
        channels_inside(f, from, to, first, n);
    else if (f->on)
        channels_outside(f, from, to, first, n);
}
