/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/likely_causes.h"

#include "plan/gates/judged.h"
#include "graph/layers/operators.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const recurrent[] = {"LSTM", "GRU", "RNN", NULL};
static const char *const softmax[] = {"Softmax", "LogSoftmax", NULL};
static const char *const gates[] = {"Sigmoid",   "HardSigmoid", "Swish",
                                    "HardSwish", "Mish",        NULL};
static const char *const norms[] = {"ReduceMean",
                                    "ReduceSum",
                                    "Sqrt",
                                    "Pow",
                                    "Reciprocal",
                                    "Erf",
                                    "LayerNormalization",
                                    "InstanceNormalization",
                                    NULL};
static const char *const small[] = {"Add", "Sub", "Mul", "Div", NULL};

/* The literal arithmetic is better by at least this where sums saturate. */
static const double saturates_db = 3;

/* Returns whether an operator of the list makes an input of the node or reads its output,
   at most `far` small operators away. */
static bool
is_near(const struct qdqi_graph *graph, const struct qdqi_node *node,
        const char *const *ops, int far)
{
    if (qdqi_node_is_one_of(node->proto, ops))
        return true;
    for (size_t i = 0; far > 0 && i < node->proto->n_output; i++) {
        const struct qdqi_tensor *t = node->outputs[i];
        for (const struct qdqi_use *use = t ? t->uses : NULL; use; use = use->next) {
            const struct qdqi_node *next = &graph->nodes[use->node];
            if (qdqi_node_is_one_of(next->proto, ops) ||
                (qdqi_node_is_one_of(next->proto, small) &&
                 is_near(graph, next, ops, far - 1)))
                return true;
        }
    }
    for (size_t i = 0; far > 0 && i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        if (t && t->producer >= 0 &&
            qdqi_node_is_one_of(graph->nodes[t->producer].proto, ops))
            return true;
    }
    return false;
}

/* Returns whether the node reads a state: an input of the model that an output has the
   type and shape of. */
static bool
reads_state(const struct qdq_model *model, const struct qdqi_node *node)
{
    const struct qdq_model_info *info = &model->info;
    for (size_t i = 0; i < node->proto->n_input; i++)
        for (size_t k = 0; node->inputs[i] && k < info->n_inputs; k++) {
            const struct qdq_value *in = &info->inputs[k];
            if (strcmp(node->inputs[i]->name, in->name) != 0 || in->rank < 3)
                continue;
            for (size_t o = 0; o < info->n_outputs; o++)
                if (info->outputs[o].rank == in->rank &&
                    strcmp(info->outputs[o].dtype, in->dtype) == 0 &&
                    strstr(info->outputs[o].name, in->name))
                    return true;
        }
    return false;
}

static double
worst_of(const struct qdq_output_report *outputs, size_t n)
{
    double worst = INFINITY;
    for (size_t i = 0; i < n; i++)
        worst = fmin(worst, qdqi_judged_sqnr(&outputs[i]));
    return worst;
}

/* Returns whether the result is worse as deployed because sums saturate. */
static bool
saturates(const struct qdqi_attempt *a, const struct qdq_report *r,
          const struct qdq_layer *layer)
{
    return r->deployed && qdqi_is_product(layer->op) &&
           a->spec->host == QDQ_HOST_AVX2 &&
           worst_of(r->outputs, r->n_outputs) >
               worst_of(r->deployed->outputs, r->deployed->n_outputs) + saturates_db;
}

/* Returns the planned activation with the largest range that the layer reads, or NULL. */
static const char *
widest_input(const struct qdqi_attempt *a, const struct qdq_layer *layer,
             double *ret_min, double *ret_max)
{
    const char *found = NULL;
    double widest = 0;
    for (size_t i = 0; i < layer->n_inputs; i++) {
        const struct qdqi_range *range = &a->ranges[layer->input_rows[i]];
        if (range->max - range->min <= widest)
            continue;
        widest = range->max - range->min;
        found = a->plan->view.tensors[layer->input_rows[i]];
        *ret_min = range->min;
        *ret_max = range->max;
    }
    return found;
}

static const char *
structure_of(const struct qdqi_attempt *a, const struct qdqi_node *node)
{
    const struct qdqi_graph *graph = &a->model->graph;
    if (qdqi_node_is_one_of(node->proto, recurrent) || reads_state(a->model, node))
        return "recurrent state";
    if (is_near(graph, node, softmax, 3))
        return "softmax";
    if (is_near(graph, node, gates, 1) && !qdqi_is_product(node->proto->op_type))
        return "gate";
    if (is_near(graph, node, norms, 2) && !qdqi_is_product(node->proto->op_type))
        return "decomposed normalization";
    return NULL;
}

const char *
qdqi_likely_cause(const struct qdqi_attempt *a, const struct qdq_report *r,
                  const char *name, char *text, size_t size)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    const struct qdq_layer *layer = NULL;
    double min = 0, max = 0;
    for (size_t i = 0; i < plan->n_layers && !layer; i++)
        if (strcmp(plan->layers[i].name, name) == 0)
            layer = &plan->layers[i];
    const char *why =
        layer ? structure_of(a, &a->model->graph.nodes[layer->node]) : NULL;
    const char *input = layer && !why ? widest_input(a, layer, &min, &max) : NULL;
    if (why)
        snprintf(text, size, "%s", why);
    else if (layer && saturates(a, r, layer))
        snprintf(text, size, "saturation");
    else if (input)
        qdq_text_print(text, size, "range: it reads '%.60s' from %.3g to %.3g", input,
                       min, max);
    else
        snprintf(text, size, "its weight");
    return text;
}
