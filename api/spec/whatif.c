/* SPDX-License-Identifier: Apache-2.0 */
/* sensitivity and search: what is asked of what-ifs. */
#include "config.h"
#include "spec/members.h"

#include <math.h>

enum { SAMPLES = 128 }; /* where it is not said how many */

bool
api_read_sensitivity(struct reader *r, const struct member *m, json_t *value)
{
    r->to->spec.sensitivity_samples = SAMPLES;
    return api_read_members(r, m->pointer, value);
}

bool
api_read_search(struct reader *r, const struct member *m, json_t *value)
{
    struct qdq_search *search = &r->to->spec.search;
    search->samples = SAMPLES;
    if (!api_read_members(r, m->pointer, value))
        return false;
    return !isnan(search->min_sqnr_db) || !isnan(search->min_top1_agreement) ||
           api_refuse(r, API_INVALID_SPEC, m->pointer,
                      "search has no goal: min_sqnr_db or min_top1_agreement");
}
