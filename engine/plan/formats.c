/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan's formats need of the target. */
#include "config.h"
#include "plan/rules.h"

/* Whether TensorRT takes such an activation: NVIDIA's documentation of explicit
   quantization names int8 and float8e4m3fn, with zero points of 0. */
static bool
is_known_to_tensorrt(const struct qdqi_planned_tensor *t)
{
    return t->symmetric &&
           (t->format == QDQI_TO_INT8 || t->format == QDQI_TO_FLOAT8E4M3FN);
}

enum qdq_code
qdqi_check_formats(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_planned_tensor *t = p->plan->activations;
    if (p->spec->target != QDQ_TARGET_TENSORRT || p->plan->view.n_tensors == 0 ||
        is_known_to_tensorrt(t))
        return QDQ_OK;
    enum qdq_code code =
        qdqi_warn(&p->warnings, p->plan->arena, err, "target_format", NULL,
                  "TensorRT takes activations of int8 or float8e4m3fn whose zero "
                  "point is 0: it would refuse the model with %s %s",
                  t->symmetric ? "symmetric" : "asymmetric",
                  qdqi_format_row((int)t->format)->name);
    if (!code)
        p->warnings.rows[p->warnings.n - 1].rule = qdq_rule(QDQI_RULE_T1)->id;
    return code;
}
