/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/sampled_moments.h"

#include "plan/placement/formats.h"
#include "qdq/targets.h"

static bool
is_reconstructed(const struct qdq_layer_format *f)
{
    return f->weights.rounding == QDQ_ROUND_RECONSTRUCT;
}

bool
qdqi_sampled_moments_decide(const struct qdq_spec *spec, const char **ret_reason)
{
    const bool any = qdqi_spec_has(spec, is_reconstructed);
    *ret_reason = any ? "other data have other products" : "no weights are rounded so";
    return any;
}

bool
qdqi_shrinks_moments(const struct qdq_spec *spec)
{
    const int rule = qdq_target_find_rule(spec->target, "P8");
    return rule >= 0 && qdq_spec_has_rule(spec, (size_t)rule);
}
