/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of fake quantization, applied to a whole tensor: the kernels of engine/numbers
   and engine/numbers/cuda are compared with it. */
#ifndef TESTS_UNIT_GRID_H
#define TESTS_UNIT_GRID_H

#include "numbers/arithmetic/format.h"

/* A run of elements with one scale. */
struct run {
    float scale;
    struct qdqi_rounding rounding;
};

static inline void
run_float32(const struct run *r, const float *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = qdqi_fake_number(in[i], r->scale, r->rounding);
}

static inline void
run_float16(const struct run *r, const uint16_t *in, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = qdqi_half_narrowed(
            qdqi_fake_number(qdqi_half_widened(in[i]), r->scale, r->rounding));
}

/* Fake-quantizes a tensor. `in` and `out` have float32 or float16 elements, aligned
   to their size; they may be equal. */
static inline void
grid_apply(const struct qdqi_grid *g, enum qdqi_dtype type, const void *in, void *out)
{
    size_t runs = g->outer * g->channels, n = g->inner;
    for (size_t i = 0; i < runs; i++) {
        size_t c = i % g->channels;
        struct run r = {
            g->scales[c],
            qdqi_rounding_of(g->format, g->zero_points ? g->zero_points[c] : 0)};
        if (type == QDQI_FLOAT16)
            run_float16(&r, (const uint16_t *)in + i * n, (uint16_t *)out + i * n, n);
        else
            run_float32(&r, (const float *)in + i * n, (float *)out + i * n, n);
    }
}

#endif
