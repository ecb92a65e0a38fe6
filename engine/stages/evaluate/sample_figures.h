/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of single samples. The pooled SQNR of an output does not show that a few of the
 * samples carry the noise, nor what the next samples will have.
 *
 * The SQNR of a sample is 10 log10(sum f^2 / sum (f - q)^2) over its elements. A sample with less
 * than a hundredth of the samples' mean signal counts as one with that hundredth: silence is no
 * failure.
 *
 * `confidence` is a lower bound for the next samples that needs no distribution (S. S. Wilks,
 * Statistical prediction with special reference to the problem of tolerance limits, Annals of
 * Mathematical Statistics 13, 1942): of n samples in ascending order it is the r-th, with the
 * largest r for which, with a confidence of 0.95, at most 1 in 20 of the next n samples of the same
 * kind are below it. How many are is a matter of the order of all 2n samples, each of which is as
 * likely as another: no more than k are where the first k + r have at least r of the n that were
 * seen, whose number is hypergeometric. Fewer than 80 samples cannot tell that: the bound is the
 * worst of them, and its level the confidence that they give.
 */
#ifndef QDQI_STAGES_EVALUATE_SAMPLE_FIGURES_H
#define QDQI_STAGES_EVALUATE_SAMPLE_FIGURES_H

#include "ground/base/arena.h"
#include "qdq/report.h"

/* Signal and noise of one sample. */
struct qdqi_sample {
    double signal, noise; /* sums of f^2 and of (f - q)^2 */
};

/* The samples of an output: eight bytes times two for each of them. */
struct qdqi_samples {
    struct qdqi_arena *arena; /* NULL: none are kept */
    struct qdqi_sample *rows;
    size_t n, capacity;
    bool is_lost; /* out of memory for one: there are no figures */
};

void qdqi_samples_add(struct qdqi_samples *samples, double signal, double noise);

/* Computes the figures, all NaN where no sample was kept. Sorts scratch memory of the arena. */
void qdqi_samples_finish(const struct qdqi_samples *samples,
                         struct qdq_sample_report *ret);

/* Returns how many samples have less than that SQNR. */
int64_t qdqi_samples_below(const struct qdqi_samples *samples, double db);

/* Returns the rank from 1 on, in ascending order, of the sample that is the bound; sets *ret_level
   to its confidence. */
size_t qdqi_tolerance_rank(size_t n, double *ret_level);

#endif
