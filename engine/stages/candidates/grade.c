/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/candidates/grade.h"

static const double least_gain_db = 0.05; /* a smaller gain is not worth a layer */
static const double least_relief = 0.005; /* likewise, of the excess */
/* Times that differ by no more may be the same, and so little is not worth so many dB. */
static const double noise = 0.03, most_loss_db = 3;

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
    if (qdqi_grade_fits(a))
        return a->sqnr_db >= b->sqnr_db + least_gain_db;
    return a->excess <= b->excess - least_relief &&
           (qdqi_grade_is_relieved(a, b) || !(a->sqnr_db < b->sqnr_db - most_loss_db));
}

bool
qdqi_grade_is_relieved(const struct qdqi_grade *a, const struct qdqi_grade *b)
{
    return a->excess < b->excess * (1 - noise);
}
