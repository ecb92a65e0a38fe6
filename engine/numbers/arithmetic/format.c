/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/format.h"

const struct qdqi_format_row *
qdqi_format_row(int format)
{
    static const struct qdqi_format_row rows[] = {
#define QDQ_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, uses) \
    {text, QDQI_##name, bits, lowest, highest, fraction, min, opset},
#include "qdq/formats.h"
#undef QDQ_FORMAT
    };
    return format >= 0 && format < QDQI_N_FORMATS ? &rows[format] : NULL;
}

struct qdqi_rounding
qdqi_rounding_of(enum qdqi_format format, int32_t zero_point)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    return (struct qdqi_rounding){row->lowest - (float)zero_point,
                                  row->highest - (float)zero_point, row->fraction_bits,
                                  row->min_exponent};
}

/* A run of elements with one scale. */
struct run {
    float scale;
    struct qdqi_rounding rounding;
};

static void
run_float32(const struct run *r, const float *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = qdqi_fake_number(in[i], r->scale, r->rounding);
}

static void
run_float16(const struct run *r, const uint16_t *in, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = qdqi_half_narrowed(
            qdqi_fake_number(qdqi_half_widened(in[i]), r->scale, r->rounding));
}

void
qdqi_grid_apply(const struct qdqi_grid *g, enum qdqi_dtype type, const void *in,
                void *out)
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
