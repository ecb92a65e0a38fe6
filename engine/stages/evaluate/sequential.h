/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When figures by a part of the samples stand for all of them. n of N samples were drawn at random,
 * without putting any back, so what is left to learn is the N - n others alone: a standard error has
 * the factor sqrt(1 - n / N), and a number of samples is hypergeometric.
 *
 *  - The pooled SQNR, 10 log10(sum of signals / sum of noises), is a ratio of two means. Its
 *    standard error is that of the means of (s / mean s - e / mean e), times 10 / ln 10 dB (the
 *    linearization in W. G. Cochran, Sampling Techniques, 1977, section 6.3).
 *  - Whether more than k of the N samples are bad ones is settled where at most 0.06 of all draws
 *    would show as few of them if k + 1 were, or as many if k were. Rare samples are bounded by
 *    nothing else: a mean does not show that some were not met.
 */
#ifndef QDQI_STAGES_EVALUATE_SEQUENTIAL_H
#define QDQI_STAGES_EVALUATE_SEQUENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/evaluate/sample_figures.h"

enum { QDQI_SEQUENTIAL_LEAST = 32 }; /* samples that are judged in any case */

/* How far the pooled SQNR and a share may be off. */
extern const double qdqi_settled_db, qdqi_settled_share;

/* Returns the half width in dB of the interval around the pooled SQNR of n samples, within which
   that of all `of` lies; 0 without any noise, and infinite where a sum is not finite. */
double qdqi_pooled_half_width(const struct qdqi_sample *samples, size_t n, int64_t of);

/* Returns the half width around the mean of n shares, given by their sum and that of their
   squares. */
double qdqi_share_half_width(double sum, double squares, int64_t n, int64_t of);

/* Returns whether `bad` ones of n samples settle whether more than `most` of all are bad. */
bool qdqi_side_is_settled(int64_t n, int64_t bad, int64_t of, int64_t most);

/* Returns the fewest samples, at least QDQI_SEQUENTIAL_LEAST, by which no bad one can settle that no more
   than `most` are; `of` where they are fewer. */
int64_t qdqi_sequential_first(int64_t of, int64_t most);

/*
 * Draws the order of n samples, always the same: ret[i] is the turn in which sample i is judged, from
 * 0 on. The first turn has `first` samples and each further one `step`; so a turn reads its samples in
 * the order of the data. Returns the number of turns.
 */
int64_t qdqi_sequential_draw(int64_t n, int64_t first, int64_t step, int64_t *ret);

#endif
