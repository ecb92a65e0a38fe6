/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/full_range.h"

#include "graph/weights/elements.h"
#include "numbers/arithmetic/half.h"
#include "graph/weights/scales.h"
#include "numbers/arithmetic/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Shares of the largest scale that are tried where smaller ones are: in parts of 1024. */
enum { WHOLE = 1024, STEP = 16, LEAST = 256 };

bool
qdqi_format_has_signs(enum qdqi_format format)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    return row->fraction_bits == 0 && row->bits < 8 && row->lowest < 0;
}

/* Returns the sum of squared errors, in eight parts so that it vectorizes. Behind the
   elements are zeros. */
QDQI_LOOP double
squares_loop(const float *x, size_t n, float scale, const struct qdqi_rounding *r)
{
    double part[8] = {0}, total = 0;
    for (size_t k = 0; k < n; k += 8)
        for (size_t i = 0; i < 8; i++) {
            const double off = (double)x[k + i] - (double)qdqi_fake_integer(
                                                      x[k + i], scale, r->low, r->high);
            part[i] += off * off;
        }
    for (size_t i = 0; i < 8; i++)
        total += part[i];
    return total;
}

QDQI_VARIANTS(double, squares,
              (const float *x, size_t n, float scale, const struct qdqi_rounding *r),
              (x, n, scale, r))

/* Returns the error of the elements of the present scale. */
static double
error_of(struct qdqi_elements *e, float scale, const struct qdqi_rounding *r)
{
    double total = 0;
    for (size_t i = 0; i < e->n; i += QDQI_ELEMENTS_PIECE) {
        const size_t n =
            e->n - i < QDQI_ELEMENTS_PIECE ? e->n - i : QDQI_ELEMENTS_PIECE;
        if (e->n > QDQI_ELEMENTS_PIECE || i > 0)
            qdqi_elements_gather(e, i, n);
        total += squares(e->piece, n, scale, r);
    }
    return total;
}

/* The scales that are tried for the elements of one scale. */
struct trial {
    struct qdqi_elements *e;
    enum qdqi_dtype dtype;
    struct qdqi_rounding r;
    double largest; /* with which the largest |x| becomes the lowest integer */
    float best;
    double least;
};

/* Tries a share of the largest scale, counted in parts of 1024, with both signs. */
static void
try_share(struct trial *t, int share)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        const double size = t->largest * share / WHOLE;
        const float tried =
            (float)sign *
            (t->dtype == QDQI_FLOAT16 ? qdqi_normal_half(size) : (float)size);
        const double error =
            isnormal(tried) ? error_of(t->e, tried, &t->r) : (double)INFINITY;
        if (error < t->least) {
            t->least = error;
            t->best = tried;
        }
    }
}

static void
try_shares(struct trial *t, bool narrow)
{
    try_share(t, WHOLE);
    for (int share = WHOLE - STEP; narrow && share >= LEAST; share -= STEP)
        try_share(t, share);
    const int best = (int)lrint(fabs((double)t->best) / t->largest * WHOLE);
    for (int share = best - STEP + 1; narrow && share < best + STEP && share <= WHOLE;
         share++)
        try_share(t, share);
}

static enum qdq_code
fill(const struct qdqi_constant *w, bool narrow, const float *whole,
     struct qdqi_params *p, struct qdq_error *err)
{
    struct qdqi_elements e;
    struct trial t = {.e = &e, .dtype = w->dtype, .r = qdqi_rounding_of(p->format, 0)};
    if (!qdqi_elements_open(&e, w, p))
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n; i++) {
        qdqi_elements_seek(&e, i);
        if (e.n <= QDQI_ELEMENTS_PIECE)
            qdqi_elements_gather(&e, 0, e.n);
        t.largest = (double)whole[i] * (double)t.r.high / -(double)t.r.low;
        t.best = p->scales[i];
        t.least = error_of(&e, t.best, &t.r);
        try_shares(&t, narrow);
        p->scales[i] = t.best;
    }
    qdqi_elements_close(&e);
    return QDQ_OK;
}

enum qdq_code
qdqi_weight_fill_range(const struct qdqi_constant *w, bool narrow,
                       struct qdqi_params *p, struct qdq_error *err)
{
    if (!w->n || !p->n || !qdqi_format_has_signs(p->format) || qdqi_constant_is_fill(w))
        return QDQ_OK;
    float *whole = malloc(p->n * sizeof *whole);
    if (!whole)
        return qdqi_no_memory(err);
    memcpy(whole, p->scales, p->n * sizeof *whole);
    enum qdq_code code = narrow ? qdqi_weight_narrow(w, p, err) : QDQ_OK;
    if (!code)
        code = fill(w, narrow, whole, p, err);
    free(whole);
    return code;
}
