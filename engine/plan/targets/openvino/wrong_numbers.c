/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/openvino/openvino.h"

#include "graph/layers/operators.h"
#include "files/model/constant.h"
#include "numbers/arithmetic/both.h"

#include <math.h>
#include <string.h>

/* --- the largest of several numbers ------------------------------------------ */

static bool
is_extreme(const struct qdqi_node *node)
{
    static const char *const ops[] = {"ReduceMax", "ReduceMin", "GlobalMaxPool", NULL};
    return qdqi_node_is_one_of(node->proto, ops);
}

/* Returns whether the node computes each number of its output from one number of each
   input. */
static bool
is_by_element(const struct qdqi_node *node)
{
    static const char *const ops[] = {
        "Abs",      "Add",      "Cast", "Div",       "Dropout",   "Exp",     "Flatten",
        "Identity", "Log",      "Mul",  "Neg",       "Pow",       "Reshape", "Sqrt",
        "Squeeze",  "Softsign", "Sub",  "Transpose", "Unsqueeze", NULL};
    return qdqi_is_pointwise(node) || qdqi_node_is_one_of(node->proto, ops);
}

/* Counts the inputs of a node that are computed, and those that marked nodes make. */
static void
count_inputs(const struct qdqi_node *node, const bool *marked, size_t *ret_computed,
             size_t *ret_marked)
{
    *ret_computed = *ret_marked = 0;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        if (!t || t->is_fixed)
            continue;
        ++*ret_computed;
        *ret_marked += t->producer >= 0 && marked[t->producer];
    }
}

bool *
qdqi_mark_extremes(const struct qdqi_graph *graph, struct qdqi_arena *arena)
{
    bool *marked = qdqi_arena_array(arena, graph->n_nodes, sizeof *marked);
    for (size_t i = 0; marked && i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        size_t n_computed, n_marked;
        count_inputs(node, marked, &n_computed, &n_marked);
        const size_t needed = qdqi_node_is(node->proto, "Concat") ? 1
                              : is_by_element(node)               ? n_computed
                                                                  : 0;
        marked[i] = is_extreme(node) || (needed > 0 && n_marked >= needed);
    }
    return marked;
}

/* --- constants between nodes ---------------------------------------------------- */

/* Returns whether values go through the node, each by itself or where others are left out. */
static bool
passes_on(const struct qdqi_node *node)
{
    static const char *const ops[] = {"Concat", "DepthToSpace", "Gather", "Pad",
                                      "Slice",  "SpaceToDepth", "Split",  NULL};
    return is_by_element(node) || qdqi_node_is_one_of(node->proto, ops);
}

/* Returns whether the tensor is a float32 constant one of whose elements, in C order, is
   below zero, or, with `is_vector`, is not the first one. */
static bool
has_element(const struct qdq_model *model, const struct qdqi_tensor *t, bool is_vector)
{
    struct qdqi_constant c;
    float one, first = 0;
    if (!t || !t->is_fixed || qdqi_constant_read(model, t, &c, NULL) ||
        c.dtype != QDQI_FLOAT32)
        return false;
    const size_t n = c.n > 1 && qdqi_constant_is_fill(&c) ? 1 : c.n;
    for (size_t i = 0; i < n; i++) {
        memcpy(&one, c.bytes + i * sizeof one, sizeof one);
        if (i == 0)
            first = one;
        if (is_vector ? one != first : one < 0)
            return true;
    }
    return false;
}

static bool
has_negative(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    return has_element(model, t, false);
}

/* Returns whether the tensor is a constant of zeros alone. */
static bool
is_zero(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    struct qdqi_constant c;
    float one;
    if (!t || !t->is_fixed || qdqi_constant_read(model, t, &c, NULL) ||
        c.dtype != QDQI_FLOAT32 || c.n == 0 || has_element(model, t, true))
        return false;
    memcpy(&one, c.bytes, sizeof one);
    return one == 0;
}

/* Returns what is on the way of a node's inputs. */
static unsigned
way_before(const struct qdqi_node *node, const uint8_t *way)
{
    unsigned before = 0;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        before |= t && t->producer >= 0 ? way[t->producer] : 0;
    }
    return before;
}

/* Marks the nodes whose way, which `step` makes of the way before them, has the bit. */
static bool *
mark_ways(const struct qdq_model *model, struct qdqi_arena *arena,
          unsigned (*step)(const struct qdq_model *model, const struct qdqi_node *node,
                           unsigned before),
          unsigned bit)
{
    const struct qdqi_graph *graph = &model->graph;
    bool *marked = qdqi_arena_array(arena, graph->n_nodes, sizeof *marked);
    uint8_t *way = qdqi_arena_array(arena, graph->n_nodes, sizeof *way);
    for (size_t i = 0; marked && way && i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        way[i] = (uint8_t)step(model, node, way_before(node, way));
        marked[i] = way[i] & bit;
    }
    return way ? marked : NULL;
}

/* --- functions that fall, behind pools, shapes and activations ---------------------------- */

/* UNBIASED: a Conv without biases; KEPT: a pool, a change of the shape, or a Relu behind such a
   Conv, into which OpenVINO takes what follows; TURNED: a function that falls behind that. */
enum { UNBIASED = 1, KEPT = 2, TURNED = 4 };

static bool
pools(const struct qdqi_node *node)
{
    static const char *const ops[] = {"AveragePool", "Concat",  "Flatten", "MaxPool",
                                      "Reshape",     "Squeeze", NULL};
    return qdqi_node_is_one_of(node->proto, ops);
}

/* Returns whether the output of the node falls somewhere as its data grow. The shift of a
   BatchNormalization makes a difference: OpenVINO is right there. */
static bool
turns(const struct qdq_model *model, const struct qdqi_node *node)
{
    static const char *const always[] = {"Abs", "Neg", "Reciprocal", NULL};
    static const char *const quotients[] = {"Div", "Sub", NULL};
    static const char *const factors[] = {"Div", "Mul", NULL};
    if (qdqi_node_is_one_of(node->proto, always))
        return true;
    if (qdqi_node_is(node->proto, "BatchNormalization") && node->proto->n_input == 5)
        return has_negative(model, node->inputs[1]) &&
               is_zero(model, node->inputs[2]) && is_zero(model, node->inputs[3]);
    if (node->proto->n_input != 2)
        return false;
    return (qdqi_node_is_one_of(node->proto, quotients) && node->inputs[0] &&
            node->inputs[0]->is_fixed) ||
           (qdqi_node_is_one_of(node->proto, factors) &&
            (has_negative(model, node->inputs[0]) ||
             has_negative(model, node->inputs[1])));
}

static unsigned
turned_step(const struct qdq_model *model, const struct qdqi_node *node,
            unsigned before)
{
    static const char *const convs[] = {"Conv", "ConvTranspose", NULL};
    static const char *const clips[] = {"LeakyRelu", "Relu", NULL};
    if (qdqi_node_is_one_of(node->proto, convs))
        return node->proto->n_input < 3 || is_zero(model, node->inputs[2]) ? UNBIASED
                                                                           : 0;
    if (pools(node))
        return before | KEPT;
    if (qdqi_node_is_one_of(node->proto, clips) && before & UNBIASED)
        return before | KEPT;
    if (!passes_on(node) && !turns(model, node))
        return 0;
    return before & KEPT && turns(model, node) ? before | TURNED : before;
}

bool *
qdqi_mark_unbiased(const struct qdq_model *model, struct qdqi_arena *arena)
{
    return mark_ways(model, arena, turned_step, UNBIASED);
}

bool *
qdqi_mark_turned(const struct qdq_model *model, struct qdqi_arena *arena)
{
    return mark_ways(model, arena, turned_step, TURNED);
}

/* --- factors below zero in front of an average ----------------------------------------------- */

/* SUMMED: products are added up; CURVED: an activation behind that; FALLEN: factors of channels behind that, some of which
   are below zero; AVERAGED: an AveragePool behind that. */
enum { SUMMED = 1, CURVED = 2, FALLEN = 4, AVERAGED = 8 };

static unsigned
averaged_step(const struct qdq_model *model, const struct qdqi_node *node,
              unsigned before)
{
    static const char *const sums[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};
    static const char *const factors[] = {"Div", "Mul", NULL};
    if (qdqi_node_is_one_of(node->proto, sums))
        return SUMMED;
    if (qdqi_node_is(node->proto, "AveragePool"))
        return before & (FALLEN | AVERAGED) ? AVERAGED : 0;
    if (qdqi_is_pointwise(node))
        return before & SUMMED ? before | CURVED : before;
    if (qdqi_node_is_one_of(node->proto, factors) && node->proto->n_input == 2 &&
        before & CURVED)
        for (size_t i = 0; i < 2; i++)
            if (has_element(model, node->inputs[i], true) &&
                has_negative(model, node->inputs[i]))
                return before | FALLEN;
    return passes_on(node) ? before : 0;
}

bool *
qdqi_mark_averaged(const struct qdq_model *model, struct qdqi_arena *arena)
{
    return mark_ways(model, arena, averaged_step, AVERAGED);
}

/* --- factors in front of a pair alone ---------------------------------------------------- */

/* LOOSE: nothing but constant factors since what computes no elements by themselves; NEGATED: a factor below
   zero for all; WIDE: a vector of factors; FALLS: some channel is below zero. */
enum { LOOSE = 1, NEGATED = 2, WIDE = 4, FALLS = 8 };

/* Returns what a factor adds to the way: the other operand of a Mul or the divisor of a Div. */
static unsigned
factor_bits(const struct qdq_model *model, const struct qdqi_tensor *factor)
{
    if (has_element(model, factor, true))
        return WIDE | (has_negative(model, factor) ? FALLS : 0);
    return has_negative(model, factor) ? NEGATED : 0;
}

static unsigned
loose_step(const struct qdq_model *model, const struct qdqi_node *node, unsigned before)
{
    static const char *const factors[] = {"Div", "Mul", NULL};
    static const char *const copies[] = {"Cast",      "Dropout",   "Flatten",
                                         "Identity",  "Reshape",   "Squeeze",
                                         "Transpose", "Unsqueeze", NULL};
    static const char *const clips[] = {"Clip", "LeakyRelu", "Relu", NULL};
    static const char *const sums[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (node->inputs[i] && node->inputs[i]->is_input && node->inputs[i]->scope == 0)
            before |= LOOSE;
    if (qdqi_node_is(node->proto, "Neg"))
        return before & LOOSE ? (before ^ NEGATED) | (before & WIDE ? FALLS : 0U) : 0;
    if (qdqi_node_is_one_of(node->proto, factors) && node->proto->n_input == 2 &&
        before & LOOSE) {
        const int constant = node->inputs[1] && node->inputs[1]->is_fixed ? 1 : 0;
        const unsigned after = before | factor_bits(model, node->inputs[constant]);
        return after & WIDE && after & NEGATED ? after | FALLS : after;
    }
    if (qdqi_node_is_one_of(node->proto, copies))
        return before;
    if (qdqi_node_is_one_of(node->proto, clips))
        return before & FALLS ? FALLS : 0;
    if (qdqi_node_is_one_of(node->proto, sums) || is_by_element(node))
        return 0;
    return LOOSE | (pools(node) ? before & FALLS : 0);
}

/* Does the same, and goes through the sum with one number, as V26 asks. */
static unsigned
shifted_step(const struct qdq_model *model, const struct qdqi_node *node,
             unsigned before)
{
    static const char *const ops[] = {"Add", "Sub", NULL};
    size_t n;
    for (size_t i = 0; i < 2 && before & WIDE && node->proto->n_input == 2 &&
                       qdqi_node_is_one_of(node->proto, ops);
         i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        if (t && t->is_fixed && t->view.stored &&
            qdqi_count_elements(t->view.dims, t->view.rank, &n) && n == 1)
            return before;
    }
    return loose_step(model, node, before);
}

/* Returns whether an input of the model has a size that is open, or no shape. */
static bool
has_open_size(const struct qdq_model *model)
{
    for (size_t i = 0; i < model->info.n_inputs; i++) {
        const struct qdq_value *input = &model->info.inputs[i];
        if (!input->has_shape)
            return true;
        for (size_t k = 0; k < input->rank; k++)
            if (input->dims[k].value < 0)
                return true;
    }
    return false;
}

bool *
qdqi_mark_loose_factors(const struct qdq_model *model, struct qdqi_arena *arena,
                        bool shifted)
{
    return has_open_size(model)
               ? mark_ways(model, arena, shifted ? shifted_step : loose_step, FALLS)
               : qdqi_arena_array(arena, model->graph.n_nodes, sizeof(bool));
}

/* --- rows that a Concat joins -------------------------------------------------------- */

/* Returns whether the Concat joins along the last axis, which needs the rank to be known. */
static bool
joins_columns(const struct qdqi_node *node)
{
    const int64_t axis = qdqi_node_int(node->proto, "axis", 0), *dims;
    size_t rank;
    for (size_t i = 0; i < node->proto->n_input && axis >= 0; i++)
        if (node->inputs[i] && qdqi_tensor_dims(node->inputs[i], &dims, &rank))
            return (size_t)axis + 1 == rank;
    return axis == -1;
}

/* Returns whether the node is arithmetic with a constant of one element, or a clip: OpenVINO takes what
   stands behind into it. */
static bool
is_uniform(const struct qdqi_node *node, int computed)
{
    static const char *const ops[] = {"Add", "Div", "Mul", "Sub", NULL};
    static const char *const alone[] = {"Clip", "LeakyRelu", "Neg", "Relu", NULL};
    const int64_t *dims;
    size_t rank, n;
    if (qdqi_node_is_one_of(node->proto, alone))
        return computed == 0;
    return qdqi_node_is_one_of(node->proto, ops) && node->proto->n_input == 2 &&
           qdqi_tensor_dims(node->inputs[!computed], &dims, &rank) &&
           qdqi_count_elements(dims, rank, &n) && n == 1;
}

/* Returns the only input of a node that is computed; -1: there are several, or none. */
static int
only_computed(const struct qdqi_node *node)
{
    int ret = -1;
    for (int i = 0; i < (int)node->proto->n_input; i++) {
        if (!node->inputs[i] || node->inputs[i]->is_fixed)
            continue;
        if (ret >= 0)
            return -1;
        ret = i;
    }
    return ret;
}

bool
qdqi_reads_joined_rows(const struct qdqi_graph *graph, const struct qdqi_tensor *t,
                       bool uniform)
{
    enum { MOST_STEPS = 8 };
    static const char *const copies[] = {"Dropout", "Identity", NULL};
    for (int step = 0; step < MOST_STEPS; step++) {
        const struct qdqi_node *node = qdqi_maker_of(graph, t);
        if (!node || node->proto->n_input == 0)
            return false;
        if (qdqi_node_is(node->proto, "Concat"))
            return !joins_columns(node);
        const int computed = only_computed(node);
        if (computed < 0 || (!qdqi_node_is_one_of(node->proto, copies) &&
                             (!uniform || !is_uniform(node, computed))))
            return false;
        t = node->inputs[computed];
    }
    return false;
}

/* --- small products in a row ------------------------------------------------------ */

enum { MOST_ROWS = 8, MOST_SIDE = 256, MOST_AXES = 8 };

static bool
is_pair(const struct qdqi_node *node)
{
    static const char *const pairs[] = {"QuantizeLinear", "DequantizeLinear", NULL};
    return qdqi_node_is_one_of(node->proto, pairs);
}

static bool
is_few(int64_t rows)
{
    return rows >= 1 && rows <= MOST_ROWS;
}

/* Returns whether sizes, below 1 for one that is open, are those of so few rows, or samples, as
   OpenVINO computes several products of in one kernel. */
static bool
are_few(const int64_t *dims, size_t rank)
{
    int64_t rows = 1;
    for (size_t k = 0; k + 1 < rank && rows > 0; k++) {
        if (k == 0 && is_few(dims[k]))
            return true;
        rows = dims[k] > MOST_ROWS ? -1 : rows * dims[k];
    }
    return is_few(rows);
}

/* Returns whether an input of the model has few rows. */
static bool
feeds_few_rows(const struct qdq_model *model)
{
    for (size_t i = 0; i < model->info.n_inputs; i++) {
        const struct qdq_value *input = &model->info.inputs[i];
        int64_t dims[MOST_AXES];
        for (size_t k = 0; k < input->rank && k < MOST_AXES; k++)
            dims[k] = input->dims[k].value;
        if (input->has_shape && input->rank <= MOST_AXES && are_few(dims, input->rank))
            return true;
    }
    return false;
}

/* Returns whether a Reshape makes few rows. */
static bool
makes_few_rows(const struct qdq_model *model, const struct qdqi_node *reshape)
{
    struct qdqi_constant shape;
    int64_t dims[MOST_AXES];
    if (reshape->proto->n_input < 2 || !reshape->inputs[1] ||
        !reshape->inputs[1]->is_fixed ||
        qdqi_constant_read(model, reshape->inputs[1], &shape, NULL) ||
        shape.dtype != QDQI_INT64 || shape.n > MOST_AXES ||
        qdqi_constant_is_fill(&shape))
        return false;
    memcpy(dims, shape.bytes, shape.n * sizeof *dims);
    return are_few(dims, shape.n);
}

/* Returns whether an input of the model is a matrix of few rows: products of other ranks run right.
   `otherwise` for an input of a nested graph, or one without a shape. */
static bool
is_matrix_of_few(const struct qdq_model *model, const char *name, bool otherwise)
{
    for (size_t i = 0; i < model->info.n_inputs; i++) {
        const struct qdq_value *input = &model->info.inputs[i];
        if (strcmp(input->name, name) == 0 && input->has_shape)
            return input->rank == 2 && is_few(input->dims[0].value);
    }
    return otherwise;
}

/* Returns whether the node reads few rows, as far as a Reshape or an input of the model before it
   tells; `otherwise` where they do not. */
static bool
reads_few_rows(const struct qdq_model *model, const struct qdqi_node *node,
               bool otherwise)
{
    static const char *const moves[] = {"Flatten", "Squeeze", "Transpose", "Unsqueeze",
                                        NULL};
    const struct qdqi_tensor *t = node->inputs[0];
    while (t && t->producer >= 0) {
        const struct qdqi_node *maker = &model->graph.nodes[t->producer];
        if (qdqi_node_is(maker->proto, "Reshape"))
            return otherwise || makes_few_rows(model, maker);
        if (qdqi_node_is_one_of(maker->proto, moves) ||
            (!is_by_element(maker) && !is_pair(maker)))
            return otherwise;
        t = maker->proto->n_input > 0 ? maker->inputs[0] : NULL;
    }
    return t && t->is_input ? is_matrix_of_few(model, t->name, otherwise) : otherwise;
}

static bool
is_small_product(const struct qdqi_node *node)
{
    static const char *const ops[] = {"Gemm", "MatMul", NULL};
    const int64_t *dims;
    size_t rank;
    return qdqi_node_is_one_of(node->proto, ops) && node->proto->n_input > 1 &&
           node->inputs[1] && node->inputs[1]->is_fixed &&
           qdqi_tensor_dims(node->inputs[1], &dims, &rank) && rank == 2 &&
           dims[0] <= MOST_SIDE && dims[1] <= MOST_SIDE;
}

/* Returns whether an operand is a constant vector that OpenVINO adds behind a product. It takes one of
   numbers near 0 out. */
static bool
is_real_bias(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    static const float least = 1e-5F;
    struct qdqi_constant c;
    if (!t || !t->is_fixed || qdqi_constant_read(model, t, &c, NULL) ||
        c.dtype != QDQI_FLOAT32 || c.n < 2 || qdqi_constant_is_fill(&c))
        return false;
    for (size_t i = 0; i < c.n; i++)
        if (fabsf(qdqi_float_at(c.bytes, i)) >= least)
            return true;
    return false;
}

/* The product before a node, and whether what stands between makes the two run right. */
struct behind {
    size_t product; /* its index and 1; 0: there is none */
    bool
        is_biased; /* a bias right behind the product, and functions of one operand alone */
};

/* Returns what is behind the product that makes an input of the node, if one does. */
static struct behind
before(const struct qdqi_node *node, const struct behind *all)
{
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        if (t && !t->is_fixed && t->producer >= 0 && all[t->producer].product > 0)
            return all[t->producer];
    }
    return (struct behind){0};
}

/* Returns whether the node is the Add of a bias to the product that makes its other operand. */
static bool
adds_bias(const struct qdq_model *model, const struct qdqi_node *node, size_t product)
{
    if (!qdqi_node_is(node->proto, "Add") || node->proto->n_input != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        if (t && t->producer >= 0 && (size_t)t->producer + 1 == product)
            return is_real_bias(model, node->inputs[!i]);
    }
    return false;
}

static struct behind
behind_product(const struct qdq_model *model, const struct qdqi_node *node, size_t i)
{
    enum { BIAS = 2 };
    return (struct behind){i + 1, node->proto->n_input > BIAS &&
                                      is_real_bias(model, node->inputs[BIAS])};
}

bool *
qdqi_mark_small_chains(const struct qdq_model *model, struct qdqi_arena *arena,
                       bool ends_at_neg)
{
    const struct qdqi_graph *graph = &model->graph;
    bool *marked = qdqi_arena_array(arena, graph->n_nodes, sizeof *marked);
    struct behind *all = qdqi_arena_array(arena, graph->n_nodes, sizeof *all);
    if (!marked || !all)
        return NULL;
    const bool fed = feeds_few_rows(model);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        const struct behind last = before(node, all);
        if (is_small_product(node) &&
            (last.product > 0 || reads_few_rows(model, node, fed))) {
            all[i] = behind_product(model, node, i);
            if (last.product > 0 && !last.is_biased)
                marked[last.product - 1] = marked[i] = true;
        } else if (last.product > 0 && (is_by_element(node) || is_pair(node))) {
            const bool keeps = (node->proto->n_input == 1 || is_pair(node)) &&
                               !(ends_at_neg && qdqi_node_is(node->proto, "Neg"));
            all[i] = (struct behind){last.product,
                                     keeps ? last.is_biased
                                           : adds_bias(model, node, last.product)};
        }
    }
    return marked;
}
