/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a plan in steps. First each node gets its class, then the entries of the spec
 * and of its insertion cases select nodes. Each node of a class is decided on, and the
 * pairs are counted, each tensor once. At last the plan is checked against the model's
 * opset. Nothing here looks at data or runs a model.
 */
#include "config.h"
#include "plan/placement/carried_weights.h"
#include "plan/placement/planner.h"

#include "plan/placement/branches.h"

#include "plan/cases/case.h"
#include "plan/cases/catalog.h"
#include "files/data/inputs.h"
#include "plan/gates/gates.h"
#include "plan/placement/formats.h"
#include "plan/placement/kept_weights.h"
#include "plan/placement/layer_formats.h"
#include "plan/placement/lint.h"
#include "plan/placement/float16_nodes.h"
#include "plan/placement/target.h"

#include <stdio.h>
#include <string.h>

/* First opsets of ONNX with Q/DQ per tensor, and along an axis (QuantizeLinear-10,-13).
 */
enum { OPSET_QDQ = 10, OPSET_AXIS = 13 };

/* --- the entries that decide ---------------------------------------------- */

enum qdq_code
qdqi_run_case(struct planner *p, const struct qdq_case_use *use, const char *pointer,
              size_t *n_entries, struct qdq_error *err)
{
    const struct qdqi_script_host host = {.catalog = p->catalog,
                                          .layers = p->graph,
                                          .spec = p->spec,
                                          .arena = p->plan->arena};
    struct qdq_layer_entry *entries = NULL;
    size_t n = 0;
    enum qdq_code code =
        qdqi_case_run(&host, use, pointer, &p->script_time, &entries, &n, err);
    if (!code)
        code = qdqi_select_case(&p->selection, use->name, pointer, entries, n, err);
    *n_entries += n;
    return code;
}

/* Runs the spec's cases in turn and counts the entries that they return. */
static enum qdq_code
run_cases(struct planner *p, size_t *ret_entries, struct qdq_error *err)
{
    *ret_entries = 0;
    for (size_t i = 0; i < p->spec->n_cases; i++) {
        const char *pointer = qdqi_arena_printf(p->plan->arena, "/cases/%zu", i);
        enum qdq_code code =
            pointer ? qdqi_run_case(p, &p->spec->cases[i], pointer, ret_entries, err)
                    : qdqi_no_memory(err);
        if (code)
            return code;
    }
    return QDQ_OK;
}

/* Warns of layer support in the spec that no node uses, for example because of a
   misspelt operator. */
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
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    const struct qdqi_class *operators;
    size_t n_operators = qdqi_catalog_rows(p->catalog, &operators);
    struct qdqi_classes *rows;
    size_t n_from_cases;
    enum qdq_code code;
    if ((code = qdqi_classes_new(operators, n_operators, hooks->classes,
                                 hooks->n_classes, p->spec, arena, &rows, err)) ||
        (code = qdqi_layers_new(p->model, rows, arena, &p->graph, err)) ||
        (hooks->begin && (code = hooks->begin(p, err))) ||
        (code = warn_unused_support(p, err)) ||
        (code = qdqi_selection_new(p->graph, p->spec, arena, &p->warnings,
                                   &p->selection, err)) ||
        (code = qdqi_select_spec(&p->selection, p->spec, err)) ||
        (hooks->run_cases && (code = hooks->run_cases(p, err))) ||
        (code = run_cases(p, &n_from_cases, err)))
        return code;
    if (p->spec->mode == QDQ_MODE_PARTIAL && p->spec->n_layers + n_from_cases == 0)
        return qdq_error_set(
            err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/mode",
            "partial mode, and neither layers nor cases name anything");
    return QDQ_OK;
}

/* --- each tensor once ----------------------------------------------------- */

/* Stores the row of the tensor among the plan's activations in *ret, and adds the row if
   the tensor has none. */
static enum qdq_code
collect_tensor(struct planner *p, struct qdqi_tensor *t, enum qdqi_dtype dtype,
               const char **names, size_t *ret, struct qdq_error *err)
{
    struct qdq_plan *plan = p->plan;
    struct qdqi_planned_tensor *row = qdqi_map_get(p->activations, t->name);
    if (row) {
        *ret = (size_t)(row - plan->activations);
        return QDQ_OK;
    }
    *ret = plan->view.n_tensors++;
    row = &plan->activations[*ret];
    names[*ret] = t->name;
    *row = (struct qdqi_planned_tensor){
        .tensor = t,
        .dtype = dtype,
    };
    return qdqi_map_put(p->activations, t->name, row) ? QDQ_OK : qdqi_no_memory(err);
}

/* Stores the rows of the layer's inputs and outputs in `rows`. An output has the type of
   the layer's inputs where the model does not say it. */
static enum qdq_code
collect_tensors(struct planner *p, struct qdq_layer *layer, const char **names,
                size_t *rows, struct qdq_error *err)
{
    const struct qdqi_node *node = &p->model->graph.nodes[layer->node];
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    enum qdqi_dtype dtype = QDQI_FLOAT32;
    enum qdq_code code = QDQ_OK;
    layer->input_rows = rows;
    layer->output_rows = rows + layer->n_inputs;
    for (size_t i = 0; i < layer->n_inputs && !code; i++) {
        dtype = qdqi_layer_dtype(cls, node, layer->quantized_inputs[i]);
        code = collect_tensor(p, node->inputs[layer->quantized_inputs[i]], dtype, names,
                              rows++, err);
    }
    for (size_t i = 0; i < layer->n_outputs && !code; i++) {
        struct qdqi_tensor *t = node->outputs[layer->quantized_outputs[i]];
        code = collect_tensor(p, t, t->dtype == QDQI_UNKNOWN ? dtype : t->dtype, names,
                              rows++, err);
    }
    return code;
}

/*
 * Finds the row of input `input` of a layer, a weight, among the plan's weights, and adds
 * the row if there is none. A tensor has one row for each axis and block; `first` has the first row
 * of each tensor.
 */
static enum qdq_code
collect_weight(struct planner *p, const struct qdq_layer *layer, int input,
               struct qdqi_map *first, size_t *ret, struct qdq_error *err)
{
    struct qdq_plan *plan = p->plan;
    struct qdqi_tensor *t = p->model->graph.nodes[layer->node].inputs[input];
    struct qdqi_planned_weight *known = qdqi_map_get(first, t->name);
    size_t row = known ? (size_t)(known - plan->weights) : QDQI_NONE;
    size_t next = row;
    const int64_t block = qdqi_block_of(p, layer, t);
    while (row != QDQI_NONE && (plan->weights[row].axis != layer->weight_axis ||
                                plan->weights[row].block != block))
        row = plan->weights[row].next_axis;
    *ret = row;
    if (row != QDQI_NONE) {
        if (layer->n_inputs > 0)
            plan->weights[row].range = QDQ_RANGE_NARROW;
        return QDQ_OK;
    }
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    const struct qdq_weights *asked = &layer->format->weights;
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    const struct qdqi_node *node = &p->model->graph.nodes[layer->node];
    bool operand = hooks->is_operand && hooks->is_operand(p, layer);
    *ret = plan->view.n_weights++;
    known = &plan->weights[*ret];
    *known = (struct qdqi_planned_weight){
        .tensor = t,
        .axis = layer->weight_axis,
        .block = block,
        .layer = layer->name,
        .format = (enum qdqi_format)(operand ? layer->format->activations.format
                                             : asked->format),
        .storage = asked->storage,
        .method = asked->method,
        .rounding = asked->rounding,
        .range = layer->n_inputs > 0 ? QDQ_RANGE_NARROW : asked->range,
        .scales = asked->scales,
        .is_table = cls->is_table,
        .is_gates = cls->is_recurrent,
        .next_axis = next,
        .channel_axis =
            block > 0 ? cls->axis(cls, node, input, t->view.rank) : layer->weight_axis};
    return qdqi_map_put(first, t->name, known) ? QDQ_OK : qdqi_no_memory(err);
}

static enum qdq_code
collect_weights(struct planner *p, struct qdq_layer *layer, struct qdqi_map *first,
                struct qdq_error *err)
{
    if (layer->weight_input < 0)
        return QDQ_OK;
    enum qdq_code code =
        collect_weight(p, layer, layer->weight_input, first, &layer->weight_row, err);
    return code || !p->graph->classes[layer->node]->is_recurrent
               ? code
               : collect_weight(p, layer, QDQI_RECURRENT, first, &layer->recurrent_row,
                                err);
}

/* Returns the row of the activation that activation i shares its numbers with, or i. */
static size_t
find_leader(const struct planner *p, size_t i)
{
    const struct qdqi_tensor *leader =
        p->outputs.leaders ? qdqi_map_get(p->outputs.leaders, p->plan->view.tensors[i])
                           : NULL;
    const struct qdqi_planned_tensor *row =
        leader ? qdqi_map_get(p->activations, leader->name) : NULL;
    return row ? (size_t)(row - p->plan->activations) : i;
}

static enum qdq_code
collect(struct planner *p, struct qdq_error *err)
{
    struct qdq_plan *plan = p->plan;
    size_t n = 0;
    for (size_t i = 0; i < p->n_layers; i++) {
        n += p->layers[i].n_inputs + p->layers[i].n_outputs;
        plan->view.n_quantized += qdqi_layer_is_quantized(&p->layers[i]);
    }
    /* a tensor may have a second row (qdqi_output_convert()) */
    const char **names = qdqi_arena_array(plan->arena, 2 * n, sizeof *names);
    size_t *rows = qdqi_arena_array(plan->arena, n, sizeof *rows);
    struct qdqi_map *weights = qdqi_map_new(plan->arena);
    plan->activations = qdqi_arena_array(plan->arena, 2 * n, sizeof *plan->activations);
    plan->weights =
        qdqi_arena_array(plan->arena, 2 * p->n_layers, sizeof *plan->weights);
    p->activations = qdqi_map_new(plan->arena);
    if (!names || !rows || !weights || !plan->activations || !plan->weights ||
        !p->activations)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        enum qdq_code code = collect_tensors(p, layer, names, rows, err);
        rows += layer->n_inputs + layer->n_outputs;
        if (!code)
            code = collect_weights(p, layer, weights, err);
        if (code)
            return code;
    }
    plan->view.tensors = names;
    for (size_t i = 0; i < plan->view.n_tensors; i++)
        plan->activations[i].leader = find_leader(p, i);
    return QDQ_OK;
}

/* --- limits of the whole model ------------------------------------------- */

/* Operators that show that a model is quantized already, or partly: by pairs, or by
   integer operators in the place of layers. */
static const struct {
    const char *op;
    bool is_pair;
} quantized_ops[] = {
    {"QuantizeLinear", true},
    {"DequantizeLinear", true},
    {"QLinearConv", false},
    {"QLinearMatMul", false},
    {"ConvInteger", false},
    {"MatMulInteger", false},
    {"DynamicQuantizeLinear", false},
    {QDQI_DYNAMIC_LSTM, false},
    {"QAttention", false},
};

static enum qdq_code
refuse_quantized(const struct qdqi_node *node, bool is_pair, struct qdq_error *err)
{
    const char *more = is_pair ? "; existing_qdq says what becomes of pairs"
                               : ": a QOperator model, whose layers are integer "
                                 "operators already; quantize the float model instead";
    return qdq_error_set(err, QDQ_EXISTING_QDQ, QDQ_AT_NODE, node->name,
                         "the model is quantized already: node '%s' is a %s%s",
                         node->name, node->proto->op_type, more);
}

/* Pairs are no error if they are to be kept or could not be stripped. Integer
   operators are no error if pairs are kept; they stay as they are. */
static enum qdq_code
check_not_quantized(struct planner *p, struct qdq_error *err)
{
    enum qdq_existing existing = p->spec->existing_qdq;
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < p->model->graph.n_nodes; i++) {
        const struct qdqi_node *node = &p->model->graph.nodes[i];
        for (size_t k = 0; k < sizeof quantized_ops / sizeof *quantized_ops; k++) {
            if (strcmp(node->proto->op_type, quantized_ops[k].op) != 0)
                continue;
            bool is_pair = quantized_ops[k].is_pair;
            if (existing == QDQ_EXISTING_ERROR ||
                (existing == QDQ_EXISTING_STRIP && !is_pair))
                return refuse_quantized(node, is_pair, err);
            if (!is_pair)
                first = n++ ? first : node->name;
        }
    }
    if (n == 0)
        return QDQ_OK;
    return qdqi_warn(&p->warnings, p->plan->arena, err, "integer_operators", first,
                     "%zu nodes, this one first, compute with integers already "
                     "(QLinearConv, MatMulInteger and the like); they stay as they are",
                     n);
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

/* Fails because of an opset without Q/DQ nodes, and says why the model was not converted. */
static enum qdq_code
no_pairs(const struct qdq_model *model, struct qdq_error *err)
{
    const struct qdq_warning *kept = NULL;
    for (size_t i = 0; i < model->warnings.n; i++)
        if (strcmp(model->warnings.rows[i].code, "opset_kept") == 0)
            kept = &model->warnings.rows[i];
    const char *node = kept ? kept->node : NULL;
    return qdq_error_set(err, QDQ_UNSUPPORTED, node ? QDQ_AT_NODE : QDQ_AT_NOTHING,
                         node, "the model's opset is %lld; Q/DQ nodes need %d: %s",
                         (long long)qdqi_model_opset(model->proto), OPSET_QDQ,
                         kept ? kept->detail
                              : "export it with a later one, or convert it with the "
                                "spec's opset");
}

static bool
has_channels(const struct qdq_layer_format *format)
{
    return format->weights.granularity == QDQ_PER_CHANNEL;
}

static enum qdq_code
check_opset(struct planner *p, struct qdq_error *err)
{
    int64_t opset = qdqi_model_opset(p->model->proto);
    if (p->plan->view.n_quantized == 0)
        return qdqi_warn(&p->warnings, p->plan->arena, err, QDQI_NOTHING_TO_QUANTIZE,
                         NULL, "no layer of the model is quantized");
    if (opset < OPSET_QDQ)
        return no_pairs(p->model, err);
    if (opset < OPSET_AXIS && p->plan->view.n_weights &&
        qdqi_spec_has(p->spec, has_channels))
        return qdqi_warn(&p->warnings, p->plan->arena, err, "opset_per_tensor", NULL,
                         "weights are quantized per tensor: per channel needs opset "
                         "%d, the model has %lld",
                         OPSET_AXIS, (long long)opset);
    return QDQ_OK;
}

/* Says that the plan of a job with data may differ, because its recipe judges the result. */
static enum qdq_code
warn_recipe(struct planner *p, struct qdq_error *err)
{
    if (p->spec->recipe < QDQ_RECIPE_AUTO || !p->spec->target->runtime)
        return QDQ_OK;
    return qdqi_warn(
        &p->warnings, p->plan->arena, err, QDQI_NEEDS_DATA, NULL,
        "the recipe goes by the structure of the model alone; a job with "
        "calibration data judges its result, too, and may leave more layers "
        "in float");
}

static bool
lacks_opset(const struct planner *p, const struct qdq_layer *layer)
{
    (void)p;
    return layer->reason_kind == QDQ_REASON_OPSET;
}

/* Adds one warning for all layers of float16 that an older opset keeps from being
   quantized. */
static enum qdq_code
warn_float16(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_layer_count count = qdqi_count_layers(p, lacks_opset);
    return count.n == 0
               ? QDQ_OK
               : qdqi_warn(
                     &p->warnings, p->plan->arena, err, "opset_float16", count.first,
                     "%zu layers of float16, this one first, are left alone: Q/DQ "
                     "of float16 needs opset %d, the model has %lld",
                     count.n, QDQI_OPSET_FLOAT16,
                     (long long)qdqi_model_opset(p->model->proto));
}

/* Warns of nodes in nested graphs that are not planned. The bodies of ONNX's control
   flow are planned like the main graph; other nested graphs are opaque. */
static enum qdq_code
warn_nested(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &p->model->graph;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < graph->n_nodes && !code; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        if (node->body && graph->scopes[node->body].is_opaque &&
            !graph->scopes[node->scope].is_opaque)
            code =
                qdqi_warn(&p->warnings, p->plan->arena, err, "nested_graph", node->name,
                          "nodes inside the nested graphs of this node are left alone");
    }
    return code;
}

/* --- all steps ------------------------------------------------------------- */

/* Copies the warnings of the model's preparation, which come first. */
static enum qdq_code
copy_warnings(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < p->model->warnings.n && !code; i++) {
        const struct qdq_warning *w = &p->model->warnings.rows[i];
        code = qdqi_warn(&p->warnings, p->plan->arena, err, w->code, w->node, "%s",
                         w->detail);
    }
    return code;
}

static enum qdq_code
warn_stored_twice(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_layer_count count =
        qdqi_count_stored_twice(p->plan, &p->model->graph, p->by_node);
    return qdqi_warn_count(p, &count, QDQI_STORED_TWICE, QDQI_STORED_TWICE_TEXT, err);
}

enum qdq_code
qdqi_planner_make(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    enum qdq_code code;
    if ((code = copy_warnings(p, err)) || (code = check_not_quantized(p, err)) ||
        (code = select_entries(p, err)))
        return code;
    p->has_axes = qdqi_model_opset(p->model->proto) >= OPSET_AXIS;
    if ((code = qdqi_layer_formats_begin(p, err)))
        return code;
    p->layers =
        qdqi_arena_array(p->plan->arena, p->model->graph.n_nodes, sizeof *p->layers);
    if (!p->layers)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->model->graph.n_nodes; i++)
        if ((code = qdqi_decide(p, i, err)))
            return code;
    if ((code = qdqi_rules_settle(p, err)))
        return code;
    if (hooks->settle)
        hooks->settle(p);
    if ((hooks->decide_outputs && (code = hooks->decide_outputs(p, err))) ||
        (hooks->warn_connections && (code = hooks->warn_connections(p, err))) ||
        (code = collect(p, err)) || (code = qdqi_tensor_formats_settle(p, err)) ||
        (hooks->complete && (code = hooks->complete(p, err))) ||
        (code = warn_stored_twice(p, err)))
        return code;
    qdqi_rules_cite(p);
    qdqi_layer_formats_note(p);
    if ((code = check_given_ranges(p, err)) ||
        (code = qdqi_gates_check(p->spec, &p->model->info, &p->warnings, p->plan->arena,
                                 err)) ||
        (code = qdqi_inputs_check(&p->model->info, p->spec, &p->warnings,
                                  p->plan->arena, err)) ||
        (code = check_opset(p, err)) ||
        (code = qdqi_float16_check(p->model, p->spec, err)) ||
        (code = qdqi_check_formats(p, err)) || (code = warn_float16(p, err)) ||
        (code = warn_nested(p, err)) || (code = qdqi_warn_carried(p, err)) ||
        (code = warn_recipe(p, err)) || (code = qdqi_lint(p, err)))
        return code;
    struct qdq_plan_view *view = &p->plan->view;
    view->layers = p->layers;
    view->n_layers = p->n_layers;
    view->n_pairs = qdqi_count_pairs(p->model, p->plan);
    view->target = p->spec->target;
    return QDQ_OK;
}
