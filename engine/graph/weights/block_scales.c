/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/block_scales.h"

#include "graph/weights/elements.h"

#include <float.h>
#include <math.h>

enum {
    LEAST_E8M0 = 1, /* 2^-126: smaller ones are no normal float32 */
    MOST_E8M0 = 254,
    LEAST_E4M3 = 1,
    MOST_E4M3 = 0x7e,
    BELOW = 7, /* float8 numbers that are tried below the nearest one, */
    ABOVE = 1, /* and above it */
};

static const struct qdqi_format_row *
e4m3(void)
{
    return qdqi_format_row(QDQI_TO_FLOAT8E4M3FN);
}

/* The elements of a weight, by the scale that they share. */
struct search {
    struct qdqi_elements e;
    struct qdqi_params *p;
    struct qdqi_rounding r;
};

static float
largest_of(struct search *s)
{
    float most = 0;
    for (size_t from = 0; from < s->e.n; from += QDQI_ELEMENTS_PIECE) {
        const size_t left = s->e.n - from;
        const size_t n = left < QDQI_ELEMENTS_PIECE ? left : QDQI_ELEMENTS_PIECE;
        qdqi_elements_gather(&s->e, from, n);
        for (size_t i = 0; i < n; i++)
            most = fabsf(s->e.piece[i]) > most ? fabsf(s->e.piece[i]) : most;
    }
    return most;
}

static double
error_of(struct search *s, float scale)
{
    double sum = 0;
    for (size_t from = 0; from < s->e.n; from += QDQI_ELEMENTS_PIECE) {
        const size_t left = s->e.n - from;
        const size_t n = left < QDQI_ELEMENTS_PIECE ? left : QDQI_ELEMENTS_PIECE;
        qdqi_elements_gather(&s->e, from, n);
        for (size_t i = 0; i < n; i++) {
            const float x = s->e.piece[i];
            const double off = (double)x - (double)qdqi_fake_number(x, scale, s->r);
            sum += off * off;
        }
    }
    return sum;
}

/* Returns the scale that a code stands for. */
static float
scale_of(const struct qdqi_params *p, int code)
{
    if (qdqi_format_row((int)p->format)->scales == QDQI_SCALES_E8M0)
        return ldexpf(1, code - 127);
    const struct qdqi_format_row *row = e4m3();
    return qdqi_float_number((uint32_t)code, row->bits, row->fraction_bits,
                             row->min_exponent) *
           p->tensor_scale;
}

static int
limited(int code, int least, int most)
{
    return code < least ? least : code > most ? most : code;
}

/* Gives scale i one of the codes from `first` to `last`: the one with the least error, or
   `nearest` where several have it. */
static void
choose(struct search *s, size_t i, int nearest, int first, int last)
{
    struct qdqi_params *p = s->p;
    int best = nearest;
    double least = first < last ? error_of(s, scale_of(p, nearest)) : 0;
    for (int code = first; first < last && code <= last; code++) {
        const double error = error_of(s, scale_of(p, code));
        if (error < least) {
            least = error;
            best = code;
        }
    }
    p->scale_codes[i] = (uint8_t)best;
    p->scales[i] = scale_of(p, best);
}

static void
choose_e8m0(struct search *s, size_t i, float amax, bool narrow)
{
    const int most = ilogbf(s->r.high);
    const int code = limited(ilogbf(amax) - most + 127, LEAST_E8M0, MOST_E8M0);
    choose(s, i, code, code, narrow ? limited(code + 1, LEAST_E8M0, MOST_E8M0) : code);
}

static void
choose_e4m3(struct search *s, size_t i, float amax, bool narrow)
{
    const struct qdqi_format_row *row = e4m3();
    const float nearest =
        qdqi_rounded(amax / s->r.high, s->p->tensor_scale, row->highest,
                     row->fraction_bits, row->min_exponent);
    const int code = limited(
        qdqi_float_code(nearest, row->bits, row->fraction_bits, row->min_exponent),
        LEAST_E4M3, MOST_E4M3);
    choose(s, i, code, narrow ? limited(code - BELOW, LEAST_E4M3, MOST_E4M3) : code,
           narrow ? limited(code + ABOVE, LEAST_E4M3, MOST_E4M3) : code);
}

/* Sets the scale of the whole weight. */
static void
find_tensor_scale(struct search *s)
{
    float most = 0;
    for (size_t i = 0; i < s->p->n; i++) {
        qdqi_elements_seek(&s->e, i);
        const float here = largest_of(s);
        most = here > most ? here : most;
    }
    const float scale = most / (e4m3()->highest * s->r.high);
    s->p->tensor_scale = most == 0 ? 1 : scale < FLT_MIN ? FLT_MIN : scale;
}

bool
qdqi_block_scales_new(struct qdqi_arena *arena, struct qdqi_params *p)
{
    p->scale_codes = qdqi_arena_array(arena, p->n, sizeof *p->scale_codes);
    return p->scale_codes != NULL;
}

enum qdq_code
qdqi_block_scales_find(const struct qdqi_constant *w, bool narrow,
                       struct qdqi_params *p, struct qdq_error *err)
{
    struct search s = {.p = p, .r = qdqi_rounding_of(p->format, 0)};
    const bool powers = qdqi_format_row((int)p->format)->scales == QDQI_SCALES_E8M0;
    if (w->n == 0)
        return QDQ_OK;
    if (!qdqi_elements_open(&s.e, w, p))
        return qdqi_no_memory(err);
    if (!powers)
        find_tensor_scale(&s);
    for (size_t i = 0; i < p->n; i++) {
        qdqi_elements_seek(&s.e, i);
        float amax = largest_of(&s);
        amax = amax > 0 ? amax : p->scales[i] * s.r.high;
        (powers ? choose_e8m0 : choose_e4m3)(&s, i, amax, narrow);
    }
    qdqi_elements_close(&s.e);
    return QDQ_OK;
}
