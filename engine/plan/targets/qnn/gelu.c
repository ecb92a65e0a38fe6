/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GELUs of which exporters make five operators around an Erf: 0.5 x (1 + erf(x / sqrt(2))), with
 * the factor 0.5 at any of its three places. The provider makes one Gelu of the five where a pair
 * stands before and behind them and none between.
 */
#include "config.h"
#include "plan/targets/qnn/qnn.h"

#include "files/model/constant.h"
#include "graph/layers/operators.h"
#include "numbers/arithmetic/both.h"
#include "numbers/arithmetic/format.h"
#include "plan/placement/masked_sums.h"

#include <math.h>

/* Returns the element of a float32 constant of one element; NAN for any other tensor. */
static float
scalar_of(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    struct qdqi_constant c;
    return t && t->is_fixed && !qdqi_constant_read(model, t, &c, NULL) && c.n == 1 &&
                   c.dtype == QDQI_FLOAT32
               ? qdqi_float_at(c.bytes, 0)
               : NAN;
}

/* Returns the other operand of a node of two, one of which is a constant close to `value`. */
static struct qdqi_tensor *
beside(const struct qdq_model *model, const struct qdqi_node *node, const char *op,
       double value)
{
    if (!node || !qdqi_node_is(node->proto, op) || node->proto->n_input != 2)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (fabs(scalar_of(model, node->inputs[i]) - value) < 1e-3)
            return node->inputs[!i];
    return NULL;
}

/* Returns the index of the only node that reads the tensor; -1 where there are others. */
static int64_t
only_reader(const struct qdqi_tensor *t)
{
    return t && t->uses && !t->uses->next && !t->is_output && !t->is_captured
               ? (int64_t)t->uses->node
               : -1;
}

/* Returns the node behind another that alone reads it, if it is of that operator. */
static const struct qdqi_node *
next_of(const struct qdq_model *model, const struct qdqi_node *node, const char *op)
{
    const int64_t i =
        node && node->proto->n_output > 0 ? only_reader(node->outputs[0]) : -1;
    const struct qdqi_node *next = i < 0 ? NULL : &model->graph.nodes[i];
    return next && qdqi_node_is(next->proto, op) && next->proto->n_input == 2 ? next
                                                                              : NULL;
}

static struct qdqi_tensor *
other_input(const struct qdqi_node *node, const struct qdqi_tensor *t)
{
    return node->inputs[node->inputs[0] == t];
}

static void
mark(uint8_t *parts, const struct qdq_model *model, const struct qdqi_node *node,
     enum qdqi_gelu_part part)
{
    parts[node - model->graph.nodes] = (uint8_t)part;
}

/* Marks the Mul behind 1 + erf and what stands beside it. Returns false where they are no end of
   a GELU of x. */
static bool
mark_end(uint8_t *parts, const struct qdq_model *model, const struct qdqi_node *sum,
         const struct qdqi_tensor *x)
{
    static const double half = 0.5;
    const struct qdqi_node *product = next_of(model, sum, "Mul");
    if (!product)
        return false;
    const struct qdqi_tensor *other = other_input(product, sum->outputs[0]);
    const struct qdqi_node *maker = qdqi_maker_of(&model->graph, other);
    const struct qdqi_node *last = next_of(model, product, "Mul");
    if (other == x && beside(model, last, "Mul", half)) {
        mark(parts, model, product, QDQI_GELU_FIRST);
        mark(parts, model, last, QDQI_GELU_LAST);
    } else if (last && beside(model, product, "Mul", half) &&
               other_input(last, product->outputs[0]) == x) {
        mark(parts, model, product, QDQI_GELU_INNER);
        mark(parts, model, last, QDQI_GELU_LAST);
    } else if (maker && beside(model, maker, "Mul", half) == x &&
               only_reader(other) >= 0) {
        mark(parts, model, maker, QDQI_GELU_FIRST);
        mark(parts, model, product, QDQI_GELU_LAST);
    } else {
        return false;
    }
    return true;
}

/* Marks the GELU of an Erf, if it is one. */
static void
mark_gelu(uint8_t *parts, const struct qdq_model *model, const struct qdqi_node *erf)
{
    static const double root = 1.41421356;
    const struct qdqi_node *scaled = qdqi_maker_of(&model->graph, erf->inputs[0]);
    const struct qdqi_node *sum = next_of(model, erf, "Add");
    if (!scaled || only_reader(erf->inputs[0]) < 0 || !sum ||
        !beside(model, sum, "Add", 1))
        return;
    const struct qdqi_tensor *x = beside(model, scaled, "Mul", 1 / root);
    if (!x && qdqi_node_is(scaled->proto, "Div") && scaled->proto->n_input == 2 &&
        fabs(scalar_of(model, scaled->inputs[1]) - root) < 1e-3)
        x = scaled->inputs[0];
    if (!x || !mark_end(parts, model, sum, x))
        return;
    mark(parts, model, scaled, QDQI_GELU_FIRST);
    mark(parts, model, erf, QDQI_GELU_INNER);
    mark(parts, model, sum, QDQI_GELU_INNER);
}

uint8_t *
qdqi_mark_gelus(const struct qdq_model *model, struct qdqi_arena *arena)
{
    const struct qdqi_graph *graph = &model->graph;
    uint8_t *parts = qdqi_arena_array(arena, graph->n_nodes + 1, 1);
    for (size_t i = 0; parts && i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        if (qdqi_node_is(node->proto, "Erf") && node->proto->n_input == 1 &&
            node->proto->n_output == 1 && node->inputs[0] && node->outputs[0])
            mark_gelu(parts, model, node);
    }
    return parts;
}

enum qdq_code
qdqi_qnn_begin(struct planner *p, struct qdq_error *err)
{
    struct qdqi_qnn_marks *marks = qdqi_arena_alloc(p->plan->arena, sizeof *marks);
    if (!marks)
        return qdqi_no_memory(err);
    p->marks = marks;
    p->graph->pairs_sizes = !p->spec->weight_only && qdqi_rule_is_on(p, Q22);
    marks->gelus = qdqi_mark_gelus(p->model, p->plan->arena);
    marks->scores = qdqi_scores_read_elsewhere(p->model, p->plan->arena);
    return marks->gelus && marks->scores ? QDQ_OK : qdqi_no_memory(err);
}

enum qdqi_gelu_part
qdqi_gelu_part(const struct planner *p, size_t node)
{
    const struct qdqi_qnn_marks *marks = p->marks;
    return qdqi_rule_is_on(p, Q7) ? (enum qdqi_gelu_part)marks->gelus[node]
                                  : QDQI_GELU_NONE;
}

/* --- formats ------------------------------------------------------------------------ */

enum { MOST_PARTS = 6 }; /* nodes between the ends of a GELU, and one more */

/* Returns the tensor that a GELU is computed from, by a part of it; NULL: it is not found. */
static const struct qdqi_tensor *
source_of(const struct planner *p, const struct qdqi_node *part, int steps)
{
    const struct qdqi_tensor *found = NULL;
    for (size_t i = 0; i < part->proto->n_input && !found && steps > 0; i++) {
        const struct qdqi_tensor *t = part->inputs[i];
        const struct qdqi_node *maker = t ? qdqi_maker_of(&p->model->graph, t) : NULL;
        const enum qdqi_gelu_part made =
            maker ? qdqi_gelu_part(p, (size_t)t->producer) : QDQI_GELU_NONE;
        if (t && !t->is_fixed)
            found = made == QDQI_GELU_NONE || made == QDQI_GELU_LAST
                        ? t
                        : source_of(p, maker, steps - 1);
    }
    return found;
}

static size_t
row_of(const struct planner *p, const struct qdqi_tensor *t)
{
    size_t row = 0;
    while (row < p->plan->view.n_tensors && p->plan->activations[row].tensor != t)
        row++;
    return row < p->plan->view.n_tensors ? row : QDQI_NONE;
}

/* Gives an activation, and those that share its scale, the format of another one. */
static void
copy_format(struct planner *p, size_t row, const struct qdqi_planned_tensor *from)
{
    const size_t leader = p->plan->activations[row].leader;
    for (size_t i = 0; i < p->plan->view.n_tensors; i++)
        if (p->plan->activations[i].leader == leader) {
            p->plan->activations[i].format = from->format;
            p->plan->activations[i].symmetric = from->symmetric;
        }
}

void
qdqi_join_gelu_formats(struct planner *p)
{
    for (size_t i = 0; i < p->model->graph.n_nodes; i++) {
        const struct qdqi_node *last = &p->model->graph.nodes[i];
        if (qdqi_gelu_part(p, i) != QDQI_GELU_LAST)
            continue;
        const size_t from = row_of(p, source_of(p, last, MOST_PARTS));
        const size_t to = row_of(p, last->outputs[0]);
        if (from == QDQI_NONE || to == QDQI_NONE)
            continue;
        const struct qdqi_planned_tensor *a = &p->plan->activations[from];
        const struct qdqi_planned_tensor *b = &p->plan->activations[to];
        const int difference = qdqi_format_row((int)a->format)->bits -
                               qdqi_format_row((int)b->format)->bits;
        if (difference < 0)
            copy_format(p, from, b);
        else if (difference > 0)
            copy_format(p, to, a);
    }
}
