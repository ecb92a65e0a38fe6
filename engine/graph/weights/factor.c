/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Cholesky factor of a moment, in steps of some columns from the last to the first. In
 * a step the block on the diagonal is factorized; then all rows above it compute their
 * elements of these columns, each by itself; then all of them subtract the products from
 * their other columns.
 */
#include "config.h"
#include "graph/weights/panel.h"

#include "ground/base/tasks.h"
#include "graph/weights/subtract.h"

enum { STEP = QDQI_STEP_COLUMNS };

static const double DAMPING = 0.01; /* of the mean of the diagonal */

/* The columns of a step. */
struct step {
    struct qdqi_moment_block *b;
    size_t first, end;
    double damping;
};

static size_t
panels(size_t rows)
{
    return (rows + QDQI_PANEL - 1) / QDQI_PANEL;
}

/* Computes columns s->first to s->end - 1 of row i, those behind the diagonal. */
static void
solve_row(const struct step *s, size_t i)
{
    double *row = s->b->exact + i * s->b->ld;
    size_t from = i >= s->first ? i + 1 : s->first;
    for (size_t j = s->end; j-- > from;) {
        const double *other = s->b->exact + j * s->b->ld;
        double sum = row[j];
        for (size_t k = j + 1; k < s->end; k++)
            sum -= row[k] * other[k];
        row[j] = sum / other[j];
    }
}

/* Factorizes the block on the diagonal. Returns false when the matrix is not positive
   definite. */
static bool
factorize_diagonal(const struct step *s)
{
    for (size_t j = s->end; j-- > s->first;) {
        double *row = s->b->exact + j * s->b->ld, left;
        solve_row(s, j);
        left = row[j];
        for (size_t k = j + 1; k < s->end; k++)
            left -= row[k] * row[k];
        if (!(left > 0))
            return false;
        row[j] = sqrt(left);
    }
    return true;
}

/* Computes the columns of a panel of rows above, and copies them as rows. */
static enum qdq_code
solve_panel(void *arg, size_t panel, struct qdq_error *err)
{
    const struct step *s = arg;
    struct qdqi_moment_block *b = s->b;
    (void)err;
    for (size_t i = panel * QDQI_PANEL; i < s->first && i < (panel + 1) * QDQI_PANEL;
         i++) {
        solve_row(s, i);
        for (size_t k = s->first; k < s->end; k++)
            b->scratch[(k - s->first) * b->ld + i] = b->exact[i * b->ld + k];
    }
    return QDQ_OK;
}

/* Subtracts the products of the columns from the other columns of a panel of rows. */
static enum qdq_code
subtract_panel(void *arg, size_t panel, struct qdq_error *err)
{
    const struct step *s = arg;
    struct qdqi_moment_block *b = s->b;
    double by[QDQI_PANEL][STEP];
    size_t i = panel * QDQI_PANEL, left = s->first - i;
    size_t lines = left < QDQI_PANEL ? left : QDQI_PANEL;
    struct qdqi_subtraction u = {.n = s->end - s->first, .first = i, .end = s->first};
    (void)err;
    for (size_t k = 0; k < u.n; k++)
        u.rows[k] = b->scratch + k * b->ld;
    for (size_t p = 0; p < lines; p++)
        for (size_t k = 0; k < u.n; k++)
            by[p][k] = -b->exact[(i + p) * b->ld + s->first + k];
    qdqi_subtract_panel(&u, by, lines, b->exact + i * b->ld, b->ld);
    return QDQ_OK;
}

/* |R^T e|^2 is the sum over j of (R_jj (e_j + sum over i < j of R_ij / R_jj e_i))^2:
   divides the columns of a panel of rows by the diagonal, whose roots `scratch` has. */
static enum qdq_code
divide_panel(void *arg, size_t panel, struct qdq_error *err)
{
    const struct step *s = arg;
    struct qdqi_moment_block *b = s->b;
    (void)err;
    for (size_t i = panel * QDQI_PANEL; i < b->n && i < (panel + 1) * QDQI_PANEL; i++)
        for (size_t j = i + 1; j < b->n; j++)
            b->factor[i * b->ld + j] = (float)(b->exact[i * b->ld + j] / b->scratch[j]);
    return QDQ_OK;
}

/* Copies a panel of rows of the moment, if they are needed later, and damps them. */
static enum qdq_code
damp_panel(void *arg, size_t panel, struct qdq_error *err)
{
    const struct step *s = arg;
    struct qdqi_moment_block *b = s->b;
    (void)err;
    for (size_t i = panel * QDQI_PANEL; i < b->n && i < (panel + 1) * QDQI_PANEL; i++) {
        for (size_t j = 0; b->c && j < b->n; j++)
            b->c[i * b->ld + j] = (float)b->exact[i * b->ld + j];
        b->exact[i * b->ld + i] += s->damping;
    }
    return QDQ_OK;
}

static enum qdq_code
divide_columns(struct step *s, const struct qdqi_tasks *tasks, struct qdq_error *err)
{
    struct qdqi_moment_block *b = s->b;
    for (size_t i = 0; i < b->n; i++)
        b->scratch[i] = b->exact[i * b->ld + i];
    return qdqi_tasks_run(tasks, panels(b->n), divide_panel, s, err);
}

enum qdq_code
qdqi_factorize(struct qdqi_moment_block *b, const struct qdqi_tasks *tasks,
               const char **ret_why, struct qdq_error *err)
{
    struct step s = {.b = b};
    double mean = 0;
    for (size_t i = 0; i < b->n; i++)
        mean += b->exact[i * b->ld + i] / (double)b->n;
    *ret_why = NULL;
    if (!isfinite(mean))
        *ret_why = "the moment of its layer's input is not finite";
    else if (mean <= 0)
        *ret_why = "the input of its layer was always the same";
    if (*ret_why)
        return QDQ_OK;
    s.damping = DAMPING * mean;
    enum qdq_code code = qdqi_tasks_run(tasks, panels(b->n), damp_panel, &s, err);
    for (s.end = b->n; s.end > 0 && !code; s.end = s.first) {
        s.first = s.end > STEP ? s.end - STEP : 0;
        if (!factorize_diagonal(&s)) {
            *ret_why = "the moment of its layer's input is not positive definite";
            return QDQ_OK;
        }
        code = qdqi_tasks_run(tasks, panels(s.first), solve_panel, &s, err);
        if (!code)
            code = qdqi_tasks_run(tasks, panels(s.first), subtract_panel, &s, err);
    }
    return code ? code : divide_columns(&s, tasks, err);
}
