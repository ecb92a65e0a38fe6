/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of one weight are measured: by the bytes that it takes, and by the noise that is left in it. */
#ifndef QDQI_STAGES_RECIPE_FORMAT_NOISE_H
#define QDQI_STAGES_RECIPE_FORMAT_NOISE_H

#include "files/model/constant.h"
#include "numbers/arithmetic/params.h"
#include "plan/placement/plan.h"

struct qdqi_format_point {
    int choice;          /* the caller's number of it */
    double bytes, noise; /* the noise as a part of the weight's signal */
};

/*
 * Adds to the *n points one for each format of the set, whose bits are enum qdqi_format, with as many
 * scales as `params` has; the choice of the first format is `first`. Returns false when memory is short.
 * Long rows are measured by their first elements. A weight of zeros gets no points.
 */
bool qdqi_measure_formats(const struct qdq_plan *plan,
                          const struct qdqi_constant *weight,
                          const struct qdqi_params *params, unsigned formats, int first,
                          struct qdqi_format_point *points, size_t *n);

#endif
