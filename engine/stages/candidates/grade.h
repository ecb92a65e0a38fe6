/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_CANDIDATES_GRADE_H
#define QDQI_STAGES_CANDIDATES_GRADE_H

#include <stdbool.h>
#include <stdint.h>

/* How good a candidate is. */
struct qdqi_grade {
    /* It is that of the worst output; -INFINITY: it cannot be judged. Where another goal is missed, a
       figure below the goal in dB takes its place. */
    double sqnr_db;
    double output_db; /* of the worst output, whatever else is missed */
    /* The largest ratio of a figure, such as the size, to its upper bound. A candidate
       with more than 1 is beyond its bounds; 0: there are none. */
    double excess;
    double size_ratio, latency_ratio; /* to the float model; NAN: not measured */
    int64_t samples;                  /* that were run to judge it */
    double task_drop; /* what the figure of the task falls by; NAN: not judged */
    bool is_float;    /* no layer of it is quantized: the plan left the others, too */
};

/* Returns whether a candidate is within its bounds. */
bool qdqi_grade_fits(const struct qdqi_grade *grade);

/* Returns whether a candidate is better than another one by more than what is not worth it:
   within its bounds before others, then by its outputs, and beyond its bounds by less, unless that is
   3 % at most and costs more than 3 dB. */
bool qdqi_grade_is_better(const struct qdqi_grade *a, const struct qdqi_grade *b);

/* Returns whether the excess of a candidate is less than that of another one by more than measured
   times differ by chance. */
bool qdqi_grade_is_relieved(const struct qdqi_grade *a, const struct qdqi_grade *b);

#endif
