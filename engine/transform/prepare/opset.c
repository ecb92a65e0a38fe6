/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/prepare.h"

#include "plan/placement/formats.h"
#include "plan/placement/target.h"
#include "transform/prepare/convert_opset.h"

/* --- the opset that is needed -------------------------------------------- */

/* The first opsets of ONNX with Q/DQ (QuantizeLinear-10), with Q/DQ along an axis
   (-13), with Q/DQ of float16 (-19), and with bfloat16 in all operators. */
enum { OPSET_QDQ = 10, OPSET_AXIS = 13, OPSET_19 = 19, OPSET_22 = 22 };

static const int64_t levels[] = {28, 25,       24,         23,       OPSET_22,
                                 21, OPSET_19, OPSET_AXIS, OPSET_QDQ};

static bool
has_float16(const struct qdq_model *model)
{
    for (size_t i = 0; i < model->graph.n_nodes; i++) {
        const struct qdqi_node *node = &model->graph.nodes[i];
        for (size_t k = 0; k < node->proto->n_input; k++)
            if (node->inputs[k] && node->inputs[k]->dtype == QDQI_FLOAT16)
                return true;
    }
    return false;
}

/* Returns the first opset of ONNX that supports everything the spec asks for in this
   model. */
static int64_t
opset_needed(const struct qdq_spec *spec, const struct qdq_model *model)
{
    int64_t needed = OPSET_QDQ, formats = qdqi_formats_opset(spec);
    if (has_float16(model))
        needed = OPSET_19;
    if (spec->float_type != QDQ_FLOAT_KEEP)
        needed = spec->float_type == QDQ_FLOAT_FLOAT16 ? OPSET_19 : OPSET_22;
    needed = formats > needed ? formats : needed;
    struct qdq_spec complete = *spec;
    qdq_spec_complete(&complete);
    const struct qdqi_hooks *hooks = complete.target->hooks;
    const int64_t least = hooks->least_opset ? hooks->least_opset(&complete, model) : 0;
    return least > needed ? least : needed;
}

/* --- the conversion ------------------------------------------------------ */

/* Converts the model. *ret stays NULL when a node prevents it. */
static enum qdq_code
raise_to(const struct qdq_model *model, int64_t to, struct qdqi_obstacle *obstacle,
         struct qdq_model **ret, struct qdq_error *err)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_edited edited = {.proto = NULL};
    enum qdq_code code =
        arena ? qdqi_convert_opset(model, to, arena, &edited, obstacle, err)
              : qdqi_no_memory(err);
    if (!code && !obstacle->opset)
        code = qdqi_model_derive(model, &edited, &arena, ret, err);
    qdqi_arena_free(&arena);
    return code;
}

static enum qdq_code
warn_opset_raised(struct qdqi_preparing *p, int64_t from, int64_t to,
                  struct qdq_error *err)
{
    return qdqi_warn(&p->warnings, p->arena, err, "opset_raised", NULL,
                     "the model was brought from opset %lld to %lld", (long long)from,
                     (long long)to);
}

/* Converts as far as the scheme needs, or as far as the first node that prevents
   more; the plan then uses what that opset offers. */
static enum qdq_code
raise_auto(struct qdqi_preparing *p, struct qdq_model **ret, struct qdq_error *err)
{
    int64_t from = qdqi_model_opset(p->model->proto);
    int64_t needed = opset_needed(p->spec, p->model), to = needed;
    struct qdqi_obstacle first = {.opset = 0}, obstacle = {.opset = 0};
    enum qdq_code code = QDQ_OK;
    while (to > from) {
        if ((code = raise_to(p->model, to, &obstacle, ret, err)))
            return code;
        if (!obstacle.opset)
            break;
        if (!first.opset)
            first = obstacle;
        to = from;
        for (size_t i = sizeof levels / sizeof *levels; i-- > 0;)
            if (levels[i] < obstacle.opset && levels[i] > to)
                to = levels[i];
    }
    if (first.opset)
        code = qdqi_warn(&p->warnings, p->arena, err, "opset_kept",
                         *first.node ? first.node : NULL,
                         "the scheme wants opset %lld, the model stays at %lld: %s "
                         "cannot be brought to opset %lld: %s",
                         (long long)needed, (long long)to, first.op,
                         (long long)first.opset, first.why);
    return code || !*ret ? code : warn_opset_raised(p, from, to, err);
}

static enum qdq_code
raise_as_asked(struct qdqi_preparing *p, struct qdq_model **ret, struct qdq_error *err)
{
    int64_t from = qdqi_model_opset(p->model->proto), to = p->spec->opset;
    struct qdqi_obstacle obstacle = {.opset = 0};
    if (to < QDQI_OPSET_MIN || to > QDQI_OPSET_MAX)
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/opset",
                             "opset is to be from %d to %d, not %lld", QDQI_OPSET_MIN,
                             QDQI_OPSET_MAX, (long long)to);
    if (to < from)
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/opset",
                             "the model's opset is %lld already, and a model is not "
                             "taken back to %lld",
                             (long long)from, (long long)to);
    if (from < QDQI_OPSET_MIN)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/opset",
                             "the model's opset is %lld; models are raised from %d on",
                             (long long)from, QDQI_OPSET_MIN);
    if (to == from)
        return QDQ_OK;
    enum qdq_code code = raise_to(p->model, to, &obstacle, ret, err);
    if (!code && obstacle.opset)
        return qdq_error_set(err, QDQ_UNSUPPORTED,
                             *obstacle.node ? QDQ_AT_NODE : QDQ_AT_NOTHING,
                             obstacle.node,
                             "the model cannot be raised to opset %lld: node '%s' (%s) "
                             "cannot be brought to opset %lld: %s",
                             (long long)to, obstacle.node, obstacle.op,
                             (long long)obstacle.opset, obstacle.why);
    return code ? code : warn_opset_raised(p, from, to, err);
}

enum qdq_code
qdqi_step_opset(struct qdqi_preparing *p, struct qdq_model **ret, struct qdq_error *err)
{
    int64_t from = qdqi_model_opset(p->model->proto);
    if (p->spec->opset == QDQ_OPSET_KEEP)
        return QDQ_OK;
    if (p->spec->opset != QDQ_OPSET_AUTO)
        return raise_as_asked(p, ret, err);
    if (from == 0 || from >= opset_needed(p->spec, p->model))
        return QDQ_OK;
    if (from < QDQI_OPSET_MIN)
        return qdqi_warn(&p->warnings, p->arena, err, "opset_kept", NULL,
                         "the model's opset is %lld; models are raised from %d on",
                         (long long)from, QDQI_OPSET_MIN);
    return raise_auto(p, ret, err);
}
