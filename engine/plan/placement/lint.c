/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the target's warnings to a plan. The plan itself does not change: it does
   what the spec asks for. */
#include "config.h"
#include "plan/placement/lint.h"

#include "files/model/constant.h"
#include "graph/layers/operators.h"
#include "plan/placement/target.h"

#include <string.h>

static enum qdq_code
warn(struct planner *p, const struct qdqi_lint *lint, const struct qdqi_names *layers,
     struct qdq_error *err)
{
    enum qdq_code code = qdqi_warn(&p->warnings, p->plan->arena, err, lint->code,
                                   layers->first, "%zu layer%s (%s): %s", layers->n,
                                   layers->n == 1 ? "" : "s", layers->text, lint->text);
    if (!code && lint->rule != QDQI_NO_RULE)
        p->warnings.rows[p->warnings.n - 1].rule = qdqi_rule_id(p, lint->rule);
    return code;
}

/* --- warnings of all targets ------------------------------------------------ */

enum { MOST_STEPS = 8 }; /* from a weight back to the integers that it is made of */

/* Returns whether a weight is computed from a constant of small integers: quantized by
   hand. */
static bool
is_made_of_integers(const struct qdqi_graph *graph, const struct qdqi_tensor *t)
{
    static const char *const steps[] = {
        "Cast", "Mul", "Sub", "Add", "Div", "Reshape", "Transpose", "Identity", NULL};
    for (int i = 0; i < MOST_STEPS && t && t->producer >= 0; i++) {
        const struct qdqi_node *node = &graph->nodes[t->producer];
        if (!qdqi_node_is_one_of(node->proto, steps) || node->proto->n_input == 0 ||
            !(t = node->inputs[0]))
            return false;
        if (qdqi_node_is(node->proto, "Cast") && t->constant)
            return t->dtype == QDQI_INT8 || t->dtype == QDQI_UINT8 ||
                   t->dtype == QDQI_INT4 || t->dtype == QDQI_UINT4;
    }
    return false;
}

static bool
lint_integer_weights(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = &p->model->graph.nodes[layer->node];
    return qdqi_is_product(layer->op) && node->proto->n_input > 1 && node->inputs[1] &&
           node->inputs[1]->is_fixed &&
           is_made_of_integers(&p->model->graph, node->inputs[1]);
}

static const struct qdqi_lint everywhere[] = {
    {QDQI_LINT(integer_weights), QDQI_NO_RULE,
     "the weight is computed from stored integers, so the model is quantized by hand: "
     "quantize the float model that it was made of",
     QDQI_LINT_ALWAYS},
    {0},
};

/* --- warnings of a target --------------------------------------------------- */

/* Returns whether the warning is one for the version that the spec states, or does not state. */
static bool
is_in_scope(const struct planner *p, const struct qdqi_lint *lint)
{
    const bool states_version = p->spec->version != QDQ_VERSION_UNSTATED;
    return lint->scope == QDQI_LINT_ALWAYS ||
           (lint->scope == QDQI_LINT_AS_PLANNED) == states_version;
}

/* Returns whether a warning is due to a layer. */
static bool
applies(const struct planner *p, const struct qdqi_lint *lint,
        const struct qdq_layer *layer)
{
    return lint->means ? lint->means(p, layer)
                       : qdqi_layer_is_quantized(layer) &&
                             qdqi_rule_means(p, lint->rule, layer);
}

struct qdqi_layer_count
qdqi_count_layers(const struct planner *p,
                  bool (*means)(const struct planner *p, const struct qdq_layer *layer))
{
    struct qdqi_layer_count count = {0, NULL};
    for (size_t i = 0; i < p->n_layers; i++)
        if (means(p, &p->layers[i]) && count.n++ == 0)
            count.first = p->layers[i].name;
    return count;
}

enum qdq_code
qdqi_warn_count(struct planner *p, const struct qdqi_layer_count *count,
                const char *code, const char *text, struct qdq_error *err)
{
    const bool one = count->n == 1;
    return count->n == 0
               ? QDQ_OK
               : qdqi_warn(&p->warnings, p->plan->arena, err, code, count->first,
                           "%zu layer%s (%.128s%s): %s", count->n, one ? "" : "s",
                           count->first, one ? "" : ", ...", text);
}

enum qdq_code
qdqi_warn_misread(struct planner *p, const struct qdqi_names *nodes, const char *text,
                  struct qdq_error *err)
{
    return nodes->n == 0
               ? QDQ_OK
               : qdqi_warn(&p->warnings, p->plan->arena, err, "misread_by_target",
                           nodes->first, "%zu node%s (%s): %s", nodes->n,
                           nodes->n == 1 ? "" : "s", nodes->text, text);
}

/* Returns whether the node gives what is computed from data more than one scale. */
static bool
has_several_scales(const struct qdqi_node *node)
{
    enum { DATA, SCALE };
    const int64_t *dims;
    size_t rank, n = 0;
    return qdqi_node_is(node->proto, "QuantizeLinear") &&
           node->proto->n_input > SCALE && node->inputs[DATA] &&
           !node->inputs[DATA]->is_fixed && node->inputs[SCALE] &&
           qdqi_tensor_dims(node->inputs[SCALE], &dims, &rank) &&
           qdqi_count_elements(dims, rank, &n) && n > 1;
}

enum qdq_code
qdqi_warn_several_scales(struct planner *p, const char *text, struct qdq_error *err)
{
    struct qdqi_names nodes = {0};
    for (size_t i = 0; i < p->model->graph.n_nodes; i++)
        if (has_several_scales(&p->model->graph.nodes[i]))
            qdqi_names_add(&nodes, p->model->graph.nodes[i].name);
    return qdqi_warn_misread(p, &nodes, text, err);
}

/* --- all warnings ----------------------------------------------------------- */

static enum qdq_code
add_warnings(struct planner *p, const struct qdqi_lint *lint, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (; lint && lint->code && !code; lint++) {
        struct qdqi_names layers = {0};
        for (size_t i = 0; is_in_scope(p, lint) && i < p->n_layers; i++)
            if (applies(p, lint, &p->layers[i]))
                qdqi_names_add(&layers, p->layers[i].name);
        if (layers.n > 0)
            code = warn(p, lint, &layers, err);
    }
    return code;
}

enum qdq_code
qdqi_lint(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = add_warnings(p, everywhere, err);
    /* With weights alone no layer computes in int8, unless the model has pairs of
       its own. */
    if (code ||
        (p->plan->view.n_tensors == 0 && p->spec->existing_qdq == QDQ_EXISTING_ERROR))
        return code;
    return add_warnings(p, p->spec->target->hooks->lints, err);
}
