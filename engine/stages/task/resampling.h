/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sure a difference between two quotients of sums is, from the samples that they were added
 * up over: the paired bootstrap with percentiles (B. Efron and R. J. Tibshirani, An Introduction
 * to the Bootstrap, Chapman & Hall 1993, chapters 8 and 13), and, where a figure is none of sums, the jackknife
 * by groups (P. S. Kott, The delete-a-group jackknife, Journal of Official Statistics 17, 2001). Samples are
 * drawn with a fixed seed, so that the same samples give the same interval.
 */
#ifndef QDQI_STAGES_TASK_RESAMPLING_H
#define QDQI_STAGES_TASK_RESAMPLING_H

#include <stddef.h>

/* The part of one sample in the figure, which is the quotient of the sums. */
struct qdqi_fraction {
    double numerator, denominator;
};

struct qdqi_interval {
    double low, high; /* NaN: there is none */
};

/* Returns the quotient of the sums of n samples; NaN where the denominators add up to 0. */
double qdqi_quotient(const struct qdqi_fraction *samples, size_t n);

/* Returns the interval that contains the first figure less the second one with 95 % confidence. Both
   are of the same n samples. There is none for fewer than two samples. */
struct qdqi_interval qdqi_bootstrap(const struct qdqi_fraction *first,
                                    const struct qdqi_fraction *second, size_t n);

/* Gives each of n samples a group below `groups`, at most 255; their sizes differ by one at most. */
void qdqi_draw_groups(unsigned char *ret, size_t n, size_t groups);

enum { QDQI_TASK_GROUPS = 20 };

/* Returns the interval around `drop` that contains it with 95 % confidence, from the figures of both models
   without each group. There is none where one of these is none. */
struct qdqi_interval
qdqi_jackknife(double drop, const struct qdqi_fraction first[QDQI_TASK_GROUPS],
               const struct qdqi_fraction second[QDQI_TASK_GROUPS]);

#endif
