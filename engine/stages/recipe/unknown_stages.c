/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/unknown_stages.h"

#include "numbers/range/method.h"
#include "stages/recipe/recipe.h"

static bool
reconstructs(const struct qdq_spec *spec)
{
    bool any = spec->weights.rounding == QDQ_ROUND_RECONSTRUCT;
    for (size_t i = 0; i < spec->n_layers && !any; i++)
        any = spec->layers[i].weights &&
              spec->layers[i].weights->rounding == QDQ_ROUND_RECONSTRUCT;
    return any;
}

uint64_t
qdqi_unknown_stages(const struct qdqi_attempt *a)
{
    const struct qdq_spec *spec = a->spec;
    const struct qdqi_method *method = qdqi_method_find(spec->calibration.method);
    const bool asked[QDQ_N_STAGES] = {
        [QDQ_STAGE_QUANTIZE] = qdq_spec_rounds(spec) || spec->smooth_awq,
        [QDQ_STAGE_REFINE] = method && method->start,
        [QDQ_STAGE_SENSITIVITY] = spec->sensitivity_samples > 0,
        [QDQ_STAGE_SEARCH] = qdq_spec_searches(spec),
        [QDQ_STAGE_RECIPE] = qdqi_recipe_chooses(a),
        [QDQ_STAGE_RECONSTRUCT] = reconstructs(spec),
        [QDQ_STAGE_PROFILE] = spec->profile.runs > 0,
    };
    uint64_t stages = 0;
    for (int i = 0; i < QDQ_N_STAGES; i++)
        stages |= (uint64_t)asked[i] << i;
    return stages;
}
