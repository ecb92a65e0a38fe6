/* SPDX-License-Identifier: Apache-2.0 */
/* The scale with the least squared error, by trying: each candidate's error is that of
   all elements, exact but for the rounding of the sum. */
#include "config.h"
#include "number/half.h"
#include "number/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 1 << 18, /* elements that are gathered at a time */
    BLOCK = 256,     /* elements between two looks at the limit */
    LANES = 4,       /* sums side by side, for the compiler to vectorize */
    COARSE = 64,     /* candidates: k / COARSE of the scale, then around the best one */
    FINE = 16,       /* in steps of 1 / (COARSE * FINE) */
};

/* A channel's elements: runs of `inner`, from the start of one to the next `step`. */
struct channel {
    enum qdqi_dtype dtype;
    const uint8_t *bytes;
    size_t n, inner, step;
    float *piece;    /* of the elements that were gathered last */
    size_t gathered; /* the index of the first; SIZE_MAX: none so far */
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

/* Of at most BLOCK elements. */
static double
squared_error(const float *x, size_t n, float scale)
{
    float back[BLOCK];
    double sums[LANES] = {0}, d[LANES], sum = 0;
    size_t i = 0;
    for (size_t k = 0; k < n; k++)
        back[k] = qdqi_fake_integer(x[k], scale, -QDQI_INT8_MAX - 1, QDQI_INT8_MAX);
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

/* The channel's error; once it has reached the limit, only that it has. */
static double
channel_error(struct channel *c, float scale, double limit)
{
    double sum = 0;
    for (size_t from = 0; from < c->n; from += PIECE) {
        size_t n = c->n - from < PIECE ? c->n - from : PIECE;
        gather(c, from, n);
        for (size_t i = 0; i < n; i += BLOCK) {
            sum += squared_error(c->piece + i, n - i < BLOCK ? n - i : BLOCK, scale);
            if (!(sum < limit))
                return sum;
        }
    }
    return sum;
}

struct best {
    float scale;
    double error;
    int share; /* of the scale that was there, in 1 / (COARSE * FINE) */
};

static void
try_share(struct channel *c, float scale, int share, struct best *best)
{
    double part = (double)share / (COARSE * FINE);
    float candidate = qdqi_scale_of(c->dtype, (double)scale * QDQI_INT8_MAX * part);
    if (!(candidate < scale)) /* the smallest that there is */
        return;
    double error = channel_error(c, candidate, best->error);
    if (error < best->error)
        *best = (struct best){candidate, error, share};
}

static float
least_error(struct channel *c, float scale)
{
    struct best best = {scale, channel_error(c, scale, (double)INFINITY),
                        COARSE * FINE};
    for (int k = COARSE - 1; k > 0; k--)
        try_share(c, scale, k * FINE, &best);
    int middle = best.share;
    for (int k = FINE - 1; k > -FINE; k--)
        if (k != 0 && middle + k < COARSE * FINE)
            try_share(c, scale, middle + k, &best);
    return best.scale;
}

enum qdq_code
qdqi_weight_narrow(const struct qdqi_constant *w, int axis, float *scales, size_t n,
                   struct qdq_error *err)
{
    bool fill = qdqi_constant_is_fill(w);
    size_t of = fill ? 1 : n; /* a fill's channels are all alike */
    struct channel c = {.dtype = w->dtype,
                        .n = of && w->n ? (fill ? 1 : w->n / of) : 0};
    if (!c.n)
        return QDQ_OK;
    c.inner = of > 1 ? qdqi_weight_inner(w, axis) : c.n;
    c.step = c.inner * of;
    c.piece = malloc((c.n < PIECE ? c.n : PIECE) * sizeof *c.piece);
    if (!c.piece)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < of; i++) {
        c.bytes = w->bytes + i * c.inner * qdqi_dtype_size(w->dtype);
        c.gathered = SIZE_MAX;
        scales[i] = least_error(&c, scales[i]);
    }
    for (size_t i = of; i < n; i++)
        scales[i] = scales[0];
    free(c.piece);
    return QDQ_OK;
}
