/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that the parts of compensated rounding share: one block of a layer's moment, and the
 * outputs that are worked on together. Panels of outputs are independent of each other, so
 * threads may work on different ones at the same time.
 */
#ifndef QDQI_GRAPH_WEIGHTS_PANEL_H
#define QDQI_GRAPH_WEIGHTS_PANEL_H

#include "graph/weights/gptq.h"
#include "graph/weights/updates.h"

#include <math.h>

/* The elements of a row by the scale that they share: which ones do is the same for every
   output. */
struct qdqi_shared {
    size_t n;      /* scales */
    size_t most;   /* elements that share one, at most */
    size_t *begin; /* [n + 1]: where those of scale i begin in `members` */
    size_t *members;
};

/* One block of the moment, its rows in the order in which they are rounded. */
struct qdqi_moment_block {
    const struct qdqi_gptq *r;
    struct qdqi_shared shared;
    size_t first, n; /* elements of a row of the weight */
    size_t ld;       /* elements from one row of a matrix to the next, >= n */
    size_t *order;   /* place -> element, relative to `first` */
    size_t *places;  /* the way back */
    double *c;       /* [n][ld] in that order, without damping */
    /* [n][ld]: how an error at row i moves the target of column j > i. Where integers are
       not refined, nothing reads C behind its factorization, and this is the same memory. */
    double *factor;
    double *scratch; /* [QDQI_AT_ONCE][ld] */
};

/* Outputs that are worked on together; all arrays are [QDQI_PANEL][ld]. */
struct qdqi_panel {
    const struct qdqi_moment_block *b;
    size_t first, n; /* outputs */
    double *sums; /* how far targets were moved; later C times the error of an output */
    double *products;                       /* C times the integers of one scale */
    double by[QDQI_PANEL][QDQI_AT_ONCE];    /* factors of rows that are added to sums */
    double local[QDQI_PANEL][QDQI_AT_ONCE]; /* the sums of the elements under way */
};

/* --- one element ---------------------------------------------------------- */

static inline size_t
qdqi_element(const struct qdqi_gptq *r, size_t output, size_t i)
{
    return output * r->row + i * r->column;
}

/* Returns the element of a panel's output at a place of the order. */
static inline size_t
qdqi_at_place(const struct qdqi_panel *p, size_t line, size_t i)
{
    return qdqi_element(p->b->r, p->first + line, p->b->first + p->b->order[i]);
}

static inline int32_t
qdqi_zero_at(const struct qdqi_gptq *r, size_t at)
{
    return r->zero_points ? r->zero_points[r->scale_of[at]] : 0;
}

static inline double
qdqi_scale_at(const struct qdqi_gptq *r, size_t at)
{
    return (double)r->scales[r->scale_of[at]];
}

/* Returns the number that the integer at `at` stands for. */
static inline double
qdqi_value_at(const struct qdqi_gptq *r, size_t at)
{
    return (r->integers[at] - qdqi_zero_at(r, at)) * qdqi_scale_at(r, at);
}

static inline int16_t
qdqi_nearest_at(const struct qdqi_gptq *r, size_t at, double x)
{
    double q = rint(x / qdqi_scale_at(r, at)) + qdqi_zero_at(r, at);
    q = q < r->lowest ? r->lowest : q > r->highest ? r->highest : q;
    return (int16_t)q;
}

/* --- sums of a panel ------------------------------------------------------ */

/* Copies the sums of places i to end - 1, which are now worked on. */
void qdqi_load_local(struct qdqi_panel *p, size_t i, size_t end);

/* Adds an error to the local sums of the places behind k, of those from the first of n
   on. `row` has the matrix's elements at these. */
void qdqi_add_to_local(struct qdqi_panel *p, size_t line, const double *row, size_t k,
                       size_t n);

/* Returns an update by rows i to end - 1 of a matrix of the block. */
struct qdqi_update qdqi_update_by(const struct qdqi_moment_block *b,
                                  const double *matrix, size_t i, size_t end);

/* --- the parts ------------------------------------------------------------ */

/* factor.c: writes to b->factor the upper triangular R with C + damping = R R^T, from the
   last columns to the first, each column divided by its diagonal. *ret_why is NULL, or
   the reason why that is impossible. */
enum qdq_code qdqi_factorize(struct qdqi_moment_block *b,
                             const struct qdqi_tasks *tasks, const char **ret_why,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* refine.c: gives each scale the share of it with which sum C_kk (w - q)^2 is least;
   `diagonal` is that of the whole moment. NO_MEMORY. */
enum qdq_code qdqi_narrow_scales(const struct qdqi_gptq *r, const double *diagonal,
                                 const struct qdqi_shared *shared,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* refine.c: moves the integers of a panel to where the error is less, and its scales,
   where those may change. NO_MEMORY, and then nothing has changed. */
enum qdq_code qdqi_refine_panel(struct qdqi_panel *p,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
