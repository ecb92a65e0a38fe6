/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/gates/judged.h"

#include <math.h>

static const double lost_db = 10;

/* The mean of an output hides how much of it is left where it has nine tenths of its energy. */
static const double hidden_by_db = 10;

double
qdqi_worst_slice(const struct qdq_output_report *o)
{
    const bool is_hidden =
        o->centred_db < lost_db && o->sqnr_db >= o->centred_db + hidden_by_db;
    return is_hidden ? fmin(o->worst_slice_db, o->centred_db) : o->worst_slice_db;
}

bool
qdqi_is_slice_lost(const struct qdq_output_report *o)
{
    return qdqi_worst_slice(o) < lost_db;
}

double
qdqi_judged_sqnr(const struct qdq_output_report *o)
{
    return isnan(o->sqnr_db) ? NAN : fmin(o->sqnr_db, qdqi_worst_slice(o));
}

bool
qdqi_output_decides(const struct qdq_output_report *outputs, size_t n, size_t i)
{
    bool others = false;
    for (size_t k = 0; k < n; k++)
        others |= !outputs[k].is_cache;
    return !outputs[i].is_cache || !others;
}
