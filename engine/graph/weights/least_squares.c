/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/least_squares.h"

#include "numbers/arithmetic/simd.h"

#include <math.h>

/* The share of the mean of the diagonal that is added to it, because inputs may always be 0. */
static const double least = 1e-4;

enum {
    BLOCK = 32,  /* columns of the factor that are computed at once */
    ROWS = 32,   /* of the factor, that one task computes */
    SOLVED = 8,  /* outputs that one task solves */
    AT_ONCE = 8, /* parts of a sum */
};

/* Returns the sum of products, in parts so that it vectorizes. */
QDQI_LOOP double
dot_loop(const double *a, const double *b, size_t n)
{
    double part[AT_ONCE] = {0}, total = 0;
    size_t k = 0;
    for (; k + AT_ONCE <= n; k += AT_ONCE)
        for (size_t i = 0; i < AT_ONCE; i++)
            part[i] += a[k + i] * b[k + i];
    for (; k < n; k++)
        total += a[k] * b[k];
    for (size_t i = 0; i < AT_ONCE; i++)
        total += part[i];
    return total;
}

QDQI_VARIANTS(double, dot, (const double *a, const double *b, size_t n), (a, b, n))

QDQI_LOOP void
subtract_loop(double *restrict to, const double *row, double by, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] -= by * row[i];
}

QDQI_VARIANTS(void, subtract,
              (double *restrict to, const double *row, double by, size_t n),
              (to, row, by, n))

/* --- the factor ------------------------------------------------------------ */

struct factorizing {
    struct qdqi_least_squares *l;
    size_t first, end; /* the columns of the block */
};

/* Computes the columns from `first` to `end` of a row behind them. */
static void
factorize_row(const struct factorizing *f, size_t i)
{
    const size_t k = f->l->k;
    double *row = f->l->c + i * k;
    for (size_t j = f->first; j < f->end; j++) {
        const double *other = f->l->c + j * k;
        row[j] = (row[j] - dot(row, other, j)) / other[j];
    }
}

static enum qdq_code
factorize_rows(void *arg, size_t piece, struct qdq_error *err)
{
    const struct factorizing *f = arg;
    const size_t first = f->end + piece * ROWS;
    (void)err;
    for (size_t i = first; i < f->l->k && i < first + ROWS; i++)
        factorize_row(f, i);
    return QDQ_OK;
}

/* Computes the square of a block on the diagonal. Returns whether that is possible. */
static bool
factorize_square(const struct factorizing *f)
{
    const size_t k = f->l->k;
    for (size_t j = f->first; j < f->end; j++) {
        double *row = f->l->c + j * k;
        const struct factorizing before = {f->l, f->first, j};
        factorize_row(&before, j);
        const double pivot = row[j] - dot(row, row, j);
        if (!(pivot > 0 && isfinite(pivot)))
            return false;
        row[j] = sqrt(pivot);
    }
    return true;
}

/* Adds the damping. Returns whether the matrix is of any use. */
static bool
damp(struct qdqi_least_squares *l)
{
    double mean = 0;
    for (size_t i = 0; i < l->k; i++)
        mean += l->c[i * (l->k + 1)] / (double)l->k;
    for (size_t i = 0; i < l->k; i++)
        l->c[i * (l->k + 1)] += l->damping * l->c[i * (l->k + 1)] + least * mean;
    return mean > 0 && isfinite(mean);
}

/* --- solutions -------------------------------------------------------------- */

static void
solve_one(const struct qdqi_least_squares *l, double *x)
{
    for (size_t i = 0; i < l->k; i++) {
        const double *row = l->c + i * l->k;
        x[i] = (x[i] - dot(row, x, i)) / row[i];
    }
    for (size_t i = l->k; i-- > 0;) {
        const double *row = l->c + i * l->k;
        x[i] /= row[i];
        subtract(x, row, x[i], i);
    }
}

static enum qdq_code
solve_some(void *arg, size_t piece, struct qdq_error *err)
{
    const struct qdqi_least_squares *l = arg;
    (void)err;
    for (size_t i = piece * SOLVED; i < l->outputs && i < (piece + 1) * SOLVED; i++)
        solve_one(l, l->sides + i * l->k);
    return QDQ_OK;
}

enum qdq_code
qdqi_least_squares(struct qdqi_least_squares *l, bool *ret_is_solved,
                   struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    *ret_is_solved = damp(l);
    for (size_t first = 0; first < l->k && *ret_is_solved && !code; first += BLOCK) {
        struct factorizing f = {l, first, first + BLOCK < l->k ? first + BLOCK : l->k};
        *ret_is_solved = factorize_square(&f);
        if (*ret_is_solved)
            code = qdqi_tasks_run(l->tasks, (l->k - f.end + ROWS - 1) / ROWS,
                                  factorize_rows, &f, err);
    }
    return code || !*ret_is_solved
               ? code
               : qdqi_tasks_run(l->tasks, (l->outputs + SOLVED - 1) / SOLVED,
                                solve_some, l, err);
}
