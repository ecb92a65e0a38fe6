/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_CANDIDATES_GRADE_H
#define QDQI_STAGES_CANDIDATES_GRADE_H

#include <stdbool.h>
#include <stdint.h>

/* How good a candidate is. */
struct qdqi_grade {
    double sqnr_db; /* of the worst output; -INFINITY: it cannot be judged */
    /* The largest ratio of a figure, such as the size, to its upper bound. A candidate
       with more than 1 is beyond its bounds; 0: there are none. */
    double excess;
    double size_ratio, latency_ratio; /* to the float model; NAN: not measured */
    int64_t samples;                  /* that were run to judge it */
    bool is_float; /* no layer of it is quantized: the plan left the others, too */
};

#endif
