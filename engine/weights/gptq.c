/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "weights/gptq.h"

#include "base/arena.h"
#include "number/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PANEL = 8,   /* outputs that are rounded together */
    ROUNDS = 3,  /* of scales and coordinate descent */
    PASSES = 5,  /* of coordinate descent in a round, at most */
    SHARES = 71, /* of the largest scale that are tried, down to 0.30 */
};

static const double DAMPING = 0.01; /* of the mean of the diagonal */

/* The elements of a row by the scale that they share: which ones do is the same for every
   output. */
struct shared {
    size_t n;      /* scales */
    size_t *begin; /* [n + 1]: where those of scale i begin in `members` */
    size_t *members;
};

/* One block of the moment, its rows in the order in which they are rounded. */
struct block {
    const struct qdqi_gptq *r;
    struct shared shared;
    size_t first, n; /* elements of a row of the weight */
    size_t *order;   /* place -> element, relative to `first` */
    size_t *places;  /* the way back */
    double *c;       /* [n][n] in that order, without damping */
    double *factor; /* [n][n]: how an error at row i moves the target of column j > i */
    double *moved;  /* [n][PANEL] */
    double *gradient; /* [n]: C times the error of one output */
    double *scratch;  /* [n][n] */
};

/* --- one element ---------------------------------------------------------- */

static size_t
element(const struct qdqi_gptq *r, size_t output, size_t i)
{
    return output * r->row + i * r->column;
}

static int32_t
zero_point(const struct qdqi_gptq *r, size_t at)
{
    return r->zero_points ? r->zero_points[r->scale_of[at]] : 0;
}

static double
scale(const struct qdqi_gptq *r, size_t at)
{
    return (double)r->scales[r->scale_of[at]];
}

/* Returns the number that the integer at `at` stands for. */
static double
value(const struct qdqi_gptq *r, size_t at)
{
    return (r->integers[at] - zero_point(r, at)) * scale(r, at);
}

static int16_t
nearest(const struct qdqi_gptq *r, size_t at, double x)
{
    double q = rint(x / scale(r, at)) + zero_point(r, at);
    q = q < r->lowest ? r->lowest : q > r->highest ? r->highest : q;
    return (int16_t)q;
}

void
qdqi_round_nearest(const struct qdqi_gptq *r)
{
    for (size_t n = 0; n < r->outputs; n++)
        for (size_t i = 0; i < r->moment->k; i++) {
            size_t at = element(r, n, i);
            r->integers[at] = nearest(r, at, (double)r->weight[at]);
        }
}

/* --- the factor ----------------------------------------------------------- */

typedef double doubles4 __attribute__((vector_size(32), aligned(8)));

QDQI_LOOP double
dot_loop(const double *a, const double *b, size_t n)
{
    doubles4 sum[4] = {0}, x, y;
    size_t i = 0;
    double total = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t k = 0; k < 4; k++) {
            memcpy(&x, a + i + 4 * k, sizeof x);
            memcpy(&y, b + i + 4 * k, sizeof y);
            sum[k] += x * y;
        }
    for (; i < n; i++)
        total += a[i] * b[i];
    sum[0] += sum[1] + sum[2] + sum[3];
    return total + sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3];
}

QDQI_AVX2 static double
dot_avx2(const double *a, const double *b, size_t n)
{
    return dot_loop(a, b, n);
}

static double
dot(const double *a, const double *b, size_t n)
{
    return qdqi_has_avx2() ? dot_avx2(a, b, n) : dot_loop(a, b, n);
}

/*
 * Writes to the factor the upper triangular R with C + damping = R R^T, from the last
 * column to the first. Returns false when the matrix is not positive definite.
 */
static bool
factorize(struct block *b)
{
    size_t n = b->n;
    double mean = 0;
    for (size_t i = 0; i < n; i++)
        mean += b->c[i * n + i] / (double)n;
    if (!(mean > 0) || !isfinite(mean))
        return false;
    for (size_t j = n; j-- > 0;) {
        double *to = b->factor;
        const double *row = to + j * n + j + 1;
        double left = b->c[j * n + j] + DAMPING * mean - dot(row, row, n - j - 1);
        if (!(left > 0))
            return false;
        double root = sqrt(left);
        to[j * n + j] = root;
        for (size_t i = 0; i < j; i++)
            to[i * n + j] =
                (b->c[i * n + j] - dot(to + i * n + j + 1, row, n - j - 1)) / root;
    }
    return true;
}

/* |R^T e|^2 is the sum over j of (R_jj (e_j + sum over i < j of R_ij / R_jj e_i))^2:
   divides each column by its diagonal. */
static void
divide_columns(struct block *b)
{
    size_t n = b->n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            b->factor[i * n + j] /= b->factor[j * n + j];
}

/* --- rounding one after the other ----------------------------------------- */

QDQI_LOOP void
move_loop(const double *restrict factor, const double *restrict error,
          double *restrict moved, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t p = 0; p < PANEL; p++)
            moved[j * PANEL + p] += factor[j] * error[p];
}

QDQI_AVX2 static void
move_avx2(const double *factor, const double *error, double *moved, size_t n)
{
    move_loop(factor, error, moved, n);
}

static void
move(const double *factor, const double *error, double *moved, size_t n)
{
    if (qdqi_has_avx2())
        move_avx2(factor, error, moved, n);
    else
        move_loop(factor, error, moved, n);
}

/* Rounds `wide` outputs from `output` on: each element goes to the integer that is
   nearest to itself and what the errors before it ask for. */
static void
round_panel(struct block *b, size_t output, size_t wide)
{
    const struct qdqi_gptq *r = b->r;
    double error[PANEL] = {0};
    memset(b->moved, 0, b->n * PANEL * sizeof *b->moved);
    for (size_t i = 0; i < b->n; i++) {
        for (size_t p = 0; p < wide; p++) {
            size_t at = element(r, output + p, b->first + b->order[i]);
            double w = (double)r->weight[at];
            r->integers[at] = nearest(r, at, w + b->moved[i * PANEL + p]);
            error[p] = w - value(r, at);
        }
        move(b->factor + i * b->n + i + 1, error, b->moved + (i + 1) * PANEL,
             b->n - i - 1);
    }
}

/* --- refinement ------------------------------------------------------------ */

static size_t
at_place(const struct block *b, size_t output, size_t i)
{
    return element(b->r, output, b->first + b->order[i]);
}

QDQI_LOOP void
add_loop(double *restrict to, const double *restrict from, double by, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i] * by;
}

QDQI_AVX2 static void
add_avx2(double *to, const double *from, double by, size_t n)
{
    add_loop(to, from, by, n);
}

static void
add(double *to, const double *from, double by, size_t n)
{
    if (qdqi_has_avx2())
        add_avx2(to, from, by, n);
    else
        add_loop(to, from, by, n);
}

/* Computes C times the error of an output. */
static void
compute_gradient(struct block *b, size_t output)
{
    memset(b->gradient, 0, b->n * sizeof *b->gradient);
    for (size_t i = 0; i < b->n; i++) {
        size_t at = at_place(b, output, i);
        add(b->gradient, b->c + i * b->n, (double)b->r->weight[at] - value(b->r, at),
            b->n);
    }
}

/* Moves each integer to where the error is least while the others stay. Returns whether
   one moved. */
static bool
descend(struct block *b, size_t output)
{
    const struct qdqi_gptq *r = b->r;
    bool moved = false;
    for (size_t i = 0; i < b->n; i++) {
        size_t at = at_place(b, output, i);
        double curve = b->c[i * b->n + i];
        if (!(curve > 0))
            continue;
        double before = value(r, at);
        int16_t q = nearest(r, at, before + b->gradient[i] / curve);
        if (q == r->integers[at])
            continue;
        r->integers[at] = q;
        add(b->gradient, b->c + i * b->n, before - value(r, at), b->n);
        moved = true;
    }
    return moved;
}

/* Gives scale i the value with which the error is least while the integers stay. */
static void
fit_scale(struct block *b, size_t output, size_t i)
{
    const struct qdqi_gptq *r = b->r;
    const size_t *members = b->shared.members + b->shared.begin[i];
    size_t n = b->shared.begin[i + 1] - b->shared.begin[i];
    uint32_t which = r->scale_of[element(r, output, members[0])];
    double *product = b->moved; /* C q */
    double top = 0, bottom = 0;
    memset(product, 0, b->n * sizeof *product);
    for (size_t k = 0; k < n; k++) {
        size_t at = element(r, output, members[k]), place = b->places[members[k]];
        int32_t q = r->integers[at] - zero_point(r, at);
        add(product, b->c + place * b->n, q, b->n);
        top += q * b->gradient[place];
    }
    for (size_t k = 0; k < n; k++) {
        size_t at = element(r, output, members[k]);
        bottom +=
            (r->integers[at] - zero_point(r, at)) * product[b->places[members[k]]];
    }
    float before = r->scales[which];
    float after = (float)((double)before + (bottom > 0 ? top / bottom : 0));
    if (!isnormal(after) || after < before / 4 || after > before * 4)
        return;
    r->scales[which] = after;
    add(b->gradient, product, (double)before - (double)after, b->n);
}

static void
refine(struct block *b, size_t output)
{
    bool whole = b->n == b->r->moment->k;
    for (int round = 0; round < ROUNDS; round++) {
        compute_gradient(b, output);
        for (size_t i = 0; b->r->own_scales && whole && i < b->shared.n; i++)
            fit_scale(b, output, i);
        for (int pass = 0; pass < PASSES && descend(b, output); pass++)
            ;
    }
}

/* --- scales ---------------------------------------------------------------- */

/* Returns the sum over some elements of an output of C_kk (w - q)^2. */
static double
weighted_error(const struct qdqi_gptq *r, const double *diagonal, size_t output,
               const size_t *members, size_t n, double s)
{
    double total = 0;
    for (size_t k = 0; k < n; k++) {
        size_t at = element(r, output, members[k]);
        double w = (double)r->weight[at], low = r->lowest - zero_point(r, at),
               high = r->highest - zero_point(r, at), q = rint(w / s);
        q = q < low ? low : q > high ? high : q;
        total += diagonal[members[k]] * (w - q * s) * (w - q * s);
    }
    return total;
}

/* Gives a scale the share of it with which that error is least. */
static void
narrow(const struct block *b, const double *diagonal, size_t output, size_t i)
{
    const struct qdqi_gptq *r = b->r;
    const size_t *members = b->shared.members + b->shared.begin[i];
    size_t n = b->shared.begin[i + 1] - b->shared.begin[i];
    float *s = &r->scales[r->scale_of[element(r, output, members[0])]];
    double most = (double)*s, least = INFINITY;
    for (int k = 0; k < SHARES; k++) {
        float tried = (float)(most * (1 - 0.01 * k));
        double error = weighted_error(r, diagonal, output, members, n, (double)tried);
        if (isnormal(tried) && error < least) {
            least = error;
            *s = tried;
        }
    }
}

static void
narrow_scales(const struct block *b, const double *diagonal)
{
    for (size_t output = 0; output < b->r->outputs; output++)
        for (size_t i = 0; i < b->shared.n; i++)
            narrow(b, diagonal, output, i);
}

struct member {
    uint32_t scale;
    size_t element;
};

static int
by_scale(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->scale != y->scale)
        return x->scale < y->scale ? -1 : 1;
    return x->element < y->element ? -1 : x->element > y->element;
}

/* Lists the elements of a row by their scales. False when out of memory. */
static bool
find_shared(const struct qdqi_gptq *r, struct shared *to)
{
    size_t k = r->moment->k;
    struct member *rows = calloc(k, sizeof *rows);
    to->begin = calloc(k + 1, sizeof *to->begin);
    to->members = calloc(k, sizeof *to->members);
    bool ok = rows && to->begin && to->members;
    for (size_t i = 0; ok && i < k; i++)
        rows[i] = (struct member){r->scale_of[element(r, 0, i)], i};
    if (ok)
        qsort(rows, k, sizeof *rows, by_scale);
    for (size_t i = 0; ok && i < k; i++) {
        if (i == 0 || rows[i].scale != rows[i - 1].scale)
            to->begin[to->n++] = i;
        to->members[i] = rows[i].element;
    }
    if (ok)
        to->begin[to->n] = k;
    free(rows);
    return ok;
}

/* --- blocks ---------------------------------------------------------------- */

struct rank {
    double diagonal;
    size_t element;
};

static int
by_diagonal(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->diagonal != y->diagonal)
        return x->diagonal < y->diagonal ? 1 : -1;
    return x->element < y->element ? -1 : x->element > y->element;
}

/* Writes block `which` of the moment to b->c, in the order of descending diagonal. */
static void
load_block(struct block *b, size_t which, struct rank *ranks)
{
    const struct qdqi_moment *m = b->r->moment;
    qdqi_moment_matrix(m, which, b->r->centred, b->scratch, &b->n);
    b->first = which * m->block;
    size_t n = b->n;
    for (size_t i = 0; i < n; i++)
        ranks[i] = (struct rank){b->scratch[i * n + i], i};
    qsort(ranks, n, sizeof *ranks, by_diagonal);
    for (size_t i = 0; i < n; i++)
        b->places[b->order[i] = ranks[i].element] = i;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            b->c[i * n + j] = b->scratch[b->order[i] * n + b->order[j]];
}

static void
round_block(struct block *b)
{
    const struct qdqi_gptq *r = b->r;
    divide_columns(b);
    for (size_t n = 0; n < r->outputs; n += PANEL)
        round_panel(b, n, r->outputs - n < PANEL ? r->outputs - n : PANEL);
    for (size_t n = 0; r->refine && n < r->outputs; n++)
        refine(b, n);
}

/* Computes the diagonal of the whole moment. */
static void
read_diagonal(struct block *b, double *to)
{
    const struct qdqi_moment *m = b->r->moment;
    for (size_t i = 0; i * m->block < m->k; i++) {
        qdqi_moment_matrix(m, i, b->r->centred, b->scratch, &b->n);
        for (size_t k = 0; k < b->n; k++)
            to[i * m->block + k] = b->scratch[k * b->n + k];
    }
}

static bool
allocate(struct block *b, double **diagonal, struct rank **ranks)
{
    size_t n = b->r->moment->block;
    b->order = calloc(n, sizeof *b->order);
    b->places = calloc(n, sizeof *b->places);
    b->c = calloc(n, n * sizeof *b->c);
    b->factor = calloc(n, n * sizeof *b->factor);
    b->scratch = calloc(n, n * sizeof *b->scratch);
    b->moved = calloc(n, PANEL * sizeof *b->moved);
    b->gradient = calloc(n, sizeof *b->gradient);
    *diagonal = calloc(b->r->moment->k, sizeof **diagonal);
    *ranks = calloc(n, sizeof **ranks);
    return find_shared(b->r, &b->shared) && b->order && b->places && b->c &&
           b->factor && b->scratch && b->moved && b->gradient && *diagonal && *ranks;
}

enum qdq_code
qdqi_round_gptq(const struct qdqi_gptq *r, bool *ret_degenerate, struct qdq_error *err)
{
    struct block b = {.r = r};
    double *diagonal = NULL;
    struct rank *ranks = NULL;
    enum qdq_code code = QDQ_OK;
    *ret_degenerate = false;
    if (!allocate(&b, &diagonal, &ranks)) {
        code = qdqi_no_memory(err);
        goto out;
    }
    read_diagonal(&b, diagonal);
    if (r->refine && r->own_scales)
        narrow_scales(&b, diagonal);
    for (size_t i = 0; i * r->moment->block < r->moment->k; i++) {
        load_block(&b, i, ranks);
        if (!factorize(&b)) {
            qdqi_round_nearest(r);
            *ret_degenerate = true;
            break;
        }
        round_block(&b);
    }
out:
    free(b.shared.begin);
    free(b.shared.members);
    free(b.order);
    free(b.places);
    free(b.c);
    free(b.factor);
    free(b.scratch);
    free(b.moved);
    free(b.gradient);
    free(diagonal);
    free(ranks);
    return code;
}
