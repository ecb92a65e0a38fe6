/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/format_noise.h"

#include "graph/weights/elements.h"
#include "graph/weights/integers.h"
#include "graph/weights/scales.h"
#include "graph/weights/walk.h"
#include "numbers/arithmetic/format.h"

/* The largest and smallest of the elements of one scale, and their sum of squares. */
struct extent {
    float min, max;
    double squares;
};

static struct extent
extent_of(const float *x, size_t n)
{
    struct extent e = {x[0], x[0], 0};
    for (size_t i = 0; i < n; i++) {
        e.min = x[i] < e.min ? x[i] : e.min;
        e.max = x[i] > e.max ? x[i] : e.max;
        e.squares += (double)x[i] * (double)x[i];
    }
    return e;
}

/* Returns the squared errors of elements that share a scale, which covers their range. */
static double
error_of(const float *x, size_t n, const struct extent *e, enum qdqi_format format)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    const bool symmetric = row->fraction_bits > 0 || row->lowest < 0;
    float scale;
    int32_t zero;
    double sum = 0;
    qdqi_range_params(format, symmetric, QDQI_FLOAT32, (double)e->min, (double)e->max,
                      &scale, &zero);
    const float low = row->lowest - (float)zero, high = row->highest - (float)zero;
    for (size_t i = 0; i < n; i++) {
        const float y = row->fraction_bits > 0
                            ? qdqi_fake_float(x[i], scale, row->highest,
                                              row->fraction_bits, row->min_exponent)
                            : qdqi_fake_integer(x[i], scale, low, high);
        sum += ((double)x[i] - (double)y) * ((double)x[i] - (double)y);
    }
    return sum;
}

/* Returns the bytes of a weight's elements, scales and zero points. */
static double
bytes_of(const struct qdq_plan *plan, const struct qdqi_constant *c,
         const struct qdqi_params *p, enum qdqi_format format)
{
    const bool has_zeros = !plan->leaves_out_zeros || p->block == 0 ||
                           !qdqi_weight_is_symmetric((enum qdqi_format)format);
    const double element = (double)qdqi_integers_size(format, 8) / 8;
    return (double)c->n * element +
           (double)p->n * (sizeof(float) + (has_zeros ? element : 0));
}

bool
qdqi_measure_formats(const struct qdq_plan *plan, const struct qdqi_constant *c,
                     const struct qdqi_params *p, unsigned formats, int first,
                     struct qdqi_format_point *points, size_t *n_points)
{
    struct qdqi_elements e;
    double errors[QDQI_N_FORMATS] = {0}, squares = 0;
    if (!qdqi_elements_open(&e, c, p))
        return false;
    for (size_t k = 0; k < p->n; k++) {
        qdqi_elements_seek(&e, k);
        const size_t n = e.n < QDQI_ELEMENTS_PIECE ? e.n : QDQI_ELEMENTS_PIECE;
        if (n == 0)
            continue;
        qdqi_elements_gather(&e, 0, n);
        const struct extent extent = extent_of(e.piece, n);
        squares += extent.squares;
        for (int f = 0; f < QDQI_N_FORMATS; f++)
            if (formats & (1U << f))
                errors[f] += error_of(e.piece, n, &extent, (enum qdqi_format)f);
    }
    qdqi_elements_close(&e);
    for (int f = 0; f < QDQI_N_FORMATS && squares > 0; f++)
        if (formats & (1U << f))
            points[(*n_points)++] = (struct qdqi_format_point){
                first + f, bytes_of(plan, c, p, (enum qdqi_format)f),
                errors[f] / squares};
    return true;
}
