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
    uint32_t *groups; /* by element of a row: its scale, as `shared` counts them */
    size_t first, n;  /* elements of a row of the weight */
    size_t ld;        /* elements from one row of a matrix to the next, >= n */
    size_t *order;    /* place -> element, relative to `first` */
    size_t *places;   /* the way back */
    /* [n][ld] in that order: the moment, and later its factor */
    double *exact;
    double *scratch; /* [QDQI_STEP_COLUMNS][ld] */
    float *c;        /* [n][ld]: the moment without damping; NULL: nothing is refined */
    float *factor; /* [n][ld]: how an error at row i moves the target of column j > i */
};

/* Outputs that are worked on together. All of them have what belongs to a place, or to a scale,
   side by side. */
struct qdqi_panel {
    const struct qdqi_moment_block *b;
    size_t first, n;             /* outputs */
    float (*weight)[QDQI_PANEL]; /* by place */
    int16_t (*integers)[QDQI_PANEL];
    float (*scales)[QDQI_PANEL]; /* by scale, as `shared` counts them */
    int32_t (*zeros)[QDQI_PANEL];
    /* by place: how far targets were moved; later C times the error */
    float (*sums)[QDQI_PANEL];
    float (*products)[QDQI_PANEL];         /* by place: C times some integers */
    float by[QDQI_AT_ONCE][QDQI_PANEL];    /* factors of rows that are added to sums */
    float local[QDQI_AT_ONCE][QDQI_PANEL]; /* the sums of the elements under way */
    /* the same weight, scales and integers as a weight of its own, whose elements are places:
       for what works on one output; scale_of only where scales are chosen jointly */
    struct qdqi_gptq r;
    uint32_t (*scale_of)[QDQI_PANEL];
};

/* --- one element ---------------------------------------------------------- */

/* Returns the integer, as it is stored, that is nearest to a number. */
static inline int16_t
qdqi_nearest(double x, double scale, int32_t zero, double lowest, double highest)
{
    double q = rint(x / scale) + zero;
    q = q < lowest ? lowest : q > highest ? highest : q;
    return (int16_t)q;
}

static inline size_t
qdqi_element(const struct qdqi_gptq *r, size_t output, size_t i)
{
    return output * r->row + i * r->column;
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

/* --- one place of an output ------------------------------------------------- */

/* Returns the scale of a place. */
static inline size_t
qdqi_panel_group(const struct qdqi_panel *p, size_t place)
{
    return p->b->groups[p->b->first + p->b->order[place]];
}

/* Returns the number that the integer of an output at a place stands for. */
static inline double
qdqi_panel_value(const struct qdqi_panel *p, size_t place, size_t line)
{
    const size_t group = qdqi_panel_group(p, place);
    return (p->integers[place][line] - p->zeros[group][line]) *
           (double)p->scales[group][line];
}

/* --- sums of a panel (panel_sums.c) --------------------------------------- */

/* Copies the sums of places i to end - 1, which are now worked on. */
void qdqi_load_local(struct qdqi_panel *p, size_t i, size_t end);

/* Adds what a place has for each output, times n numbers of a row, to the sums of n places. */
void qdqi_add_place(const float *row, size_t n, const float *by,
                    float (*sums)[QDQI_PANEL]);

/* Returns an update by rows i to end - 1 of a matrix of the block. */
struct qdqi_update qdqi_update_by(const struct qdqi_moment_block *b,
                                  const float *matrix, size_t i, size_t end);

/* --- the parts ------------------------------------------------------------ */

/* factor.c: copies b->exact to b->c, if there is one, and writes to b->factor the upper
   triangular R with C + damping = R R^T, from the last columns to the first, each column
   divided by its diagonal. *ret_why is NULL, or the reason why that is impossible. */
enum qdq_code qdqi_factorize(struct qdqi_moment_block *b,
                             const struct qdqi_tasks *tasks, const char **ret_why,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* narrow.c: gives each scale the share of it with which sum C_kk (w - q)^2 is least;
   `diagonal` is that of the whole moment. NO_MEMORY. */
enum qdq_code qdqi_narrow_scales(const struct qdqi_gptq *r, const double *diagonal,
                                 const struct qdqi_shared *shared,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* refine.c: moves the integers of a panel to where the error is less, and its scales,
   where those may change. NO_MEMORY, and then nothing has changed. */
enum qdq_code qdqi_refine_panel(struct qdqi_panel *p,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
