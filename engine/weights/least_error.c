/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches the scale with the least squared error by trying candidates. The error of
 * each one is computed over all elements and exact except for the rounding of the sum.
 * Candidates that a bound shows not to be the best are left out, which does not change the
 * result: among equal errors the first one is taken, with bounds and without.
 */
#include "config.h"
#include "number/half.h"
#include "weights/approximate.h"
#include "weights/scales.h"
#include "weights/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 1 << 18, /* elements that are gathered together */
    BLOCK = 256,     /* elements between two comparisons with the limit */
    LANES = 4,       /* sums that the compiler vectorizes */
    COARSE = 64,     /* first candidates: k / COARSE of the range */
    FINE = 16,       /* then steps of 1 / (COARSE * FINE) around the best one */
};

/* The elements of one scale: runs of `inner` elements, whose beginnings are `step`
   apart. */
struct channel {
    enum qdqi_dtype dtype;
    enum qdqi_format format;
    bool symmetric;
    const uint8_t *bytes;
    size_t n, inner, step;
    float *piece;    /* the elements that were gathered last */
    size_t gathered; /* index of the first of them; SIZE_MAX: there are none yet */
};

static void
gather(struct channel *c, size_t from, size_t n)
{
    if (c->gathered == from)
        return;
    c->gathered = from;
    for (size_t i = 0, count; i < n; i += count) {
        size_t run = (from + i) / c->inner, at = (from + i) % c->inner;
        count = c->inner - at < n - i ? c->inner - at : n - i;
        qdqi_load_floats(c->piece + i, c->dtype,
                         c->bytes + (run * c->step + at) * qdqi_dtype_size(c->dtype),
                         count);
    }
}

/* Computes the error over at most BLOCK elements. */
static double
squared_error(const float *x, size_t n, float scale, struct qdqi_rounding r)
{
    float back[BLOCK];
    double sums[LANES] = {0}, d[LANES], sum = 0;
    size_t i = 0;
    if (r.fraction_bits == 0)
        for (size_t k = 0; k < n; k++)
            back[k] = qdqi_fake_integer(x[k], scale, r.low, r.high);
    else
        for (size_t k = 0; k < n; k++)
            back[k] = qdqi_fake_number(x[k], scale, r);
    for (; i + LANES <= n; i += LANES) {
        for (size_t k = 0; k < LANES; k++)
            d[k] = (double)x[i + k] - (double)back[i + k];
        for (size_t k = 0; k < LANES; k++)
            sums[k] += d[k] * d[k];
    }
    for (; i < n; i++) {
        d[0] = (double)x[i] - (double)back[i];
        sum += d[0] * d[0];
    }
    for (size_t k = 0; k < LANES; k++)
        sum += sums[k];
    return sum;
}

/* Computes the error with a scale and zero point. Stops when it reaches the limit;
   the result is then at least the limit. */
static double
channel_error(struct channel *c, float scale, int32_t zero_point, double limit)
{
    struct qdqi_rounding r = qdqi_rounding_of(c->format, zero_point);
    double sum = 0;
    for (size_t from = 0; from < c->n; from += PIECE) {
        size_t n = c->n - from < PIECE ? c->n - from : PIECE;
        gather(c, from, n);
        for (size_t i = 0; i < n; i += BLOCK) {
            sum += squared_error(c->piece + i, n - i < BLOCK ? n - i : BLOCK, scale, r);
            if (!(sum < limit))
                return sum;
        }
    }
    return sum;
}

struct best {
    float scale;
    int32_t zero_point;
    double error;
    int share; /* share of the original range, in 1 / (COARSE * FINE) */
};

/* The range that belongs to a scale. */
struct extent {
    float scale;
    double low, high;
    /* the end of what is not clipped, positive or negative; 0: clipping_error() has no
       bound for the range */
    double reach;
};

static struct extent
extent_of(const struct channel *c, float scale, int32_t zero_point)
{
    const float least = 1e-30F; /* above it scales are not raised to a normal number */
    const struct qdqi_format_row *row = qdqi_format_row((int)c->format);
    double high = (double)scale * ((double)row->highest - zero_point);
    double low = (double)scale * ((double)row->lowest - zero_point);
    bool bounded = c->symmetric && c->dtype == QDQI_FLOAT32 && scale >= least;
    return (struct extent){scale, c->symmetric ? -high : low, high,
                           !bounded      ? 0
                           : high > -low ? high
                                         : -low};
}

static void
try_share(struct channel *c, const struct extent *e, int share, struct best *best)
{
    double part = (double)share / (COARSE * FINE);
    struct best tried = {.share = share};
    qdqi_range_params(c->format, c->symmetric, c->dtype, e->low * part, e->high * part,
                      &tried.scale, &tried.zero_point);
    if (!(tried.scale < e->scale)) /* the scale is already the smallest normal number */
        return;
    tried.error = channel_error(c, tried.scale, tried.zero_point, best->error);
    if (tried.error < best->error)
        *best = tried;
}

/*
 * Returns a lower bound of the error of all ranges up to a share of the original one. The
 * largest element, which is the end of the original range, is then clipped, where it is
 * negative at the lowest integer.
 */
static double
clipping_error(const struct extent *e, int share)
{
    double part = (double)share / (COARSE * FINE);
    double rounding = e->high * 1e-6; /* of the ends of the ranges, and more */
    double clipped = e->high - e->reach * part - rounding;
    return e->reach > 0 && clipped > 0 ? clipped * clipped * 0.999999 : 0;
}

/* Shares that are tried, in this order. */
struct shares {
    int first, last, step; /* step < 0 */
    int without;           /* is not tried */
};

enum { MOST_SHARES = COARSE > 2 * FINE ? COARSE : 2 * FINE };

/* The candidates of a channel that is gathered whole. */
struct candidates {
    size_t n;
    int shares[MOST_SHARES];
    struct qdqi_approximate_scale scales[MOST_SHARES];
    double low[MOST_SHARES], high[MOST_SHARES];
};

/* Fills in the scale of a candidate. A symmetric one of float32 is multiplied, which is
   the scale that try_share() divides out but for its last bit. */
static void
add_candidate(const struct channel *c, const struct extent *e, int share,
              struct candidates *to)
{
    double part = (double)share / (COARSE * FINE);
    int32_t zero_point = 0;
    float scale = (float)((double)e->scale * part);
    if (!c->symmetric || c->dtype != QDQI_FLOAT32)
        qdqi_range_params(c->format, c->symmetric, c->dtype, e->low * part,
                          e->high * part, &scale, &zero_point);
    struct qdqi_rounding r = qdqi_rounding_of(c->format, zero_point);
    to->shares[to->n] = share;
    to->scales[to->n++] = (struct qdqi_approximate_scale){scale, r.low, r.high};
}

/* Tries the candidates that may have the least error of them all. */
static void
try_candidates(struct channel *c, const struct extent *e,
               const struct qdqi_approximate *a, const struct shares *s,
               struct best *best)
{
    struct candidates k = {.n = 0};
    double least = best->error;
    for (int share = s->first; share >= s->last; share += s->step) {
        if (clipping_error(e, share) > least)
            break;
        if (share == s->without || share >= COARSE * FINE)
            continue;
        add_candidate(c, e, share, &k);
    }
    qdqi_approximate_errors(a, k.scales, k.n, k.low, k.high);
    for (size_t i = 0; i < k.n; i++)
        least = k.high[i] < least ? k.high[i] : least;
    for (size_t i = 0; i < k.n; i++)
        if (k.low[i] <= least)
            try_share(c, e, k.shares[i], best);
}

static void
try_shares(struct channel *c, const struct extent *e, const struct qdqi_approximate *a,
           const struct shares *s, struct best *best)
{
    if (a) {
        try_candidates(c, e, a, s, best);
        return;
    }
    for (int share = s->first; share >= s->last; share += s->step) {
        if (clipping_error(e, share) > best->error)
            break;
        if (share != s->without && share < COARSE * FINE)
            try_share(c, e, share, best);
    }
}

/* Returns whether the errors of the channel, all of which is gathered, can be
   approximated. */
static bool
can_approximate(const struct channel *c, float scale, struct qdqi_approximate *a)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)c->format);
    return c->n <= QDQI_APPROXIMATE_MAX && row->fraction_bits == 0 && row->bits <= 8 &&
           qdqi_approximate_init(a, c->piece, c->n) && scale > a->largest * 0x1p-10F &&
           c->dtype == QDQI_FLOAT32;
}

static struct best
least_error(struct channel *c, float scale, int32_t zero_point)
{
    struct extent e = extent_of(c, scale, zero_point);
    struct best best = {scale, zero_point,
                        channel_error(c, scale, zero_point, (double)INFINITY),
                        COARSE * FINE};
    struct qdqi_approximate elements;
    const struct qdqi_approximate *a =
        can_approximate(c, scale, &elements) ? &elements : NULL;
    const struct shares coarse = {(COARSE - 1) * FINE, FINE, -FINE, 0};
    try_shares(c, &e, a, &coarse, &best);
    const struct shares fine = {best.share + FINE - 1, best.share - FINE + 1, -1,
                                best.share};
    try_shares(c, &e, a, &fine, &best);
    return best;
}

/* --- all of a weight ------------------------------------------------------ */

/* Finds the elements of scale i: those of a channel, or all, or the single stored
   element of a fill. */
static void
seek_channel(struct channel *c, const struct qdqi_constant *w,
             const struct qdqi_params *p, size_t i)
{
    bool fill = qdqi_constant_is_fill(w);
    size_t of = fill ? 1 : p->n; /* all channels of a fill are equal */
    c->n = fill ? 1 : w->n / of;
    c->inner = of > 1 ? qdqi_weight_inner(w, p->axis) : c->n;
    c->step = c->inner * of;
    c->bytes = w->bytes + (fill ? 0 : i) * c->inner * qdqi_dtype_size((int)w->dtype);
}

static void
seek_block(struct channel *c, const struct qdqi_constant *w,
           const struct qdqi_params *p, size_t i)
{
    size_t at = 0, elements = 1, n = 1, step = 1;
    for (size_t k = w->rank; k-- > 0;) {
        size_t dim = (size_t)w->dims[k], n_scales = qdqi_scale_dim(w, p, k);
        size_t index = i % n_scales;
        size_t stride = w->strides ? (size_t)w->strides[k] : elements;
        i /= n_scales;
        elements *= dim;
        if ((int)k == p->axis) {
            index *= (size_t)p->block;
            n = dim - index < (size_t)p->block ? dim - index : (size_t)p->block;
            step = stride;
        }
        at += index * stride;
    }
    c->n = n;
    c->inner = step == 1 ? n : 1;
    c->step = step;
    c->bytes = w->bytes + at * qdqi_dtype_size((int)w->dtype);
}

enum qdq_code
qdqi_weight_narrow(const struct qdqi_constant *w, struct qdqi_params *p,
                   struct qdq_error *err)
{
    bool blocks = p->block > 0 && !qdqi_constant_is_fill(w);
    struct channel c = {.dtype = w->dtype,
                        .format = p->format,
                        .symmetric = qdqi_weight_is_symmetric(p->format)};
    size_t of = qdqi_constant_is_fill(w) ? 1 : p->n;
    if (!w->n || !p->n)
        return QDQ_OK;
    (blocks ? seek_block : seek_channel)(&c, w, p, 0);
    c.piece = malloc((c.n < PIECE ? c.n : PIECE) * sizeof *c.piece);
    if (!c.piece)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n; i++) {
        if (i < of) {
            (blocks ? seek_block : seek_channel)(&c, w, p, i);
            c.gathered = SIZE_MAX;
        }
        struct best best =
            i < of ? least_error(&c, p->scales[i], qdqi_zero_point(p, i))
                   : (struct best){p->scales[0], qdqi_zero_point(p, 0), 0, 0};
        p->scales[i] = best.scale;
        if (p->zero_points)
            p->zero_points[i] = best.zero_point;
    }
    free(c.piece);
    return QDQ_OK;
}
