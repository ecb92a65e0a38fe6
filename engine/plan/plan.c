/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan, made in three steps: every node of a known class is decided on (decide),
 * the pairs are counted, each tensor once (collect), the whole is checked against what
 * the model's opset allows. Nothing here looks at data or runs a model.
 */
#include "config.h"
#include "plan/plan.h"

#include "base/warnings.h"
#include "plan/classes.h"

#include <stdlib.h>
#include <string.h>

/* First opsets of ONNX with Q/DQ per tensor, and along an axis (QuantizeLinear-10,-13).
 */
enum { OPSET_QDQ = 10, OPSET_AXIS = 13 };

struct planner {
    const struct qdq_model *model;
    const struct qdq_spec *spec;
    struct qdq_plan *plan;
    struct qdq_layer *layers;
    size_t n_layers;
    struct qdqi_warnings warnings;
    bool per_channel;
};

/* --- one decision per node ------------------------------------------------ */

/* NULL when a tensor of this element type can be quantized, else why not. */
static const char *
why_not_dtype(enum qdqi_dtype dtype)
{
    switch (dtype) {
    case QDQI_FLOAT32:
        return NULL;
    case QDQI_UNKNOWN:
        return "element type unknown";
    case QDQI_FLOAT16:
    case QDQI_BFLOAT16:
    case QDQI_FLOAT64:
        return "element type is not float32";
    default:
        return "integer tensor";
    }
}

static bool
is_empty(const Onnx__TensorProto *weight)
{
    for (size_t i = 0; i < weight->n_dims; i++)
        if (weight->dims[i] == 0)
            return true;
    return false;
}

/* Gives the layer its activation inputs: all data inputs but `weight_input`. */
static const char *
take_inputs(struct planner *p, const struct qdqi_node *node, struct qdq_layer *layer,
            int weight_input, size_t limit, struct qdq_error *err)
{
    int *inputs = qdqi_arena_array(p->plan->arena, limit, sizeof *inputs);
    if (!inputs) {
        qdqi_no_memory(err);
        return NULL;
    }
    size_t n = 0;
    for (int i = 0; i < (int)limit && (size_t)i < node->proto->n_input; i++) {
        if (i == weight_input)
            continue;
        if (!qdqi_input_is_computed(node, i))
            return "input is constant";
        /* The weight's type is the input's, too: operators bind both to one T. */
        enum qdqi_dtype dtype = node->inputs[i]->dtype;
        const char *why = why_not_dtype(dtype);
        if (why && !(dtype == QDQI_UNKNOWN && weight_input >= 0))
            return why;
        inputs[n++] = i;
    }
    layer->quantized_inputs = inputs;
    layer->n_inputs = n;
    return NULL;
}

/* Decides on a node of a class that is on. Returns why it is left alone, or NULL. */
static const char *
take_layer(struct planner *p, const struct qdqi_class *cls,
           const struct qdqi_node *node, struct qdq_layer *layer, struct qdq_error *err)
{
    if (cls->kind != QDQ_WEIGHTED)
        return take_inputs(p, node, layer, -1,
                           cls->kind == QDQ_NON_WEIGHTED ? 1 : node->proto->n_input,
                           err);
    int w = qdqi_weight_input(cls, node);
    if (!qdqi_input_is_constant(node, w))
        return "weight is not constant";
    const struct qdqi_tensor *weight = node->inputs[w];
    const char *why = why_not_dtype((enum qdqi_dtype)weight->constant->data_type);
    if (why)
        return why;
    if (is_empty(weight->constant))
        return "weight is empty";
    /* Input 2 is the bias, which stays in floating point. */
    why = take_inputs(p, node, layer, w, 2, err);
    if (why)
        return why;
    layer->weight_input = w;
    layer->weight = weight->name;
    if (p->per_channel)
        layer->weight_axis = cls->axis(node, w, weight->constant->n_dims);
    return NULL;
}

static enum qdq_code
decide(struct planner *p, size_t i, struct qdq_error *err)
{
    const struct qdqi_node *node = &p->model->graph.nodes[i];
    const struct qdqi_class *cls = qdqi_class_of(NULL, p->model, node);
    if (!cls)
        return QDQ_OK;
    struct qdq_layer *layer = &p->layers[p->n_layers++];
    *layer = (struct qdq_layer){.name = node->name,
                                .op = node->proto->op_type,
                                .cls = cls->support.cls,
                                .node = i,
                                .weight_input = -1,
                                .weight_axis = -1};
    struct qdq_error failed = {0};
    const char *why = cls->support.quantize_input
                          ? take_layer(p, cls, node, layer, &failed)
                          : "off by default";
    if (failed.code)
        return qdq_error_set(err, failed.code, failed.kind, failed.where, "%s",
                             failed.text);
    if (why)
        layer->n_inputs = 0;
    layer->reason = why ? why : "default";
    return QDQ_OK;
}

static bool
is_quantized(const struct qdq_layer *layer)
{
    return layer->n_inputs > 0 || layer->weight_input >= 0;
}

/* --- each tensor once ----------------------------------------------------- */

static enum qdq_code
collect_layer(struct planner *p, const struct qdq_layer *layer, struct qdqi_map *seen,
              const char **names, struct qdq_error *err)
{
    struct qdq_plan *plan = p->plan;
    const struct qdqi_node *node = &p->model->graph.nodes[layer->node];
    for (size_t i = 0; i < layer->n_inputs; i++) {
        struct qdqi_tensor *t = node->inputs[layer->quantized_inputs[i]];
        if (qdqi_map_get(seen, t->name))
            continue;
        if (!qdqi_map_put(seen, t->name, t))
            return qdqi_no_memory(err);
        names[plan->view.n_tensors] = t->name;
        plan->activations[plan->view.n_tensors++] = t;
    }
    if (layer->weight_input < 0)
        return QDQ_OK;
    const char *key =
        qdqi_arena_printf(plan->arena, "%s/%d", layer->weight, layer->weight_axis);
    if (key && qdqi_map_get(seen, key))
        return QDQ_OK;
    struct qdqi_tensor *t = node->inputs[layer->weight_input];
    if (!key || !qdqi_map_put(seen, key, t))
        return qdqi_no_memory(err);
    plan->weights[plan->view.n_weights++] =
        (struct qdqi_planned_weight){t, layer->weight_axis, layer->name};
    return QDQ_OK;
}

static enum qdq_code
collect(struct planner *p, struct qdq_error *err)
{
    struct qdq_plan *plan = p->plan;
    size_t n_inputs = 0;
    for (size_t i = 0; i < p->n_layers; i++) {
        n_inputs += p->layers[i].n_inputs;
        plan->view.n_quantized += is_quantized(&p->layers[i]);
    }
    const char **names = qdqi_arena_array(plan->arena, n_inputs, sizeof *names);
    plan->activations =
        qdqi_arena_array(plan->arena, n_inputs, sizeof *plan->activations);
    plan->weights = qdqi_arena_array(plan->arena, p->n_layers, sizeof *plan->weights);
    struct qdqi_map *seen = qdqi_map_new(plan->arena);
    if (!names || !plan->activations || !plan->weights || !seen)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n_layers; i++) {
        enum qdq_code code = collect_layer(p, &p->layers[i], seen, names, err);
        if (code)
            return code;
    }
    plan->view.tensors = names;
    return QDQ_OK;
}

/* --- what the model as a whole allows ------------------------------------- */

/* Operators that say a model is quantized already, or partly. */
static const char *const quantized_ops[] = {
    "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv",
    "QLinearMatMul",  "ConvInteger",      "MatMulInteger",
};

static enum qdq_code
check_not_quantized(const struct qdq_model *model, struct qdq_error *err)
{
    for (size_t i = 0; i < model->graph.n_nodes; i++) {
        const struct qdqi_node *node = &model->graph.nodes[i];
        for (size_t k = 0; k < sizeof quantized_ops / sizeof *quantized_ops; k++)
            if (strcmp(node->proto->op_type, quantized_ops[k]) == 0)
                return qdq_error_set(err, QDQ_EXISTING_QDQ, QDQ_AT_NODE, node->name,
                                     "the model is quantized already: node '%s' is a "
                                     "%s",
                                     node->name, quantized_ops[k]);
    }
    return QDQ_OK;
}

static enum qdq_code
check_given_ranges(struct planner *p, struct qdq_error *err)
{
    const struct qdq_calibration_spec *c = &p->spec->calibration;
    for (size_t i = 0; i < c->n_ranges; i++) {
        const char *name = c->ranges[i].tensor;
        enum qdq_code code = QDQ_OK;
        if (qdqi_map_get(p->model->graph.tensors, name))
            continue;
        if (p->spec->unmatched_is_error)
            code = qdq_error_set(err, QDQ_UNMATCHED, QDQ_AT_TENSOR, name,
                                 "calibration.ranges names '%s', which is no tensor of "
                                 "the model",
                                 name);
        else
            code = qdqi_warn(&p->warnings, p->plan->arena, err, "unmatched", name,
                             "calibration.ranges names a tensor that the model lacks");
        if (code)
            return code;
    }
    return QDQ_OK;
}

static enum qdq_code
check_opset(struct planner *p, struct qdq_error *err)
{
    int64_t opset = qdqi_model_opset(p->model->proto);
    if (p->plan->view.n_quantized == 0)
        return qdqi_warn(&p->warnings, p->plan->arena, err, "nothing_to_quantize", NULL,
                         "no layer of the model is quantized");
    if (opset < OPSET_QDQ)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_NOTHING, NULL,
                             "the model's opset is %lld; Q/DQ nodes need %d",
                             (long long)opset, OPSET_QDQ);
    if (opset < OPSET_AXIS && p->spec->weight_granularity == QDQ_PER_CHANNEL &&
        p->plan->view.n_weights)
        return qdqi_warn(&p->warnings, p->plan->arena, err, "opset_per_tensor", NULL,
                         "weights are quantized per tensor: per channel needs opset "
                         "%d, the model has %lld",
                         OPSET_AXIS, (long long)opset);
    return QDQ_OK;
}

static enum qdq_code
warn_nested(struct planner *p, struct qdq_error *err)
{
    for (size_t i = 0; i < p->model->graph.n_nodes; i++) {
        const struct qdqi_node *node = &p->model->graph.nodes[i];
        for (size_t k = 0; k < node->proto->n_attribute; k++) {
            const Onnx__AttributeProto *a = node->proto->attribute[k];
            if (!a->g && !a->n_graphs)
                continue;
            enum qdq_code code =
                qdqi_warn(&p->warnings, p->plan->arena, err, "nested_graph", node->name,
                          "nodes inside the nested graphs of this node are left alone");
            if (code)
                return code;
            break;
        }
    }
    return QDQ_OK;
}

static enum qdq_code
make(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = check_not_quantized(p->model, err);
    if (code)
        return code;
    p->per_channel = p->spec->weight_granularity == QDQ_PER_CHANNEL &&
                     qdqi_model_opset(p->model->proto) >= OPSET_AXIS;
    p->layers =
        qdqi_arena_array(p->plan->arena, p->model->graph.n_nodes, sizeof *p->layers);
    if (!p->layers)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->model->graph.n_nodes; i++)
        if ((code = decide(p, i, err)))
            return code;
    if ((code = collect(p, err)) || (code = check_given_ranges(p, err)) ||
        (code = check_opset(p, err)) || (code = warn_nested(p, err)))
        return code;
    struct qdq_plan_view *view = &p->plan->view;
    view->layers = p->layers;
    view->n_layers = p->n_layers;
    view->warnings = p->warnings.rows;
    view->n_warnings = p->warnings.n;
    return QDQ_OK;
}

enum qdq_code
qdq_plan_make(const struct qdq_catalog *catalog, const struct qdq_model *model,
              const struct qdq_spec *spec, struct qdq_plan **ret, struct qdq_error *err)
{
    (void)catalog;
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_plan *plan = arena ? qdqi_arena_alloc(arena, sizeof *plan) : NULL;
    if (!plan) {
        qdqi_arena_free(&arena);
        return qdqi_no_memory(err);
    }
    plan->arena = arena;
    struct planner p = {.model = model, .spec = spec, .plan = plan};
    enum qdq_code code = make(&p, err);
    if (code) {
        qdq_plan_free(&plan);
        return code;
    }
    *ret = plan;
    return QDQ_OK;
}

void
qdq_plan_free(struct qdq_plan **plan)
{
    if (!plan || !*plan)
        return;
    struct qdqi_arena *arena = (*plan)->arena; /* the plan itself lies in it */
    qdqi_arena_free(&arena);
    *plan = NULL;
}

const struct qdq_plan_view *
qdq_plan_view(const struct qdq_plan *plan)
{
    return &plan->view;
}
