/* SPDX-License-Identifier: Apache-2.0 */
/* The member accept: bounds for all floating outputs, and in `outputs` for single ones. */
#include "config.h"
#include "spec/members.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- bounds --------------------------------------------------------------- */

/* The possible values of each figure. A bound outside of them is a mistake. */
static const struct {
    const char *gate;
    double min, max;
} limits[] = {
    {"min_sqnr_db", -DBL_MAX, DBL_MAX},
    {"max_kl", 0, DBL_MAX},
    {"min_cosine", -1, 1},
    {"max_abs_error", 0, DBL_MAX},
    {"min_top1_agreement", 0, 1},
    {"max_size_ratio", 0, DBL_MAX},
    {"max_latency_ratio", 0, DBL_MAX},
    {"min_slice_sqnr_db", -DBL_MAX, DBL_MAX},
    {"max_task_drop", -DBL_MAX, DBL_MAX},
};

bool
api_decode_bound(struct decoder *d, const struct member *m, json_t *value)
{
    const char *gate = strrchr(m->pointer, '/') + 1;
    double bound = json_number_value(value);
    size_t i = 0;
    while (strcmp(limits[i].gate, gate) != 0)
        i++;
    if (limits[i].max == DBL_MAX && bound < limits[i].min)
        return api_refuse(d, API_INVALID_SPEC, m->pointer,
                          "%s is to be at least %g, not %g",
                          api_label(d, m->pointer).text, limits[i].min, bound);
    if (bound < limits[i].min || bound > limits[i].max)
        return api_refuse(
            d, API_INVALID_SPEC, m->pointer, "%s is to be from %g to %g, not %g",
            api_label(d, m->pointer).text, limits[i].min, limits[i].max, bound);
    *(double *)api_field(d, m) = bound;
    return true;
}

json_t *
api_encode_bound(const void *object, const struct member *m)
{
    double bound;
    memcpy(&bound, (const char *)object + m->field, sizeof bound);
    return api_json_real(bound); /* null for NaN, which is no bound */
}

/* --- outputs -------------------------------------------------------------- */

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_output_gate, gate.name))

static const struct member members[] = {
    {"/min_sqnr_db", NUMBER, BOUND(min_sqnr_db)},
    {"/min_slice_sqnr_db", NUMBER, BOUND(min_slice_sqnr_db)},
    {"/max_kl", NUMBER, BOUND(max_kl)},
    {"/min_cosine", NUMBER, BOUND(min_cosine)},
    {"/max_abs_error", NUMBER, BOUND(max_abs_error)},
    {"/min_top1_agreement", NUMBER, BOUND(min_top1_agreement)},
};

static const struct table table = TABLE(members);

static bool
decode_gate(struct decoder *d, const char *output, json_t *item)
{
    *(struct qdq_output_gate *)d->object =
        (struct qdq_output_gate){output, {NAN, NAN, NAN, NAN, NAN, NAN}};
    if (json_is_object(item))
        return api_decode_members(d, "", item);
    return api_refuse(d, API_INVALID_SPEC, "",
                      "the gate of \"%.128s\" is to be an object, not %s", output,
                      api_json_type_name(item));
}

const struct list api_output_gates = {
    .size = sizeof(struct qdq_output_gate),
    .max = API_COUNT_MAX,
    .table = &table,
    .decode = decode_gate,
    .items = offsetof(struct qdq_spec, accept.outputs),
    .n = offsetof(struct qdq_spec, accept.n_outputs),
};

/* --- check ---------------------------------------------------------------- */

static bool
has_bound(const struct qdq_gate *gate)
{
    return !isnan(gate->min_sqnr_db) || !isnan(gate->min_slice_sqnr_db) ||
           !isnan(gate->min_cosine) || !isnan(gate->max_kl) ||
           !isnan(gate->max_abs_error) || !isnan(gate->min_top1_agreement);
}

bool
api_check_accept(struct decoder *d)
{
    const struct qdq_spec *spec = &d->to->spec;
    bool any = has_bound(&spec->accept.all);
    for (size_t i = 0; i < spec->accept.n_outputs; i++)
        any = any || has_bound(&spec->accept.outputs[i].gate);
    return !any || spec->evaluate != QDQ_NO ||
           api_refuse(d, API_INVALID_SPEC, "/accept",
                      "accept needs an evaluation, and evaluate is false");
}
