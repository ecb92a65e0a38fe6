/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well each slice of an output (output_slices.h) survives quantization.
 *
 * The SQNR of a slice is 10 log10(sum (f - m)^2 / sum (f - q)^2) with m the mean of f over the slice
 * and all samples, because scores that have become one constant tell nothing, however close that
 * constant is to their mean.
 *
 * A slice carries information where its values differ, and by more than float32 itself leaves open:
 * - its standard deviation is more than 2^-20 of its root of mean squares (a unit in the last place
 *   is 2^-24, and the sums of a network add some), else it is "constant";
 * - and more than 2^-24 of the output's largest root of mean squares of a slice, else it is "noise":
 *   the sum that adds both in float32 does not see it; 2^-20 where values alone tell the slices, because a channel of
 *   features that training has killed is what sums of float32 leave of it;
 * - and there are at least 16 values of it, fewer of which have no variance worth the name
 *   ("few values").
 *
 * Where values alone tell the slices, these are not single elements: of the 45 scores of a
 * classifier one that hardly varies has a low SQNR and means no harm, because a score counts only
 * against the others. A dead head is something else: neighbours of one magnitude beside neighbours
 * of another one. So an axis is cut only where it falls into few runs of neighbours (eight at
 * most), the standard deviations within a run lie within a factor of 5, and those of adjacent runs
 * differ by more than that. A run with less than 1/25 of its neighbour's variance can lose 14 dB
 * more than the output shows: what is cut is what one figure can hide, and scores of one magnitude
 * stay together. Elements that are constant belong to the run around them.
 */
#ifndef QDQI_STAGES_SLICES_SLICE_SUMS_H
#define QDQI_STAGES_SLICES_SLICE_SUMS_H

#include "qdq/report.h"
#include "stages/slices/output_slices.h"

/* Sums over the elements of a slice. */
struct qdqi_slice_sum {
    double n, f, ff, ee; /* elements; sums of f, f^2 and (f - q)^2 */
};

/* The sums of one cut. */
struct qdqi_cut_sums {
    const struct qdqi_cut *cut;
    struct qdqi_slice_sum *rows; /* by slice, or by element of the axis */
    int64_t size;                /* of the axis in the last run */
    bool is_broken;              /* a run had another shape than the model says */
};

struct qdqi_slice_sums {
    size_t n; /* cuts */
    struct qdqi_cut_sums *cuts;
};

/* Makes the sums of an output, in the arena; the cuts must outlive them. NO_MEMORY. */
enum qdq_code qdqi_slice_sums_init(struct qdqi_slice_sums *sums,
                                   const struct qdqi_cuts *cuts,
                                   struct qdqi_arena *arena,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

void qdqi_slice_sums_clear(struct qdqi_slice_sums *sums);

/* Adds one float32 output of a run, of that shape. */
void qdqi_slice_sums_add(struct qdqi_slice_sums *sums, const float *f, const float *q,
                         const int64_t *shape, size_t rank, int64_t samples);

/* Returns the SQNR of the worst slice that carries information; NaN: there is none. */
double qdqi_slice_sums_worst(const struct qdqi_slice_sums *sums);

/* Sets *ret to the slices of all cuts, in the arena. There are none where each cut has one. */
enum qdq_code qdqi_slice_sums_report(const struct qdqi_slice_sums *sums,
                                     struct qdqi_arena *arena,
                                     const struct qdq_slice_report **ret, size_t *ret_n,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the SQNR about the mean; NaN where the elements carry no information by themselves. */
double qdqi_slice_sqnr(const struct qdqi_slice_sum *sum, const char **ret_why);

#endif
