/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "number/format.h"

const struct qdqi_format_row *
qdqi_format_row(int format)
{
    static const struct qdqi_format_row rows[] = {
#define INTEGERS(name, text, lowest, highest) {text, lowest, highest, 0, 0},
#define FLOATS(name, text, highest, bits, min) {text, -highest, highest, bits, min},
#include "tbl/formats.h"
#undef INTEGERS
#undef FLOATS
    };
    return format >= 0 && format < QDQI_N_FORMATS ? &rows[format] : NULL;
}

/* A run of elements with one scale. */
struct run {
    const struct qdqi_format_row *row;
    float scale, zero_point;
};

static float
fake(const struct run *r, float x)
{
    const struct qdqi_format_row *row = r->row;
    return row->fraction_bits == 0
               ? qdqi_fake_integer(x, r->scale, row->lowest - r->zero_point,
                                   row->highest - r->zero_point)
               : qdqi_fake_float(x, r->scale, row->highest, row->fraction_bits,
                                 row->min_exponent);
}

static void
run_float32(const struct run *r, const float *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = fake(r, in[i]);
}

static void
run_float16(const struct run *r, const uint16_t *in, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = qdqi_half_narrowed(fake(r, qdqi_half_widened(in[i])));
}

void
qdqi_grid_apply(const struct qdqi_grid *g, enum qdqi_dtype type, const void *in,
                void *out)
{
    size_t runs = g->outer * g->channels, n = g->inner;
    for (size_t i = 0; i < runs; i++) {
        size_t c = i % g->channels;
        struct run r = {qdqi_format_row((int)g->format), g->scales[c],
                        g->zero_points ? (float)g->zero_points[c] : 0};
        if (type == QDQI_FLOAT16)
            run_float16(&r, (const uint16_t *)in + i * n, (uint16_t *)out + i * n, n);
        else
            run_float32(&r, (const float *)in + i * n, (float *)out + i * n, n);
    }
}
