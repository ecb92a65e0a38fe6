/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/shared/tied.h"

#include "files/model/constant.h"
#include "graph/layers/operators.h"
#include "plan/placement/formats.h"
#include "plan/placement/kept_weights.h"

/* The right operand, and the elements of the smallest table that is worth more nodes. */
enum { RIGHT = 1, LEAST_ELEMENTS = 1 << 14 };

/* The integers that stand in for others are of 8 bits, which a Gather takes in every runtime. */
static bool
is_stored(const struct qdq_layer_format *format)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format->weights.format);
    return format->weights.storage == QDQ_STORE_DQ && row->fraction_bits == 0 &&
           row->block == 0 && row->bits <= 8;
}

bool
qdqi_tied_decide(const struct qdq_spec *spec, const char **ret_reason)
{
    if (spec->recipe < QDQ_RECIPE_AUTO)
        *ret_reason = "the recipe is none";
    else if (spec->dynamic)
        *ret_reason = "the runtime quantizes activations";
    else if (spec->decoder != QDQ_DECODER_AS_IS)
        *ret_reason = "output.decoder says how a head and its embeddings are stored";
    else if (!qdqi_spec_has(spec, is_stored))
        *ret_reason = "the rule is of weights that are stored as integers of at most "
                      "8 bits";
    else {
        *ret_reason = "the recipe is more than none";
        return true;
    }
    return false;
}

const char *
qdqi_tied_reason(const struct planner *p, const struct qdq_layer *layer, int rule)
{
    static const char kept[] = "rule:P5, others read its weight in floating point, and "
                               "the file would have both";
    return qdqi_rule_is_on(p, rule) && !p->spec->weight_only && !p->spec->dynamic &&
                   qdqi_is_product(layer->op) &&
                   qdqi_weight_is_kept(&p->model->graph, p->by_node, layer,
                                       layer->weight_input != RIGHT)
               ? kept
               : NULL;
}

void
qdqi_tied_leave(struct planner *p, int rule)
{
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        const char *reason =
            layer->n_inputs > 0 && !p->selection.choices[layer->node].entry
                ? qdqi_tied_reason(p, layer, rule)
                : NULL;
        if (reason)
            qdqi_layer_leave(layer, rule, reason);
    }
}

/* Returns whether a use of a table is by a Gather that selects rows of it, and that neither an entry
   nor another rule says anything of. */
static bool
selects_rows(const struct planner *p, const struct qdqi_use *use)
{
    const struct qdqi_node *node = &p->model->graph.nodes[use->node];
    const struct qdq_layer *layer = p->by_node[use->node];
    const int64_t axis = qdqi_node_int(node->proto, "axis", 0);
    return use->input == 0 && qdqi_node_is(node->proto, "Gather") &&
           node->proto->n_input == 2 && node->inputs[1] && node->proto->n_output == 1 &&
           node->outputs[0] && (axis == 0 || axis == -2) && node->scope == 0 &&
           !p->selection.choices[use->node].entry &&
           !(layer && layer->weight_input >= 0);
}

/* Returns whether all uses of a tensor but those by one node are such Gathers, of which there is
   one at least. */
static bool
is_table(const struct planner *p, const struct qdqi_tensor *t, int64_t but)
{
    bool any = false;
    for (const struct qdqi_use *use = t->uses; use; use = use->next) {
        const bool selects = selects_rows(p, use);
        if (!selects && (int64_t)use->node != but)
            return false;
        any |= selects;
    }
    return any && !t->is_output && !t->is_captured;
}

/* Returns whether the use is by a layer of that weight. */
static bool
is_by_layer(const struct planner *p, const struct qdqi_use *use, size_t row)
{
    const struct qdq_layer *layer = p->by_node[use->node];
    return layer && layer->weight_input == use->input && layer->weight_row == row;
}

/* Returns the table that a weight of `row` is the transpose of, or that is its transpose; NULL where
   there is none, or anything else reads them. */
static const struct qdqi_tensor *
find_transposed(const struct planner *p, const struct qdqi_tensor *weight, size_t row)
{
    const struct qdqi_graph *graph = &p->model->graph;
    const struct qdqi_node *maker = qdqi_maker_of(graph, weight);
    const struct qdqi_tensor *table =
        maker && qdqi_swaps_axes(maker) ? maker->inputs[0] : NULL;
    if (maker && (!table || !is_table(p, table, weight->producer)))
        return NULL;
    for (const struct qdqi_use *use = weight->uses; use; use = use->next) {
        const struct qdqi_node *node = &graph->nodes[use->node];
        if (is_by_layer(p, use, row))
            continue;
        if (table || !qdqi_swaps_axes(node) || !is_table(p, node->outputs[0], -1))
            return NULL;
        table = node->outputs[0];
    }
    return table;
}

/* Returns the table that a weight is, where its layers and Gathers alone read it, or NULL. */
static const struct qdqi_tensor *
find_same(const struct planner *p, const struct qdqi_tensor *weight, size_t row)
{
    bool any = false;
    for (const struct qdqi_use *use = weight->uses; use; use = use->next) {
        const bool selects = selects_rows(p, use);
        if (!selects && !is_by_layer(p, use, row))
            return NULL;
        any |= selects;
    }
    return any ? weight : NULL;
}

/* Returns the axis of the outputs in the matrix that a layer multiplies by; -1: the layer is another
   one. */
static int
output_axis(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const bool gemm = qdqi_node_is(node->proto, "Gemm");
    if (layer->weight_input != RIGHT || (!gemm && !qdqi_node_is(node->proto, "MatMul")))
        return -1;
    return gemm && qdqi_node_int(node->proto, "transB", 0) ? 0 : 1;
}

/* Returns the axis of the outputs of all layers of a weight, of which there is one at least; -1: there
   is none, or an entry selects one of them and the weight has to change. */
static int
common_axis(const struct planner *p, size_t row, bool changes)
{
    int axis = -1;
    for (size_t i = 0; i < p->n_layers; i++) {
        const struct qdq_layer *layer = &p->layers[i];
        if (layer->weight_input < 0 || layer->weight_row != row)
            continue;
        const int own = output_axis(p, layer);
        if (own < 0 || (axis >= 0 && own != axis) ||
            (changes && p->selection.choices[layer->node].entry))
            return -1;
        axis = own;
    }
    return axis;
}

/* Returns whether the weight is a matrix that is stored as integers of at most 8 bits, and no other row
   has it with another axis. */
static bool
is_stored_once(const struct planner *p, size_t row)
{
    const struct qdqi_planned_weight *w = &p->plan->weights[row];
    const struct qdqi_format_row *format = qdqi_format_row((int)w->format);
    for (size_t i = 0; i < p->plan->view.n_weights; i++)
        if (i != row && p->plan->weights[i].tensor == w->tensor)
            return false;
    return !w->is_table && !w->is_gates && w->storage == QDQ_STORE_DQ &&
           format->fraction_bits == 0 && format->block == 0 && format->bits <= 8 &&
           w->tensor->view.rank == 2 && !w->tensor->is_captured &&
           !w->tensor->is_output && !qdqi_constant_is_overridable(p->model, w->tensor);
}

static bool
can_share(const struct planner *p, size_t row)
{
    size_t n = 0;
    return is_stored_once(p, row) &&
           qdqi_count_elements(p->plan->weights[row].tensor->view.dims, 2, &n) &&
           n >= LEAST_ELEMENTS;
}

static size_t
count_layers(const struct planner *p, size_t row)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_layers; i++)
        n += p->layers[i].weight_input >= 0 && p->layers[i].weight_row == row;
    return n;
}

/* Returns whether the weight has blocks, or fewer than 8 bits. */
static bool
is_narrow(const struct qdqi_planned_weight *w)
{
    return w->block > 0 || qdqi_format_row((int)w->format)->bits < 8;
}

/* Makes the integers of a weight those of 8 bits, and cites the rule for its layers. */
static void
widen(struct planner *p, size_t row, int axis, int rule)
{
    struct qdqi_planned_weight *w = &p->plan->weights[row];
    if (is_narrow(w)) {
        w->format = QDQI_TO_INT8;
        w->block = 0;
        w->axis = axis;
    }
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (layer->weight_input < 0 || layer->weight_row != row)
            continue;
        layer->weight_axis = w->axis;
        qdqi_rule_cite(layer, rule);
    }
}

/* Makes the weight a table of integers of 8 bits. */
static void
share(struct planner *p, size_t row, const struct qdqi_tensor *table, int axis,
      struct qdqi_tied_rules rules)
{
    struct qdqi_planned_weight *w = &p->plan->weights[row];
    w->table = table;
    w->is_whole = rules.whole;
    w->apart = table != w->tensor && !rules.whole && qdqi_rule_is_on(p, rules.forms) &&
               count_layers(p, row) > 1;
    widen(p, row, axis, w->apart ? rules.forms : rules.table);
}

void
qdqi_tied_plan(struct planner *p, struct qdqi_tied_rules rules)
{
    const int rule = rules.table;
    for (size_t i = 0;
         qdqi_rule_is_on(p, rule) && p->has_axes && i < p->plan->view.n_weights; i++) {
        const struct qdqi_planned_weight *w = &p->plan->weights[i];
        if (!can_share(p, i))
            continue;
        const bool changes = is_narrow(w);
        const int axis = common_axis(p, i, changes);
        if (axis < 0 || (!changes && w->axis >= 0 && w->axis != axis))
            continue;
        const struct qdqi_tensor *table =
            axis == 0 ? find_same(p, w->tensor, i) : find_transposed(p, w->tensor, i);
        if (table)
            share(p, i, table, axis, rules);
    }
}

/* Returns whether MatMuls alone read the weight, several of them, and nothing keeps its integers from
   being those of its transpose. */
static bool
can_stand_apart(const struct planner *p, size_t row)
{
    const struct qdqi_planned_weight *w = &p->plan->weights[row];
    for (const struct qdqi_use *use = w->tensor->uses; use; use = use->next)
        if (!is_by_layer(p, use, row) ||
            !qdqi_node_is(p->model->graph.nodes[use->node].proto, "MatMul"))
            return false;
    return !w->table && is_stored_once(p, row) && count_layers(p, row) > 1;
}

void
qdqi_apart_plan(struct planner *p, int rule)
{
    for (size_t i = 0;
         qdqi_rule_is_on(p, rule) && p->has_axes && i < p->plan->view.n_weights; i++) {
        struct qdqi_planned_weight *w = &p->plan->weights[i];
        const int axis = can_stand_apart(p, i) ? common_axis(p, i, is_narrow(w)) : -1;
        if (axis < 0)
            continue;
        w->apart = true;
        if (!is_narrow(w))
            w->axis = axis;
        widen(p, i, axis, rule);
    }
}
