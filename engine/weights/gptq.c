/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "weights/gptq.h"

#include "base/arena.h"
#include "number/simd.h"
#include "weights/updates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEP =
        QDQI_AT_ONCE, /* elements of a row that are rounded before the rest is told */
    ROUNDS = 3,       /* of scales and coordinate descent */
    PASSES = 5,       /* of coordinate descent in a round, at most */
    SHARES = 71,      /* of the largest scale that are tried, down to 0.30 */
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
    size_t ld;       /* elements from one row of a matrix to the next, >= n */
    size_t *order;   /* place -> element, relative to `first` */
    size_t *places;  /* the way back */
    double *c;       /* [n][ld] in that order, without damping */
    double
        *factor; /* [n][ld]: how an error at row i moves the target of column j > i */
    double *scratch; /* [n][ld] */
};

/* Outputs that are worked on together; all arrays are [QDQI_PANEL][ld]. */
struct panel {
    struct block *b;
    size_t first, n; /* outputs */
    double *sums; /* how far targets were moved; later C times the error of an output */
    double *products;                       /* C times the integers of one scale */
    double by[QDQI_PANEL][QDQI_AT_ONCE];    /* factors of rows that are added to sums */
    double local[QDQI_PANEL][QDQI_AT_ONCE]; /* the sums of the elements under way */
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

/* Computes columns first to end - 1 of the factor's rows up to end - 1, when all later
   columns have subtracted their products. Returns false when the matrix is not positive
   definite. */
static bool
factorize_columns(struct block *b, size_t first, size_t end)
{
    size_t ld = b->ld;
    for (size_t j = end; j-- > first;) {
        double left = b->factor[j * ld + j];
        for (size_t k = j + 1; k < end; k++)
            left -= b->factor[j * ld + k] * b->factor[j * ld + k];
        if (!(left > 0))
            return false;
        double root = b->factor[j * ld + j] = sqrt(left);
        for (size_t i = 0; i < j; i++) {
            double sum = b->factor[i * ld + j];
            for (size_t k = j + 1; k < end; k++)
                sum -= b->factor[i * ld + k] * b->factor[j * ld + k];
            b->factor[i * ld + j] = sum / root;
        }
    }
    return true;
}

/* Subtracts the products of those columns from the rows and columns before them. */
static void
subtract_columns(struct block *b, size_t first, size_t end)
{
    size_t ld = b->ld;
    double by[QDQI_PANEL][QDQI_AT_ONCE];
    struct qdqi_update u = {.n = end - first, .end = first};
    for (size_t k = 0; k < u.n; k++) { /* the columns as rows */
        double *row = b->scratch + k * ld;
        for (size_t i = 0; i < first; i++)
            row[i] = b->factor[i * ld + first + k];
        u.rows[k] = row;
    }
    for (size_t i = 0; i < first; i += QDQI_PANEL) {
        size_t lines = first - i < QDQI_PANEL ? first - i : QDQI_PANEL;
        for (size_t p = 0; p < lines; p++)
            for (size_t k = 0; k < u.n; k++)
                by[p][k] = -b->factor[(i + p) * ld + first + k];
        u.first = i;
        qdqi_update_panel(&u, by, lines, b->factor + i * ld, ld);
    }
}

/*
 * Writes to the factor the upper triangular R with C + damping = R R^T, from the last
 * columns to the first. Returns false when the matrix is not positive definite.
 */
static bool
factorize(struct block *b)
{
    size_t n = b->n, ld = b->ld;
    double mean = 0;
    for (size_t i = 0; i < n; i++)
        mean += b->c[i * ld + i] / (double)n;
    if (!(mean > 0) || !isfinite(mean))
        return false;
    memcpy(b->factor, b->c, n * ld * sizeof *b->factor);
    for (size_t i = 0; i < n; i++)
        b->factor[i * ld + i] += DAMPING * mean;
    for (size_t end = n; end > 0;) {
        size_t first = end > STEP ? end - STEP : 0;
        if (!factorize_columns(b, first, end))
            return false;
        subtract_columns(b, first, end);
        end = first;
    }
    return true;
}

/* |R^T e|^2 is the sum over j of (R_jj (e_j + sum over i < j of R_ij / R_jj e_i))^2:
   divides each column by its diagonal. */
static void
divide_columns(struct block *b)
{
    size_t n = b->n, ld = b->ld;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            b->factor[i * ld + j] /= b->factor[j * ld + j];
}

/* --- panels --------------------------------------------------------------- */

static size_t
at_place(const struct panel *p, size_t line, size_t i)
{
    return element(p->b->r, p->first + line, p->b->first + p->b->order[i]);
}

/* Copies the sums of places i to end - 1, which are now worked on. */
static void
load_local(struct panel *p, size_t i, size_t end)
{
    for (size_t line = 0; line < p->n; line++)
        memcpy(p->local[line], p->sums + line * p->b->ld + i,
               (end - i) * sizeof *p->sums);
}

/* Adds an error to the local sums of the places behind k, of those from `first` on. */
static void
tell_local(struct panel *p, size_t line, const double *row, size_t k, size_t n)
{
    for (size_t j = k + 1; j < n; j++)
        p->local[line][j] += row[j] * p->by[line][k];
}

/* Returns an update by rows i to end - 1 of a matrix of the block. */
static struct qdqi_update
update_by(const struct block *b, const double *matrix, size_t i, size_t end)
{
    struct qdqi_update u = {.n = end - i, .end = b->n};
    for (size_t k = 0; k < u.n; k++)
        u.rows[k] = matrix + (i + k) * b->ld;
    return u;
}

/* --- rounding one after the other ----------------------------------------- */

/* Rounds the panel's outputs: each element goes to the integer that is nearest to itself
   and what the errors before it ask for. */
static void
round_panel(struct panel *p)
{
    struct block *b = p->b;
    const struct qdqi_gptq *r = b->r;
    memset(p->sums, 0, QDQI_PANEL * b->ld * sizeof *p->sums);
    for (size_t i = 0, end; i < b->n; i = end) {
        end = b->n - i < STEP ? b->n : i + STEP;
        load_local(p, i, end);
        for (size_t k = i; k < end; k++)
            for (size_t line = 0; line < p->n; line++) {
                size_t at = at_place(p, line, k);
                double w = (double)r->weight[at];
                r->integers[at] = nearest(r, at, w + p->local[line][k - i]);
                p->by[line][k - i] = w - value(r, at);
                tell_local(p, line, b->factor + k * b->ld + i, k - i, end - i);
            }
        struct qdqi_update u = update_by(b, b->factor, i, end);
        u.first = end;
        qdqi_update_panel(&u, p->by, p->n, p->sums, b->ld);
    }
}

/* --- refinement ------------------------------------------------------------ */

/* Computes C times the error of each output. */
static void
compute_gradient(struct panel *p)
{
    struct block *b = p->b;
    const struct qdqi_gptq *r = b->r;
    memset(p->sums, 0, QDQI_PANEL * b->ld * sizeof *p->sums);
    for (size_t i = 0, end; i < b->n; i = end) {
        end = b->n - i < STEP ? b->n : i + STEP;
        for (size_t k = i; k < end; k++)
            for (size_t line = 0; line < p->n; line++) {
                size_t at = at_place(p, line, k);
                p->by[line][k - i] = (double)r->weight[at] - value(r, at);
            }
        const struct qdqi_update u = update_by(b, b->c, i, end);
        qdqi_update_panel(&u, p->by, p->n, p->sums, b->ld);
    }
}

/* Moves the integer at place k of an output to where the error is least while the others
   stay. Returns whether it moved. */
static bool
descend_one(struct panel *p, size_t line, size_t k, size_t i)
{
    const struct qdqi_gptq *r = p->b->r;
    double curve = p->b->c[k * p->b->ld + k];
    size_t at = at_place(p, line, k);
    if (!(curve > 0))
        return false;
    double before = value(r, at);
    int16_t q = nearest(r, at, before + p->local[line][k - i] / curve);
    if (q == r->integers[at])
        return false;
    r->integers[at] = q;
    p->by[line][k - i] = before - value(r, at);
    return true;
}

/* Adds what moved at some places to the sums: where it is little, line by line. */
static void
tell_moved(struct panel *p, const struct qdqi_update *u, const size_t *n_moved)
{
    size_t total = 0;
    for (size_t line = 0; line < p->n; line++)
        total += n_moved[line];
    if (total * 4 > p->n * u->n)
        qdqi_update_panel(u, p->by, p->n, p->sums, p->b->ld);
    else
        for (size_t line = 0; line < p->n; line++)
            if (n_moved[line] > 0)
                qdqi_update_line(u, p->by[line], p->sums + line * p->b->ld);
}

/* Descends once along all places, in the outputs that are live: the others did not move
   in the last pass. Returns whether an integer moved. */
static bool
descend(struct panel *p, bool *live)
{
    struct block *b = p->b;
    size_t total[QDQI_PANEL] = {0};
    bool any = false;
    for (size_t i = 0, end; i < b->n; i = end) {
        size_t n_moved[QDQI_PANEL] = {0};
        end = b->n - i < STEP ? b->n : i + STEP;
        load_local(p, i, end);
        memset(p->by, 0, sizeof p->by);
        for (size_t k = i; k < end; k++)
            for (size_t line = 0; line < p->n; line++)
                if (live[line] && descend_one(p, line, k, i)) {
                    tell_local(p, line, b->c + k * b->ld + i, k - i, end - i);
                    n_moved[line]++;
                    total[line]++;
                }
        const struct qdqi_update u = update_by(b, b->c, i, end);
        tell_moved(p, &u, n_moved);
    }
    for (size_t line = 0; line < p->n; line++)
        any |= live[line] = total[line] > 0;
    return any;
}

/* Computes C times the integers that share scale i. */
static void
multiply_members(struct panel *p, const size_t *members, size_t n)
{
    struct block *b = p->b;
    const struct qdqi_gptq *r = b->r;
    memset(p->products, 0, QDQI_PANEL * b->ld * sizeof *p->products);
    for (size_t i = 0; i < n; i += QDQI_AT_ONCE) {
        struct qdqi_update u = {.n = n - i < QDQI_AT_ONCE ? n - i : QDQI_AT_ONCE,
                                .end = b->n};
        for (size_t k = 0; k < u.n; k++) {
            u.rows[k] = b->c + b->places[members[i + k]] * b->ld;
            for (size_t line = 0; line < p->n; line++) {
                size_t at = element(r, p->first + line, members[i + k]);
                p->by[line][k] = r->integers[at] - zero_point(r, at);
            }
        }
        qdqi_update_panel(&u, p->by, p->n, p->products, b->ld);
    }
}

/* Gives a scale of one output the value with which the error is least while the integers
   stay. */
static void
fit_scale(struct panel *p, size_t line, const size_t *members, size_t n)
{
    struct block *b = p->b;
    const struct qdqi_gptq *r = b->r;
    double *product = p->products + line * b->ld, *gradient = p->sums + line * b->ld;
    uint32_t which = r->scale_of[element(r, p->first + line, members[0])];
    double top = 0, bottom = 0;
    for (size_t k = 0; k < n; k++) {
        size_t at = element(r, p->first + line, members[k]);
        int32_t q = r->integers[at] - zero_point(r, at);
        top += q * gradient[b->places[members[k]]];
        bottom += q * product[b->places[members[k]]];
    }
    float before = r->scales[which];
    float after = (float)((double)before + (bottom > 0 ? top / bottom : 0));
    if (!isnormal(after) || after < before / 4 || after > before * 4)
        return;
    r->scales[which] = after;
    const struct qdqi_update u = {{product}, 1, 0, b->n};
    const double by = (double)before - (double)after;
    qdqi_update_line(&u, &by, gradient);
}

static void
fit_scales(struct panel *p)
{
    const struct shared *s = &p->b->shared;
    for (size_t i = 0; i < s->n; i++) {
        const size_t *members = s->members + s->begin[i];
        size_t n = s->begin[i + 1] - s->begin[i];
        multiply_members(p, members, n);
        for (size_t line = 0; line < p->n; line++)
            fit_scale(p, line, members, n);
    }
}

static void
refine(struct panel *p)
{
    bool whole = p->b->n == p->b->r->moment->k;
    compute_gradient(p);
    for (int round = 0; round < ROUNDS; round++) {
        bool live[QDQI_PANEL];
        for (size_t line = 0; line < QDQI_PANEL; line++)
            live[line] = true;
        if (p->b->r->own_scales && whole)
            fit_scales(p);
        for (int pass = 0; pass < PASSES && descend(p, live); pass++)
            ;
    }
}

/* --- scales ---------------------------------------------------------------- */

/* Elements that share a scale: their numbers and what their errors weigh. */
struct weighed {
    double low, high; /* integers less the zero point */
    size_t n;
    double *numbers, *weights;
};

/* Returns the sum of C_kk (w - q)^2, in eight parts so that it vectorizes. */
QDQI_LOOP double
error_loop(const struct weighed *e, double s)
{
    double part[8] = {0}, total = 0, low = e->low, high = e->high;
    for (size_t k = 0; k < e->n; k += 8)
        for (size_t i = 0; i < 8; i++) {
            double q = __builtin_rint(e->numbers[k + i] / s);
            q = q < low ? low : q > high ? high : q;
            double off = e->numbers[k + i] - q * s;
            part[i] += e->weights[k + i] * off * off;
        }
    for (size_t i = 0; i < 8; i++)
        total += part[i];
    return total;
}

QDQI_AVX2 static double
error_avx2(const struct weighed *e, double s)
{
    return error_loop(e, s);
}

/* Gives a scale the share of it with which that error is least. The arrays of `e` have
   room for 7 more elements than share a scale. */
static void
narrow(const struct block *b, const double *diagonal, size_t output, size_t i,
       struct weighed *e)
{
    const struct qdqi_gptq *r = b->r;
    const size_t *members = b->shared.members + b->shared.begin[i];
    size_t n = b->shared.begin[i + 1] - b->shared.begin[i];
    size_t at = element(r, output, members[0]);
    float *s = &r->scales[r->scale_of[at]];
    double most = (double)*s, least = INFINITY;
    e->low = r->lowest - zero_point(r, at);
    e->high = r->highest - zero_point(r, at);
    e->n = (n + 7) / 8 * 8;
    for (size_t k = 0; k < e->n; k++) {
        e->numbers[k] = k < n ? (double)r->weight[element(r, output, members[k])] : 0;
        e->weights[k] = k < n ? diagonal[members[k]] : 0;
    }
    for (int k = 0; k < SHARES; k++) {
        float tried = (float)(most * (1 - 0.01 * k));
        double error = qdqi_has_avx2() ? error_avx2(e, (double)tried)
                                       : error_loop(e, (double)tried);
        if (isnormal(tried) && error < least) {
            least = error;
            *s = tried;
        }
    }
}

static void
narrow_scales(const struct block *b, const double *diagonal, struct weighed *e)
{
    for (size_t output = 0; output < b->r->outputs; output++)
        for (size_t i = 0; i < b->shared.n; i++)
            narrow(b, diagonal, output, i, e);
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

/* Rows are not a power of two apart, which caches store badly. */
static size_t
ld_of(size_t n)
{
    return (n + 7) / 8 * 8 + 8;
}

/* Writes block `which` of the moment to b->c, in the order of descending diagonal. */
static void
load_block(struct block *b, size_t which, struct rank *ranks)
{
    const struct qdqi_moment *m = b->r->moment;
    qdqi_moment_matrix(m, which, b->r->centred, b->scratch, &b->n);
    b->first = which * m->block;
    size_t n = b->n;
    b->ld = ld_of(n);
    for (size_t i = 0; i < n; i++)
        ranks[i] = (struct rank){b->scratch[i * n + i], i};
    qsort(ranks, n, sizeof *ranks, by_diagonal);
    for (size_t i = 0; i < n; i++)
        b->places[b->order[i] = ranks[i].element] = i;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            b->c[i * b->ld + j] = b->scratch[b->order[i] * n + b->order[j]];
}

static void
round_block(struct panel *p)
{
    const struct qdqi_gptq *r = p->b->r;
    divide_columns(p->b);
    for (p->first = 0; p->first < r->outputs; p->first += p->n) {
        size_t left = r->outputs - p->first;
        p->n = left < QDQI_PANEL ? left : QDQI_PANEL;
        round_panel(p);
        if (r->refine)
            refine(p);
    }
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

/* Everything that one weight needs. */
struct rounding {
    struct block block;
    struct panel panel;
    struct weighed weighed;
    double *diagonal;
    struct rank *ranks;
};

/* Returns zeros at the beginning of a cache line; NULL when out of memory. */
static double *
new_rows(size_t n, size_t ld)
{
    void *rows = NULL;
    if (n > SIZE_MAX / sizeof(double) / ld ||
        posix_memalign(&rows, 64, n * ld * sizeof(double)))
        return NULL;
    return memset(rows, 0, n * ld * sizeof(double));
}

static bool
allocate(struct rounding *t)
{
    struct block *b = &t->block;
    struct panel *p = &t->panel;
    size_t n = b->r->moment->block, k = b->r->moment->k;
    b->order = calloc(n, sizeof *b->order);
    b->places = calloc(n, sizeof *b->places);
    b->c = new_rows(n, ld_of(n));
    b->factor = new_rows(n, ld_of(n));
    b->scratch = new_rows(n, ld_of(n));
    p->sums = new_rows(QDQI_PANEL, ld_of(n));
    p->products = new_rows(QDQI_PANEL, ld_of(n));
    t->weighed.numbers = calloc(k + 7, sizeof *t->weighed.numbers);
    t->weighed.weights = calloc(k + 7, sizeof *t->weighed.weights);
    t->diagonal = calloc(k, sizeof *t->diagonal);
    t->ranks = calloc(n, sizeof *t->ranks);
    return find_shared(b->r, &b->shared) && b->order && b->places && b->c &&
           b->factor && b->scratch && p->sums && p->products && t->weighed.numbers &&
           t->weighed.weights && t->diagonal && t->ranks;
}

static void
release(struct rounding *t)
{
    struct block *b = &t->block;
    void *all[] = {b->shared.begin,
                   b->shared.members,
                   b->order,
                   b->places,
                   b->c,
                   b->factor,
                   b->scratch,
                   t->panel.sums,
                   t->panel.products,
                   t->weighed.numbers,
                   t->weighed.weights,
                   t->diagonal,
                   t->ranks};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Returns false when a block's moment is not usable. */
static bool
round_blocks(struct rounding *t)
{
    const struct qdqi_gptq *r = t->block.r;
    read_diagonal(&t->block, t->diagonal);
    if (r->refine && r->own_scales)
        narrow_scales(&t->block, t->diagonal, &t->weighed);
    for (size_t i = 0; i * r->moment->block < r->moment->k; i++) {
        load_block(&t->block, i, t->ranks);
        if (!factorize(&t->block))
            return false;
        round_block(&t->panel);
    }
    return true;
}

enum qdq_code
qdqi_round_gptq(const struct qdqi_gptq *r, bool *ret_degenerate, struct qdq_error *err)
{
    struct rounding *t = calloc(1, sizeof *t);
    bool ok = t;
    *ret_degenerate = false;
    if (ok) {
        t->block.r = r;
        t->panel.b = &t->block;
        ok = allocate(t);
    }
    if (ok && !round_blocks(t)) {
        qdqi_round_nearest(r);
        *ret_degenerate = true;
    }
    if (t)
        release(t);
    free(t);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}
