/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/shared/plain_forms.h"

#include "qdq/targets.h"

bool
qdqi_plain_forms_decide(const char **ret_reason)
{
    *ret_reason = "such layers can be quantized then";
    return true;
}

static bool
has(const struct qdq_spec *spec, const char *id)
{
    const int rule = qdq_target_find_rule(spec->target, id);
    return rule >= 0 && qdq_spec_has_rule(spec, (size_t)rule);
}

bool
qdqi_has_plain_forms(const struct qdq_spec *spec)
{
    return has(spec, "P1");
}

bool
qdqi_has_plain_attention(const struct qdq_spec *spec)
{
    return has(spec, "P3");
}

bool
qdqi_has_plain_causal(const struct qdq_spec *spec)
{
    return has(spec, "P7");
}
