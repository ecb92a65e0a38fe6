/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/rules.h"
#include "qdq/targets.h"

#include "ground/base/host.h"
#include "numbers/arithmetic/format.h"

#include <math.h>

/* Returns whether the format has a sign. Such formats are symmetric by default, the
   others are not. */
static bool
has_negatives(enum qdq_format format)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    return row && row->lowest < 0;
}

static bool
is_float(enum qdq_format format)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    return row && row->fraction_bits > 0;
}

bool
qdq_spec_is_timed(const struct qdq_spec *spec)
{
    return spec->calibration.max_seconds > 0 || spec->search.max_seconds > 0 ||
           spec->sensitivity_seconds > 0 || spec->recipe_seconds > 0 ||
           spec->evaluate_seconds > 0 || !isnan(spec->recipe_latency_ratio);
}

/* Returns the recipe of a spec that names none. A search decides itself what stays in
   float, and a spec with the source of its ranges is a frozen one. */
static enum qdq_recipe
default_recipe(const struct qdq_spec *spec)
{
    const struct qdq_search *search = &spec->search;
    bool searches = !isnan(search->min_sqnr_db) || !isnan(search->min_top1_agreement);
    return searches || spec->calibration.source ? QDQ_RECIPE_NONE
                                                : spec->target->recipe;
}

/* Fills in the defaults. A bound for the latency implies a profile. When the activations
   are 8-bit floats, the weights have the same format by default. */
void
qdq_spec_complete(struct qdq_spec *spec)
{
    const struct qdq_target *target = spec->target;
    if (spec->profile.runs == 0 &&
        (!isnan(spec->accept.max_latency_ratio) || !isnan(spec->recipe_latency_ratio)))
        spec->profile = (struct qdq_profile_spec){QDQ_PROFILE_RUNS, QDQ_PROFILE_THREADS,
                                                  QDQ_PROFILE_BATCH};
    if (spec->activation_format == QDQ_FORMAT_DEFAULT)
        spec->activation_format = target->activations;
    if (spec->weight_format == QDQ_FORMAT_DEFAULT)
        spec->weight_format = is_float(spec->activation_format) && !spec->weight_only
                                  ? spec->activation_format
                                  : target->weights;
    if (spec->activation_symmetric == QDQ_DEFAULT)
        spec->activation_symmetric =
            has_negatives(spec->activation_format) ? QDQ_YES : QDQ_NO;
    if (spec->weight_storage == QDQ_STORE_DEFAULT)
        spec->weight_storage = spec->weight_only ? QDQ_STORE_DQ : target->storage;
    if (spec->bias_correction == QDQ_BIASES_DEFAULT)
        spec->bias_correction = spec->weight_rounding == QDQ_ROUND_NEAREST
                                    ? QDQ_BIASES_NONE
                                    : QDQ_BIASES_ALL;
    if (spec->recipe == QDQ_RECIPE_DEFAULT)
        spec->recipe = default_recipe(spec);
    if (spec->host == QDQ_HOST_AUTO)
        spec->host = qdqi_host_here();
    qdqi_rules_decide(spec);
}
