/* SPDX-License-Identifier: Apache-2.0 */
/* The members sensitivity and search, which ask for what-ifs. */
#include "config.h"
#include "spec/members.h"

#include <math.h>

enum { SAMPLES = 128 }; /* the default number */

bool
api_decode_sensitivity(struct decoder *d, const struct member *m, json_t *value)
{
    d->to->spec.sensitivity_samples = SAMPLES;
    return api_decode_members(d, m->pointer, value);
}

bool
api_decode_search(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_search *search = &d->to->spec.search;
    search->samples = SAMPLES;
    if (!api_decode_members(d, m->pointer, value))
        return false;
    return !isnan(search->min_sqnr_db) || !isnan(search->min_top1_agreement) ||
           api_refuse(d, API_INVALID_SPEC, m->pointer,
                      "search has no goal: min_sqnr_db or min_top1_agreement");
}
