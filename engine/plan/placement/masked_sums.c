/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/masked_sums.h"

#include "graph/layers/infinities.h"
#include "graph/layers/operators.h"
#include "ground/base/map.h"

#include <stdint.h>

/* Returns the input of the first of the two operands; -1: the node is no such sum. */
static int
first_operand(const struct qdqi_node *node)
{
    enum { WHERE_OPERANDS = 1 };
    if (node->proto->n_output < 1 || !node->outputs[0])
        return -1;
    if (qdqi_node_is(node->proto, "Add") && node->proto->n_input == 2)
        return 0;
    return qdqi_node_is(node->proto, "Where") && node->proto->n_input == 3
               ? WHERE_OPERANDS
               : -1;
}

/* Returns the input of the node that holds masked scores, if the node passes them on as they are, or
   bounds them; -1: it does not. */
static int
passed_input(const struct qdqi_node *node)
{
    static const char *const movers[] = {"Reshape",   "Transpose", "Squeeze",
                                         "Unsqueeze", "Flatten",   "Identity",
                                         "Expand",    "Clip",      NULL};
    static const char *const bounds[] = {"Max", "Min", NULL};
    const size_t n = node->proto->n_input;
    if (node->proto->n_output != 1 || !node->outputs[0] || n < 1 || !node->inputs[0])
        return -1;
    if (qdqi_node_is_one_of(node->proto, movers))
        return 0;
    return n == 2 && qdqi_node_is_one_of(node->proto, bounds)
               ? node->inputs[0]->is_fixed
               : -1;
}

/* A search from the last node to the first one. */
struct finding {
    const struct qdqi_graph *graph;
    bool looks_through; /* passed_input() counts */
    bool *leads;    /* by node: it is a sum, or passes one on, and leads to a Softmax */
    bool *computed; /* see find_computed() */
};

static bool
passes(const struct finding *f, const struct qdqi_node *node)
{
    return f->looks_through && passed_input(node) >= 0;
}

static bool
is_listed(const struct finding *f, const struct qdqi_node *node)
{
    return first_operand(node) >= 0 || passes(f, node);
}

/* Returns whether a Softmax reads the node's output, or a node that leads to one. */
static bool
leads_to_softmax(const struct finding *f, const struct qdqi_node *node)
{
    for (const struct qdqi_use *use = node->outputs[0]->uses; use; use = use->next) {
        const struct qdqi_node *reader = &f->graph->nodes[use->node];
        const int first = first_operand(reader);
        if (qdqi_node_is(reader->proto, "Softmax") ||
            (f->leads[use->node] && (first < 0 || use->input >= first)))
            return true;
    }
    return false;
}

/* --- what is no mask, and what is not for scores alone ----------------------------- */

/* Returns whether the node computes numbers of its own from what it reads, as no mask is made. A product of
   masks is one of two activations. */
static bool
is_layer(const struct qdqi_node *node)
{
    static const char *const layers[] = {"Gemm", "Conv", "ConvTranspose", "LSTM", "GRU",
                                         "RNN",  NULL};
    static const char *const products[] = {"MatMul", "Einsum", NULL};
    static const char *const reductions[] = {
        "ReduceSum", "ReduceMean",      "ReduceL1",        "ReduceL2",
        "Pow",       "ReduceSumSquare", "ReduceLogSumExp", NULL};
    if (qdqi_node_is_one_of(node->proto, layers) ||
        qdqi_node_is_one_of(node->proto, reductions))
        return true;
    bool has_weight = false;
    for (size_t i = 0; i < node->proto->n_input; i++)
        has_weight = has_weight || (node->inputs[i] && node->inputs[i]->is_fixed);
    return has_weight && qdqi_node_is_one_of(node->proto, products);
}

/* Notes by node whether a layer or a reduction stands in front of the numbers that it makes. */
static void
find_computed(const struct qdqi_graph *graph, bool *computed)
{
    static const char *const tests[] = {
        "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "ArgMax",
        "IsNaN", "Not",  "IsInf",       "Shape",   "Size",           NULL};
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        if (qdqi_node_is_one_of(node->proto, tests))
            continue;
        computed[i] = is_layer(node);
        for (size_t k = 0; k < node->proto->n_input && !computed[i]; k++)
            computed[i] = node->inputs[k] && node->inputs[k]->producer >= 0 &&
                          computed[node->inputs[k]->producer];
    }
}

/* Returns whether all that reads the tensor are Softmaxes, and nodes of which that is true. */
static bool
is_for_scores(const struct qdqi_graph *graph, const bool *serves,
              const struct qdqi_tensor *t)
{
    static const char *const ends[] = {"Softmax", "Shape", "Size",
                                       "IsNaN",   "IsInf", NULL};
    bool all = !t->is_output && !t->is_captured;
    for (const struct qdqi_use *use = t->uses; use && all; use = use->next)
        all = serves[use->node] ||
              qdqi_node_is_one_of(graph->nodes[use->node].proto, ends);
    return all;
}

/* Notes by node whether it is a sum, or carries one or its operand on, and all that it makes is for scores. */
static void
find_serving(const struct qdqi_graph *graph, bool *serves)
{
    static const char *const carriers[] = {"Slice", "Tile",  "Gather", "Concat",
                                           "Split", "Where", "Cast",   NULL};
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const struct qdqi_node *node = &graph->nodes[i];
        serves[i] = first_operand(node) >= 0 || passed_input(node) >= 0 ||
                    qdqi_node_is_one_of(node->proto, carriers);
        for (size_t k = 0; k < node->proto->n_output && serves[i]; k++)
            serves[i] =
                !node->outputs[k] || is_for_scores(graph, serves, node->outputs[k]);
    }
}

static enum qdq_code
find_elsewhere(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &p->model->graph;
    const struct qdq_plan *plan = p->plan;
    const size_t n = plan->view.n_tensors;
    bool *serves = qdqi_arena_array(plan->arena, graph->n_nodes + 1, sizeof *serves);
    bool *elsewhere = qdqi_arena_array(plan->arena, n + 1, sizeof *elsewhere);
    if (!serves || !elsewhere)
        return qdqi_no_memory(err);
    find_serving(graph, serves);
    for (size_t i = 0; i < n; i++)
        if (!is_for_scores(graph, serves, plan->activations[i].tensor))
            elsewhere[plan->activations[i].leader] = true;
    p->plan->read_elsewhere = elsewhere;
    return QDQ_OK;
}

/* --- the list ---------------------------------------------------------------------- */

/* The rows of the plan by the tensors' names. */
struct rows {
    struct qdqi_map *activations, *weights; /* the row's number, and 1 */
};

static bool
begin_rows(const struct planner *p, struct rows *ret)
{
    const struct qdq_plan *plan = p->plan;
    ret->activations = qdqi_map_new(plan->arena);
    ret->weights = qdqi_map_new(plan->arena);
    bool ok = ret->activations && ret->weights;
    for (size_t i = 0; ok && i < plan->view.n_tensors; i++)
        ok = qdqi_map_put(ret->activations, plan->activations[i].tensor->name,
                          (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; ok && i < plan->view.n_weights; i++)
        ok = qdqi_map_put(ret->weights, plan->weights[i].tensor->name,
                          (void *)(uintptr_t)(i + 1));
    return ok;
}

static size_t
activation_of(const struct planner *p, const struct rows *rows,
              const struct qdqi_tensor *t)
{
    const size_t row =
        t ? (size_t)(uintptr_t)qdqi_map_get(rows->activations, t->name) : 0;
    return row > 0 && p->plan->activations[row - 1].tensor == t ? row - 1 : QDQI_NONE;
}

static size_t
constant_of(const struct planner *p, const struct rows *rows,
            const struct qdqi_tensor *t)
{
    const size_t row =
        t && t->is_fixed ? (size_t)(uintptr_t)qdqi_map_get(rows->weights, t->name) : 0;
    return row > 0 && p->plan->weights[row - 1].tensor == t ? row - 1 : QDQI_NONE;
}

/* Returns the row of what the node makes, or of what the only reader passes on, if there is no pair
   between the two. */
static size_t
result_of(const struct planner *p, const struct finding *f, const struct rows *rows,
          const struct qdqi_node *node)
{
    size_t row = activation_of(p, rows, node->outputs[0]);
    const struct qdqi_use *use = node->outputs[0]->uses;
    while (row == QDQI_NONE && use && !use->next &&
           passes(f, &f->graph->nodes[use->node])) {
        node = &f->graph->nodes[use->node];
        row = activation_of(p, rows, node->outputs[0]);
        use = node->outputs[0]->uses;
    }
    return row;
}

static struct qdqi_masked_sum
describe(const struct planner *p, const struct finding *f, const struct rows *rows,
         const struct qdqi_node *node)
{
    const int first = first_operand(node);
    const int passed = first < 0 ? passed_input(node) : -1;
    struct qdqi_masked_sum ret = {.result = result_of(p, f, rows, node),
                                  .operands = {QDQI_NONE, QDQI_NONE},
                                  .constant = QDQI_NONE,
                                  .selects = first > 0,
                                  .passes = passed >= 0};
    const bool has_two = first >= 0 || qdqi_node_is(node->proto, "Max") ||
                         qdqi_node_is(node->proto, "Min");
    for (int i = 0; i < 1 + has_two; i++) {
        /* of what is passed on that comes first */
        const int input = passed > 0 ? !i : (first > 0 ? first : 0) + i;
        const struct qdqi_tensor *t = node->inputs[input];
        ret.operands[i] = activation_of(p, rows, t);
        ret.is_computed[i] = t && t->producer >= 0 && f->computed[t->producer];
        if (ret.operands[i] == QDQI_NONE && ret.constant == QDQI_NONE)
            ret.constant = constant_of(p, rows, t);
    }
    return ret;
}

enum qdq_code
qdqi_masked_sums_find(struct planner *p, bool looks_through, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &p->model->graph;
    struct qdqi_arena *arena = p->plan->arena;
    struct finding f = {
        .graph = graph,
        .looks_through = looks_through,
        .leads = qdqi_arena_array(arena, graph->n_nodes + 1, sizeof *f.leads),
        .computed = qdqi_arena_array(arena, graph->n_nodes + 1, sizeof *f.computed)};
    struct rows rows;
    size_t n = 0;
    if (!f.leads || !f.computed || !begin_rows(p, &rows))
        return qdqi_no_memory(err);
    find_computed(graph, f.computed);
    for (size_t i = graph->n_nodes; i-- > 0;)
        if (is_listed(&f, &graph->nodes[i]) && leads_to_softmax(&f, &graph->nodes[i])) {
            f.leads[i] = true;
            n++;
        }
    struct qdqi_masked_sum *sums = qdqi_arena_array(arena, n + 1, sizeof *sums);
    if (!sums)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (f.leads[i])
            sums[p->plan->n_masked++] = describe(p, &f, &rows, &graph->nodes[i]);
    p->plan->masked = sums;
    return find_elsewhere(p, err);
}

/* --- masked scores that others than a Softmax read ---------------------------------- */

enum { MOST_MOVES = 8 }; /* between an input of the model and a sum */

/* Marks by node, for the search from the first node to the last one. */
struct marks {
    const bool *computed,
        *far; /* see find_computed(), and what may be as low as a mask */
    const bool *serves, *leads;
    bool *scores; /* the result: masked scores that others read, too */
};

static bool
is_score(const struct marks *m, const struct qdqi_tensor *t)
{
    return t && t->producer >= 0 && m->scores[t->producer];
}

/* Returns whether the tensor is an input of the model in floating point, perhaps reshaped: what is added
   to scores may be a mask that callers send. */
static bool
is_sent(const struct qdqi_graph *graph, const struct qdqi_tensor *t)
{
    static const char *const moves[] = {"Expand",  "Identity",  "Reshape",
                                        "Squeeze", "Unsqueeze", NULL};
    for (int step = 0; t && step < MOST_MOVES; step++) {
        const struct qdqi_node *maker = qdqi_maker_of(graph, t);
        if (!maker)
            return t->producer < 0 && t->is_input && !t->is_fixed &&
                   t->dtype == QDQI_FLOAT32;
        t = qdqi_node_is_one_of(maker->proto, moves) ? maker->inputs[0] : NULL;
    }
    return false;
}

static bool
is_computed_sum(const struct marks *m, const struct qdqi_tensor *t)
{
    return t && t->producer >= 0 && m->computed[t->producer];
}

static bool
is_mask(const struct qdq_model *model, const struct marks *m,
        const struct qdqi_tensor *t)
{
    if (!t || t->producer < 0)
        return t && qdqi_constant_is_far(model, t, QDQI_HIGHEST_MASK);
    return m->far[t->producer] && !m->computed[t->producer];
}

static bool
makes_scores(const struct qdq_model *model, const struct marks *m, size_t i)
{
    const struct qdqi_node *node = &model->graph.nodes[i];
    const int first = first_operand(node), passed = passed_input(node);
    if (first < 0)
        return passed >= 0 && is_score(m, node->inputs[passed]);
    const struct qdqi_tensor *a = node->inputs[first], *b = node->inputs[first + 1];
    const bool has_mask = is_mask(model, m, a) != is_mask(model, m, b) ||
                          (is_computed_sum(m, a) && is_sent(&model->graph, b)) ||
                          (is_computed_sum(m, b) && is_sent(&model->graph, a));
    return is_score(m, a) || is_score(m, b) ||
           (m->leads[i] && has_mask &&
            !is_for_scores(&model->graph, m->serves, node->outputs[0]));
}

const bool *
qdqi_scores_read_elsewhere(const struct qdq_model *model, struct qdqi_arena *arena)
{
    const struct qdqi_graph *graph = &model->graph;
    const size_t n = graph->n_nodes + 1;
    bool *computed = qdqi_arena_array(arena, n, sizeof *computed);
    bool *serves = qdqi_arena_array(arena, n, sizeof *serves);
    struct finding f = {.graph = graph,
                        .looks_through = true,
                        .leads = qdqi_arena_array(arena, n, sizeof *f.leads)};
    struct marks m = {.computed = computed,
                      .serves = serves,
                      .leads = f.leads,
                      .far = qdqi_far_ones_find(model, arena, QDQI_HIGHEST_MASK),
                      .scores = qdqi_arena_array(arena, n, sizeof *m.scores)};
    if (!computed || !serves || !f.leads || !m.far || !m.scores)
        return NULL;
    find_computed(graph, computed);
    find_serving(graph, serves);
    for (size_t i = graph->n_nodes; i-- > 0;)
        f.leads[i] =
            is_listed(&f, &graph->nodes[i]) && leads_to_softmax(&f, &graph->nodes[i]);
    for (size_t i = 0; i < graph->n_nodes; i++)
        m.scores[i] = makes_scores(model, &m, i);
    return m.scores;
}
