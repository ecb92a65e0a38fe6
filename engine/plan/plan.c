/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan, made in steps: classes of all nodes, then the entries of the spec and of its
 * insertion cases choose, then every node of a class is decided on, the pairs are
 * counted, each tensor once, and the whole is checked against what the model's opset
 * allows. Nothing here looks at data or runs a model.
 */
#include "config.h"
#include "plan/plan.h"

#include "cases/case.h"
#include "plan/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First opsets of ONNX with Q/DQ per tensor, and along an axis (QuantizeLinear-10,-13).
 */
enum { OPSET_QDQ = 10, OPSET_AXIS = 13 };

struct planner {
    const struct qdq_catalog *catalog;
    const struct qdq_model *model;
    const struct qdq_spec *spec;
    struct qdq_plan *plan;
    struct qdqi_layers *graph;
    struct qdqi_selection selection;
    struct qdq_layer *layers;
    size_t n_layers;
    struct qdqi_warnings warnings;
    bool per_channel;
};

/* --- who decides ---------------------------------------------------------- */

/* Runs the spec's cases in turn; counts what they returned. */
static enum qdq_code
run_cases(struct planner *p, size_t *ret_entries, struct qdq_error *err)
{
    struct qdqi_arena *arena = p->plan->arena;
    *ret_entries = 0;
    for (size_t i = 0; i < p->spec->n_cases; i++) {
        const struct qdq_case_use *use = &p->spec->cases[i];
        const char *pointer = qdqi_arena_printf(arena, "/cases/%zu", i);
        struct qdq_layer_entry *entries = NULL;
        size_t n = 0;
        enum qdq_code code = pointer ? qdqi_case_run(p->catalog, p->graph, p->spec, use,
                                                     pointer, arena, &entries, &n, err)
                                     : qdqi_no_memory(err);
        if (!code)
            code = qdqi_select_case(&p->selection, use->name, pointer, entries, n, err);
        if (code)
            return code;
        *ret_entries += n;
    }
    return QDQ_OK;
}

/* Warns of layer support that a spec adds for nothing: a misspelt operator, perhaps. */
static enum qdq_code
warn_unused_support(struct planner *p, struct qdq_error *err)
{
    const struct qdq_spec *spec = p->spec;
    struct qdqi_map *used = qdqi_map_new(p->plan->arena);
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < p->model->graph.n_nodes && used && spec->n_support; i++) {
        const struct qdqi_class *cls = p->graph->classes[i];
        if (cls && !qdqi_map_put(used, cls->support.cls, p))
            used = NULL;
    }
    if (!used)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < spec->n_support && !code; i++)
        if (!qdqi_map_get(used, spec->support[i].cls))
            code = qdqi_warn(&p->warnings, p->plan->arena, err, "unmatched", NULL,
                             "layer_support[%zu]: the model has no node of class "
                             "\"%.64s\"",
                             i, spec->support[i].cls);
    return code;
}

static enum qdq_code
select_entries(struct planner *p, struct qdq_error *err)
{
    struct qdqi_arena *arena = p->plan->arena;
    struct qdqi_classes *rows;
    size_t n_from_cases;
    enum qdq_code code;
    if ((code = qdqi_classes_new(p->catalog, p->spec, arena, &rows, err)) ||
        (code = qdqi_layers_new(p->model, rows, arena, &p->graph, err)) ||
        (code = warn_unused_support(p, err)) ||
        (code = qdqi_selection_new(p->graph, p->spec, arena, &p->warnings,
                                   &p->selection, err)) ||
        (code = qdqi_select_spec(&p->selection, p->spec, err)) ||
        (code = run_cases(p, &n_from_cases, err)))
        return code;
    if (p->spec->mode == QDQ_MODE_PARTIAL && p->spec->n_layers + n_from_cases == 0)
        return qdq_error_set(
            err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/mode",
            "partial mode, and neither layers nor cases name anything");
    return QDQ_OK;
}

/* --- one decision per node ------------------------------------------------ */

/* What is wanted of a layer, by its entry or by default. */
struct wish {
    bool input, weight;
    const struct qdq_layer_entry *entry; /* NULL: none */
    const char *reason;
};

static struct wish
wish_for(const struct planner *p, const struct qdqi_class *cls, size_t node)
{
    const struct qdqi_choice *choice = &p->selection.choices[node];
    if (choice->entry)
        return (struct wish){choice->entry->quantize_input,
                             choice->entry->quantize_weight, choice->entry,
                             choice->reason};
    if (p->spec->mode == QDQ_MODE_PARTIAL)
        return (struct wish){.reason = "not selected"};
    bool on = cls->state == QDQI_ON;
    return (struct wish){.input = on && cls->support.quantize_input,
                         .weight = on && cls->support.quantize_weight,
                         .reason = on ? "default" : "off by default"};
}

/* NULL when the layer's weight can be quantized, else why not. */
static const char *
why_no_weight(const struct qdqi_node *node, int weight)
{
    const int64_t *dims;
    size_t rank;
    if (!qdqi_input_is_constant(node, weight))
        return "weight is not constant";
    enum qdqi_input type = qdqi_input_of_dtype(node->inputs[weight]->dtype);
    if (type != QDQI_INPUT_DATA)
        return qdqi_input_reason(type);
    if (!qdqi_tensor_dims(node->inputs[weight], &dims, &rank))
        return "weight is computed from constants";
    for (size_t i = 0; i < rank; i++)
        if (dims[i] == 0)
            return "weight is empty";
    return NULL;
}

/* Gives the layer its weight. Returns why it cannot have one, or NULL. */
static const char *
take_weight(const struct planner *p, const struct qdqi_class *cls,
            const struct qdqi_node *node, struct qdq_layer *layer)
{
    int w = qdqi_weight_input(cls, node);
    const char *why = why_no_weight(node, w);
    const int64_t *dims;
    size_t rank = 0;
    if (why)
        return why;
    qdqi_tensor_dims(node->inputs[w], &dims, &rank);
    int axis = p->per_channel ? cls->axis(cls, node, w, rank) : -1;
    if (axis == QDQI_BAD_AXIS)
        return "weight lacks the channel axis of its layer support";
    layer->weight_input = w;
    layer->weight_axis = axis;
    layer->weight = node->inputs[w]->name;
    return NULL;
}

/* Whether the entry's quantization_index has input i; without one, all are in it. */
static bool
is_indexed(const struct qdq_layer_entry *entry, int i)
{
    if (!entry || !entry->index)
        return true;
    for (size_t k = 0; k < entry->n_index; k++)
        if (entry->index[k] == i)
            return true;
    return false;
}

/*
 * Gives the layer its data inputs, those that `wish` wants. Returns why it can have
 * none, or NULL. Of several inputs constants and integers (Where's condition) are left
 * out; anything else keeps the layer from being quantized by halves.
 */
static const char *
take_inputs(const struct planner *p, const struct qdqi_class *cls,
            const struct qdqi_node *node, const struct wish *wish, int *inputs,
            struct qdq_layer *layer)
{
    enum qdqi_input hindrance = QDQI_INPUT_NO_DATA;
    size_t n_data = 0, n = 0;
    for (int i = 0; (size_t)i < node->proto->n_input; i++) {
        enum qdqi_input input = qdqi_layer_input(p->graph, node, i);
        bool left_out = cls->kind == QDQ_MULTI_INPUT && input > QDQI_INPUT_NO_DATA &&
                        input <= QDQI_INPUT_INTEGER;
        n_data += input == QDQI_INPUT_DATA;
        if (input == QDQI_INPUT_DATA && wish->input && is_indexed(wish->entry, i))
            inputs[n++] = i;
        else if (left_out && hindrance == QDQI_INPUT_NO_DATA)
            hindrance = input;
        else if (input > QDQI_INPUT_NO_DATA && !left_out)
            return qdqi_input_reason(input);
    }
    if (n_data == 0)
        return qdqi_input_reason(hindrance);
    layer->quantized_inputs = inputs;
    layer->n_inputs = n;
    return NULL;
}

/* Decides on a layer of which something is wanted. Returns why it is left alone, or
   NULL. */
static const char *
take_layer(const struct planner *p, const struct qdqi_class *cls,
           const struct qdqi_node *node, const struct wish *wish, int *inputs,
           struct qdq_layer *layer)
{
    const char *why = NULL;
    if (cls->kind == QDQ_WEIGHTED && wish->weight)
        why = take_weight(p, cls, node, layer);
    if (!why)
        why = take_inputs(p, cls, node, wish, inputs, layer);
    if (why) {
        layer->weight_input = layer->weight_axis = -1;
        layer->weight = NULL;
    }
    return why;
}

/* The first index of the entry that is not that of a data input, or -1. */
static int
find_bad_index(const struct planner *p, const struct qdqi_node *node,
               const struct qdq_layer_entry *entry)
{
    for (size_t k = 0; entry && k < entry->n_index; k++)
        if (qdqi_layer_input(p->graph, node, entry->index[k]) == QDQI_INPUT_NO_DATA)
            return (int)k;
    return -1;
}

/* UNMATCHED, or one warning a node, when the entry asks for an input that is no data. */
static enum qdq_code
check_index(struct planner *p, const struct qdqi_node *node, size_t i,
            struct qdq_error *err)
{
    const struct qdqi_choice *choice = &p->selection.choices[i];
    int k = find_bad_index(p, node, choice->entry);
    if (k < 0)
        return QDQ_OK;
    int input = choice->entry->index[k];
    bool there = (size_t)input < node->proto->n_input;
    const char *pointer =
        choice->rank == QDQI_BY_CASE
            ? choice->pointer
            : qdqi_arena_printf(p->plan->arena, "%s/quantization_index/%d",
                                choice->pointer, k);
    if (!pointer)
        return qdqi_no_memory(err);
    return qdqi_unmatched(&p->selection, err, pointer, node->name,
                          "%s asks for input %d of '%.128s' (%s), which %s",
                          choice->reason, input, node->name, node->proto->op_type,
                          there ? "has no data there" : "lacks it");
}

/* Somebody asked for this very layer by its name, so tell where they will look. */
static enum qdq_code
warn_left_alone(struct planner *p, const struct qdq_layer *layer,
                const struct wish *wish, const char *why, struct qdq_error *err)
{
    if (p->selection.choices[layer->node].rank != QDQI_BY_NAME)
        return QDQ_OK;
    return qdqi_warn(&p->warnings, p->plan->arena, err, "not_quantized", layer->name,
                     "%s names it, but it stays in floating point: %s", wish->reason,
                     why);
}

static enum qdq_code
decide(struct planner *p, size_t i, struct qdq_error *err)
{
    const struct qdqi_node *node = &p->model->graph.nodes[i];
    const struct qdqi_class *cls = p->graph->classes[i];
    if (!cls)
        return QDQ_OK;
    struct wish wish = wish_for(p, cls, i);
    struct qdq_layer *layer = &p->layers[p->n_layers++];
    *layer = (struct qdq_layer){.name = node->name,
                                .op = node->proto->op_type,
                                .cls = cls->support.cls,
                                .node = i,
                                .weight_input = -1,
                                .weight_axis = -1,
                                .reason = wish.reason};
    enum qdq_code code = check_index(p, node, i, err);
    if (code || !(wish.input || (wish.weight && cls->kind == QDQ_WEIGHTED)))
        return code;
    int *inputs =
        qdqi_arena_array(p->plan->arena, node->proto->n_input, sizeof *inputs);
    if (!inputs)
        return qdqi_no_memory(err);
    const char *why = take_layer(p, cls, node, &wish, inputs, layer);
    if (!why)
        return QDQ_OK;
    layer->reason = why;
    return warn_left_alone(p, layer, &wish, why, err);
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

/* --- residual connections ------------------------------------------------- */

#define RESIDUAL_CASE "residual"

/* Whether the entry leaves one of the layer's inputs free: a residual connection. */
static bool
leaves_one_free(const struct planner *p, const struct qdqi_node *node,
                const struct qdq_layer_entry *entry)
{
    for (int i = 0; (size_t)i < node->proto->n_input; i++)
        if (qdqi_layer_input(p->graph, node, i) == QDQI_INPUT_DATA &&
            !is_indexed(entry, i))
            return true;
    return false;
}

/*
 * A model with residual connections that neither a case nor a name decides about: the
 * library's case says which they are.
 */
static enum qdq_code
warn_residual(struct planner *p, struct qdq_error *err)
{
    const struct qdq_case_use residual = {.name = RESIDUAL_CASE};
    struct qdq_layer_entry *entries;
    const char *first = NULL;
    size_t n_entries, n = 0;
    enum qdq_code code = qdqi_case_run(NULL, p->graph, p->spec, &residual, "",
                                       p->plan->arena, &entries, &n_entries, err);
    for (size_t i = 0; !code && i < n_entries; i++) {
        const struct qdqi_node *node = qdqi_layer_find(p->graph, entries[i].names[0]);
        size_t index = node ? qdqi_layer_index(p->graph, node) : 0;
        if (!node || p->selection.choices[index].rank >= QDQI_BY_CASE ||
            !leaves_one_free(p, node, &entries[i]))
            continue;
        first = n++ ? first : node->name;
    }
    if (code || !n)
        return code;
    char who[64] = "this residual connection is";
    if (n > 1)
        snprintf(who, sizeof who, "%zu residual connections, this one first, are", n);
    return qdqi_warn(
        &p->warnings, p->plan->arena, err, "residual_without_case", first,
        "%s planned without a case: \"cases\": [\"" RESIDUAL_CASE "\"] lets "
        "one branch stay raw, so that the Add is fused with the layer that "
        "makes it",
        who);
}

static bool
has_adds(const struct planner *p)
{
    for (size_t i = 0; i < p->n_layers; i++)
        if (strcmp(p->layers[i].op, "Add") == 0 || strcmp(p->layers[i].op, "Sum") == 0)
            return true;
    return false;
}

/* --- the walk ------------------------------------------------------------- */

static enum qdq_code
make(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code;
    if ((code = check_not_quantized(p->model, err)) || (code = select_entries(p, err)))
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
    if (p->spec->mode == QDQ_MODE_FULL && has_adds(p) && (code = warn_residual(p, err)))
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
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_plan *plan = arena ? qdqi_arena_alloc(arena, sizeof *plan) : NULL;
    if (!plan) {
        qdqi_arena_free(&arena);
        return qdqi_no_memory(err);
    }
    plan->arena = arena;
    struct planner p = {.catalog = catalog, .model = model, .spec = spec, .plan = plan};
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
