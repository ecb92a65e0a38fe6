/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/candidates/make.h"

#include "files/data/inputs.h"
#include "stages/calibrate/calibrate.h"
#include "stages/scale/scale.h"
#include "stages/smooth/smooth.h"
#include "transform/prepare/prepare.h"

enum qdq_code
qdqi_attempt_make(struct qdqi_attempt *a, struct qdq_error *err)
{
    enum qdq_code code =
        qdq_model_prepare(a->context->original, a->spec, &a->prepared, err);
    if (a->prepared)
        a->model = a->prepared;
    if (code || (code = qdqi_attempt_equalize(a, err)) ||
        (code = qdqi_inputs_fix(&a->model->info, a->spec, a->arena, &a->fixed, err)) ||
        (code = qdqi_smooth(a, err)) || (code = qdqi_attempt_plan(a, err)) ||
        (code = qdqi_calibrate(a, err)))
        return code;
    return qdqi_choose_scales(a, err);
}
