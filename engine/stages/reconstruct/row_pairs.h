/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of rows of a layer: x is a row of what it reads in the rounded model, or a patch, and d has for
 * each output how far what it makes is from the float model. The pairs are not kept; their sums are:
 * E[x x^T] and E[x] as moments, E[x d^T] and E[d] here.
 */
#ifndef QDQI_STAGES_RECONSTRUCT_ROW_PAIRS_H
#define QDQI_STAGES_RECONSTRUCT_ROW_PAIRS_H

#include "ground/base/tasks.h"
#include "numbers/range/patches.h"

struct qdqi_row_pairs {
    struct qdqi_patches patches; /* the window, and the moments by group */
    size_t outputs;              /* of one group */
    size_t tiles; /* of a group's differences, each as wide as a moment's */
    /* pending differences: [group][tile][strip][QDQI_MOMENT_ROWS][QDQI_PRODUCTS_STEP] */
    float *differences;
    float *products; /* [group][tile of x][tile of d], each [i of x][j of d] */
    double *sums;    /* of differences, by output of the layer */
    float *row;      /* room for a row of x */
};

/* Three tensors of one run: what the layer reads, and what it makes, in the float model and in
   the rounded one, whose dimensions are the same. */
struct qdqi_paired_tensors {
    struct qdqi_patched input;
    const float *target, *made;
    size_t rank; /* of the last two */
    const int64_t *dims;
};

/* Allocates. k elements of a row are at most QDQI_MOMENT_WHOLE. False when out of memory; the caller
   ends it by qdqi_row_pairs_fini() also then. */
bool qdqi_row_pairs_init(struct qdqi_row_pairs *pairs, const struct qdqi_window *window,
                         size_t groups, size_t k, size_t outputs);
void qdqi_row_pairs_fini(struct qdqi_row_pairs *pairs);

/* Takes in the pairs of a run of so many samples, `per_sample` of each. *ret_fits is false where the
   tensors do not fit each other; then none is taken. */
enum qdq_code qdqi_row_pairs_add(struct qdqi_row_pairs *pairs, int64_t samples,
                                 size_t per_sample,
                                 const struct qdqi_paired_tensors *tensors,
                                 const struct qdqi_tasks *tasks, bool *ret_fits,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
/* Adds what is pending to the sums. */
enum qdq_code qdqi_row_pairs_flush(struct qdqi_row_pairs *pairs,
                                   const struct qdqi_tasks *tasks,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns E[d] of an output of the layer; 0 where there are no rows. */
double qdqi_row_pairs_mean(const struct qdqi_row_pairs *pairs, size_t output);
/* Writes E[x d] for an output of a group, less E[x] E[d] where `centred`: k numbers. */
void qdqi_row_pairs_write(const struct qdqi_row_pairs *pairs, size_t group,
                          size_t output, bool centred, double *to);

#endif
