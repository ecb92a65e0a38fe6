/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/zero_points.h"

#include "qdq/targets.h"

bool
qdqi_zero_points_decide(const struct qdq_spec *spec, const char **ret_reason)
{
    const bool is_alone = spec->weight_only && !spec->dynamic;
    *ret_reason = is_alone ? "they would take bytes and change no number"
                           : "activations are quantized, too";
    return is_alone;
}

bool
qdqi_leaves_out_zeros(const struct qdq_spec *spec)
{
    const int rule = qdq_target_find_rule(spec->target, "P6");
    return rule >= 0 && qdq_spec_has_rule(spec, (size_t)rule);
}
