/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches the scale with the least squared error by trying candidates. The error of
 * each one is computed over all elements and exact except for the rounding of the sum.
 * Candidates that a bound shows not to be the best are left out, which does not change the
 * result: among equal errors the first one is taken, with bounds and without.
 */
#include "config.h"
#include "numbers/arithmetic/simd.h"
#include "graph/weights/approximate.h"
#include "graph/weights/elements.h"
#include "graph/weights/scales.h"

#include <math.h>

enum {
    PIECE = QDQI_ELEMENTS_PIECE,
    BLOCK = 256,           /* elements between two comparisons with the limit */
    LANES = 4,             /* sums that the compiler vectorizes */
    COARSE = 64,           /* first candidates: k / COARSE of the range */
    FINE = 16,             /* then steps of 1 / (COARSE * FINE) around the best one */
    WHOLE = COARSE * FINE, /* the share of the range as it is */
};

/* The elements of one scale, and what they become. */
struct channel {
    struct qdqi_elements elements;
    enum qdqi_dtype dtype;
    const struct qdqi_format_row *row;
    enum qdqi_format format;
    bool symmetric;
};

/* Computes the error over at most BLOCK elements. */
QDQI_LOOP double
squared_error_loop(const float *restrict x, size_t n, float scale,
                   struct qdqi_rounding r)
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

QDQI_VARIANTS(double, squared_error,
              (const float *x, size_t n, float scale, struct qdqi_rounding r),
              (x, n, scale, r))

/* Computes the error with a scale and zero point. Stops when it reaches the limit;
   the result is then at least the limit. */
static double
channel_error(struct channel *c, float scale, int32_t zero_point, double limit)
{
    struct qdqi_rounding r = qdqi_rounding_of(c->format, zero_point);
    double sum = 0;
    for (size_t from = 0; from < c->elements.n; from += PIECE) {
        size_t n = c->elements.n - from < PIECE ? c->elements.n - from : PIECE;
        qdqi_elements_gather(&c->elements, from, n);
        const float *x = c->elements.piece;
        for (size_t i = 0; i < n; i += BLOCK) {
            sum += squared_error(x + i, n - i < BLOCK ? n - i : BLOCK, scale, r);
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
    int share; /* of the original range, in 1 / WHOLE */
};

/* The range that belongs to a scale. */
struct extent {
    float scale;
    int32_t zero_point;
    double low, high;
    /* the lowest and the highest number that is not clipped, or beyond them: a share of the
       range has that share of both */
    double lowest, highest;
};

static struct extent
extent_of(const struct channel *c, float scale, int32_t zero_point)
{
    double high = (double)scale * ((double)c->row->highest - zero_point);
    double low = (double)scale * ((double)c->row->lowest - zero_point);
    /* the zero point of a share is rounded */
    double off = c->symmetric ? 0 : 0.51 * (double)scale;
    return (struct extent){scale, zero_point, c->symmetric ? -high : low,
                           high,  low - off,  high + off};
}

/* Returns the scale and the zero point of a share, without an error. */
static struct best
share_of(const struct channel *c, const struct extent *e, int share)
{
    double part = (double)share / WHOLE;
    struct best to = {e->scale, e->zero_point, 0, share};
    if (share < WHOLE)
        qdqi_range_params(c->format, c->symmetric, c->dtype, e->low * part,
                          e->high * part, &to.scale, &to.zero_point);
    return to;
}

/* --- elements whose errors are approximated -------------------------------- */

enum { GROUP = 24 }; /* coarse shares that are tried together */

struct candidates {
    size_t n;
    int shares[COARSE];
    double errors[COARSE];
};

/* Computes the scales of share_of(). It divides by the highest number what was multiplied by
   it, and neither is rounded, so that a product gives the same bits. */
QDQI_LOOP void
symmetric_loop(const struct extent *e, const struct qdqi_format_row *row,
               const int *shares, size_t n,
               struct qdqi_approximate_scales *restrict ret)
{
    for (size_t i = 0; i < n; i++) {
        ret->scales[i] = (float)((double)e->scale * ((double)shares[i] / WHOLE));
        ret->low[i] = row->lowest;
        ret->high[i] = row->highest;
    }
}

/* Does the same for ranges that are not symmetric, with the operations of
   qdqi_range_params(). */
QDQI_LOOP void
asymmetric_loop(const struct extent *e, const struct qdqi_format_row *row,
                const int *shares, size_t n,
                struct qdqi_approximate_scales *restrict ret)
{
    const double round = 0x1.8p52, low = (double)row->lowest,
                 high = (double)row->highest;
    for (size_t i = 0; i < n; i++) {
        double part = (double)shares[i] / WHOLE, min = e->low * part;
        double scale = (e->high * part - min) / (high - low);
        double zero_point = low - min / scale;
        zero_point = zero_point > low ? zero_point : low;
        zero_point = zero_point < high ? zero_point : high;
        zero_point = zero_point + round - round;
        ret->scales[i] = (float)scale;
        ret->low[i] = (float)(low - zero_point);
        ret->high[i] = (float)(high - zero_point);
    }
}

QDQI_VARIANTS(void, symmetric,
              (const struct extent *e, const struct qdqi_format_row *row,
               const int *shares, size_t n, struct qdqi_approximate_scales *ret),
              (e, row, shares, n, ret))
QDQI_VARIANTS(void, asymmetric,
              (const struct extent *e, const struct qdqi_format_row *row,
               const int *shares, size_t n, struct qdqi_approximate_scales *ret),
              (e, row, shares, n, ret))

/* Finds the scales of n candidates; the whole range can only be the first one. */
static void
find_scales(const struct channel *c, const struct extent *e, const int *shares,
            size_t n, struct qdqi_approximate_scales *ret)
{
    ret->n = n;
    (c->symmetric ? symmetric : asymmetric)(e, c->row, shares, n, ret);
    if (shares[0] == WHOLE) {
        ret->scales[0] = e->scale;
        ret->low[0] = c->row->lowest - (float)e->zero_point;
        ret->high[0] = c->row->highest - (float)e->zero_point;
    }
}

/* Approximates the errors of the candidates from number `first` on, at most
   QDQI_APPROXIMATE_SCALES, and returns the least upper bound of these and of `most`. */
static double
approximate(const struct channel *c, const struct extent *e,
            const struct qdqi_approximate *a, struct candidates *k, size_t first,
            double most)
{
    struct qdqi_approximate_scales scales;
    find_scales(c, e, k->shares + first, k->n - first, &scales);
    qdqi_approximate_errors(a, &scales, k->errors + first);
    double least = k->errors[first];
    for (size_t i = first; i < k->n; i++)
        least = k->errors[i] < least ? k->errors[i] : least;
    least = qdqi_approximate_most(a, least);
    return least < most ? least : most;
}

/* Returns the candidate with the least error, the first one of equal ones. `most` is the
   least upper bound. Errors are computed only if more than one may be the least. */
static struct best
least_of(struct channel *c, const struct extent *e, const struct qdqi_approximate *a,
         const struct candidates *k, double most)
{
    double limit = qdqi_approximate_limit(a, most);
    struct best best = {.error = (double)INFINITY};
    size_t first = 0, left = 0;
    for (size_t i = k->n; i-- > 0;)
        if (k->errors[i] <= limit) {
            first = i;
            left++;
        }
    if (left == 1)
        return share_of(c, e, k->shares[first]);
    for (size_t i = first; i < k->n; i++) {
        if (k->errors[i] > limit)
            continue;
        struct best tried = share_of(c, e, k->shares[i]);
        tried.error = channel_error(c, tried.scale, tried.zero_point, best.error);
        if (tried.error < best.error)
            best = tried;
    }
    return best;
}

/* Tries the coarse shares, the whole range first. Ends where the elements that are clipped
   by all further shares have a larger error than the best one. */
static struct best
try_coarse(struct channel *c, const struct extent *e, const struct qdqi_approximate *a)
{
    struct candidates k;
    double most = (double)INFINITY;
    k.n = 0;
    for (int share = COARSE; share > 0;) {
        size_t first = k.n;
        for (; share > 0 && k.n < first + GROUP; share--)
            k.shares[k.n++] = share * FINE;
        most = approximate(c, e, a, &k, first, most);
        double part = (double)share / COARSE;
        if (share > 0 &&
            qdqi_approximate_beyond(a, e->lowest * part, e->highest * part) > most)
            break;
    }
    return least_of(c, e, a, &k, most);
}

/* Tries the shares around one, which is the first one. */
static struct best
try_fine(struct channel *c, const struct extent *e, const struct qdqi_approximate *a,
         int around)
{
    struct candidates k = {.n = 1, .shares = {around}};
    for (int share = around + FINE - 1; share > around - FINE; share--)
        if (share != around && share < WHOLE)
            k.shares[k.n++] = share;
    return least_of(c, e, a, &k, approximate(c, e, a, &k, 0, (double)INFINITY));
}

/* Returns whether the errors of the channel, all of which is gathered, can be
   approximated. */
static bool
can_approximate(const struct channel *c, float scale, struct qdqi_approximate *a)
{
    return c->elements.n <= PIECE && c->row->fraction_bits == 0 && c->row->bits <= 8 &&
           c->dtype == QDQI_FLOAT32 &&
           qdqi_approximate_init(a, c->elements.piece, c->elements.n) &&
           scale > a->largest * 0x1p-10F;
}

/* --- others ---------------------------------------------------------------- */

/*
 * Returns a lower bound of the error of all ranges up to a share of the original one. The
 * largest element, which is the end of the original range, is then clipped, where it is
 * negative at the lowest integer. That is so for symmetric ranges of float32 whose scales
 * are not raised to a normal number.
 */
static double
clipping_error(const struct channel *c, const struct extent *e, int share)
{
    const float least = 1e-30F;
    double part = (double)share / WHOLE;
    double reach = e->high > -e->lowest ? e->high : -e->lowest;
    double rounding = e->high * 1e-6; /* of the ends of the ranges, and more */
    double clipped = e->high - reach * part - rounding;
    bool bounded = c->symmetric && c->dtype == QDQI_FLOAT32 && e->scale >= least;
    return bounded && clipped > 0 ? clipped * clipped * 0.999999 : 0;
}

/* Shares that are tried, in this order. */
struct shares {
    int first, last, step; /* step < 0 */
    int without;           /* is not tried */
};

static void
try_shares(struct channel *c, const struct extent *e, const struct shares *s,
           struct best *best)
{
    for (int share = s->first; share >= s->last; share += s->step) {
        if (clipping_error(c, e, share) > best->error)
            break;
        if (share == s->without || share >= WHOLE)
            continue;
        struct best tried = share_of(c, e, share);
        if (!(tried.scale < e->scale)) /* it is already the smallest normal number */
            continue;
        tried.error = channel_error(c, tried.scale, tried.zero_point, best->error);
        if (tried.error < best->error)
            *best = tried;
    }
}

static struct best
least_error(struct channel *c, float scale, int32_t zero_point)
{
    struct extent e = extent_of(c, scale, zero_point);
    struct qdqi_approximate a;
    if (c->elements.n <= PIECE)
        qdqi_elements_gather(&c->elements, 0, c->elements.n);
    if (can_approximate(c, scale, &a))
        return try_fine(c, &e, &a, try_coarse(c, &e, &a).share);
    struct best best = {scale, zero_point,
                        channel_error(c, scale, zero_point, (double)INFINITY), WHOLE};
    const struct shares coarse = {WHOLE - FINE, FINE, -FINE, 0};
    try_shares(c, &e, &coarse, &best);
    const struct shares fine = {best.share + FINE - 1, best.share - FINE + 1, -1,
                                best.share};
    try_shares(c, &e, &fine, &best);
    return best;
}

/* --- all of a weight ------------------------------------------------------ */

enum qdq_code
qdqi_weight_narrow(const struct qdqi_constant *w, struct qdqi_params *p,
                   struct qdq_error *err)
{
    struct channel c = {.dtype = w->dtype,
                        .row = qdqi_format_row((int)p->format),
                        .format = p->format,
                        .symmetric = qdqi_weight_is_symmetric(p->format)};
    size_t of = qdqi_constant_is_fill(w) ? 1 : p->n;
    if (!w->n || !p->n)
        return QDQ_OK;
    if (!qdqi_elements_open(&c.elements, w, p))
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n; i++) {
        struct best best = {p->scales[0], qdqi_zero_point(p, 0), 0, 0};
        if (i < of) {
            qdqi_elements_seek(&c.elements, i);
            best = least_error(&c, p->scales[i], qdqi_zero_point(p, i));
        }
        p->scales[i] = best.scale;
        if (p->zero_points)
            p->zero_points[i] = best.zero_point;
    }
    qdqi_elements_close(&c.elements);
    return QDQ_OK;
}
