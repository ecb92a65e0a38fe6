/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/candidates/grade.h"

static const double least_gain_db = 0.05; /* a smaller gain is not worth a layer */
static const double least_relief = 0.005; /* likewise, of the excess */

bool
qdqi_grade_fits(const struct qdqi_grade *grade)
{
    return grade->excess <= 1;
}

bool
qdqi_grade_is_better(const struct qdqi_grade *a, const struct qdqi_grade *b)
{
    if (qdqi_grade_fits(a) != qdqi_grade_fits(b))
        return qdqi_grade_fits(a);
    return qdqi_grade_fits(a) ? a->sqnr_db >= b->sqnr_db + least_gain_db
                              : a->excess <= b->excess - least_relief;
}
