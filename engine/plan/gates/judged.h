/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQNR of an output that everything goes by that judges: gates, verdicts, goals, searches and
 * advice. It is the worst of the whole output and of its slices that carry information. The
 * whole output counts as a slice where its mean, with nine tenths of its energy, hides that it is
 * lost: a score that has become one constant has a good SQNR where its mean is large.
 */
#ifndef QDQI_PLAN_GATES_JUDGED_H
#define QDQI_PLAN_GATES_JUDGED_H

#include "qdq/report.h"

/* Returns that figure; NaN where the output holds values that are not finite. */
double qdqi_judged_sqnr(const struct qdq_output_report *output);

/* Returns the worst SQNR about its mean, of a slice or, where that is lost, of the whole output;
   NaN: there is none. */
double qdqi_worst_slice(const struct qdq_output_report *output);

/* Returns whether the verdict goes by output i of n: it does not by the caches of a decoder beside
   other outputs. */
bool qdqi_output_decides(const struct qdq_output_report *outputs, size_t n, size_t i);

/* Returns whether a slice of the output, or the whole of it, is lost: nothing of what it tells is
   left when its noise is a tenth of its variance. */
bool qdqi_is_slice_lost(const struct qdq_output_report *output);

#endif
