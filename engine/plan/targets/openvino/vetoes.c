/* SPDX-License-Identifier: Apache-2.0 */
/* The layers that stay in floating point by the rules of the target openvino, and the
   warnings about pairs that entries ask for nevertheless. */
#include "config.h"

#include "graph/layers/operators.h"
#include "plan/targets/openvino/openvino.h"
#include "plan/targets/shared/squares.h"

/* the most layers between an input of the model and a Conv */
enum { MOST_INPUT_STEPS = 8 };
/* elements of the largest depthwise kernel that is faster with integers */
enum { MOST_KERNEL_ELEMENTS = 9 };

/*
 * Making integers of an input of the model for a Conv with strides pays from
 * LEAST_INPUT_PRODUCTS products of each number on: measured by OpenVINO 2026.4.1 with AMX,
 * 18 take 0.72 to 0.99 of the time in floating point, and 36 gain as often as they lose. A
 * pointwise Conv from 8 channels to 8 takes up to 1.18 of the float model's time with
 * integers, one to 16 less than it. bench/README.md has the tables.
 */
enum { LEAST_INPUT_PRODUCTS = 24, LEAST_CHANNELS_READ = 16, LEAST_CHANNELS_MADE = 12 };

/* --- marks ----------------------------------------------------------------- */

/* The target's findings about a model, by node. */
struct marks {
    const bool *squared; /* its output is squared; NULL without rule V7 */
    /* its output is the largest of several numbers; a pool and a function that falls made it
       (wrong_numbers.c) */
    const bool *extreme, *turned;
    const bool *chained;  /* a small product in a row of them */
    const bool *loose;    /* a factor below zero that goes into a pair */
    const bool *averaged; /* an average behind factors below zero */
};

static const struct marks *
marks_of(const struct planner *p)
{
    return p->marks;
}

enum qdq_code
qdqi_openvino_begin(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &p->model->graph;
    struct qdqi_arena *arena = p->plan->arena;
    const bool squares = qdqi_rule_is_on(p, V7);
    struct marks *marks = qdqi_arena_alloc(arena, sizeof *marks);
    if (!marks)
        return qdqi_no_memory(err);
    *marks = (struct marks){
        .squared = squares ? qdqi_mark_squared(graph, arena) : NULL,
        .extreme = qdqi_mark_extremes(graph, arena),
        .turned = qdqi_mark_turned(p->model, arena),
        .chained = qdqi_mark_small_chains(p->model, arena, qdqi_rule_is_on(p, V22)),
        .loose = qdqi_mark_loose_factors(p->model, arena, qdqi_rule_is_on(p, V26)),
        .averaged = qdqi_mark_averaged(p->model, arena),
    };
    p->marks = marks;
    return (marks->squared || !squares) && marks->extreme && marks->turned &&
                   marks->chained && marks->loose && marks->averaged
               ? QDQ_OK
               : qdqi_no_memory(err);
}

/* --- kernels that cost more than they gain --------------------------------- */

static bool
is_slow_product(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Gemm", "MatMul", NULL};
    return qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, ops);
}

/* Returns whether the layer is a Conv whose weight has one input channel. */
static bool
has_one_input(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const int64_t *dims;
    size_t rank;
    return qdqi_node_is(node->proto, "Conv") && layer->weight_input >= 0 &&
           qdqi_tensor_dims(node->inputs[layer->weight_input], &dims, &rank) &&
           rank > 2 && dims[1] == 1;
}

static bool
is_depthwise(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_node_int(qdqi_node_of(p, layer)->proto, "group", 1) > 1 &&
           has_one_input(p, layer);
}

/* Returns whether the layer is depthwise with more than 3 x 3 elements for each channel. */
static bool
is_wide_depthwise(const struct planner *p, const struct qdq_layer *layer)
{
    const int64_t *dims;
    size_t rank;
    int64_t n = 1;
    if (!is_depthwise(p, layer) ||
        !qdqi_tensor_dims(qdqi_node_of(p, layer)->inputs[layer->weight_input], &dims,
                          &rank))
        return false;
    for (size_t i = 2; i < rank && n <= MOST_KERNEL_ELEMENTS; i++)
        n *= dims[i] <= MOST_KERNEL_ELEMENTS ? dims[i] : MOST_KERNEL_ELEMENTS + 1;
    return n > MOST_KERNEL_ELEMENTS;
}

/* Returns whether the tensor is an input of the model, perhaps behind layers that move or
   scale it. */
static bool
is_given(const struct planner *p, const struct qdqi_tensor *t)
{
    static const char *const ops[] = {"Add", "Cast",      "Div",       "Identity",
                                      "Mul", "Pad",       "Reshape",   "Squeeze",
                                      "Sub", "Transpose", "Unsqueeze", NULL};
    for (int i = 0; t && i < MOST_INPUT_STEPS; i++) {
        const struct qdqi_node *node = qdqi_maker_of(&p->model->graph, t);
        if (!node)
            return t->is_input && t->scope == 0 && !t->is_fixed;
        if (!qdqi_node_is_one_of(node->proto, ops) || node->proto->n_input == 0)
            return false;
        t = node->inputs[0];
    }
    return false;
}

/* Returns the dimensions of the weight of a Conv without groups; NULL for other layers. */
static const int64_t *
plain_conv(const struct qdqi_node *node, const struct qdq_layer *layer,
           size_t *ret_rank)
{
    const int64_t *dims;
    return qdqi_node_is(node->proto, "Conv") && layer->weight_input == 1 &&
                   qdqi_node_int(node->proto, "group", 1) == 1 &&
                   qdqi_tensor_dims(node->inputs[1], &dims, ret_rank) && *ret_rank > 2
               ? dims
               : NULL;
}

static double
count_taps(const int64_t *dims, size_t rank)
{
    double taps = 1;
    for (size_t i = 2; i < rank; i++)
        taps *= (double)dims[i];
    return taps;
}

static bool
reads_input_seldom(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    size_t rank;
    const int64_t *dims = plain_conv(node, layer, &rank);
    if (!dims)
        return false;
    const double strides = qdqi_strides(node);
    return strides > 1 &&
           (double)dims[0] * count_taps(dims, rank) / strides < LEAST_INPUT_PRODUCTS &&
           is_given(p, node->inputs[0]);
}

static bool
is_narrow_pointwise(const struct planner *p, const struct qdq_layer *layer)
{
    size_t rank;
    const int64_t *dims = plain_conv(qdqi_node_of(p, layer), layer, &rank);
    return dims && count_taps(dims, rank) <= 1 && dims[0] < LEAST_CHANNELS_MADE &&
           dims[1] < LEAST_CHANNELS_READ;
}

static bool
makes_spectrum(const struct planner *p, const struct qdq_layer *layer)
{
    return marks_of(p)->squared[layer->node];
}

static bool
is_made_by(const bool *marked, const struct qdqi_tensor *t)
{
    return t && t->producer >= 0 && marked[t->producer];
}

/* --- wrong numbers (faults.h) ---------------------------------------------- */

/* Returns whether marked nodes make data that the layer reads, or would read. */
static bool
reads_any(const struct planner *p, const struct qdq_layer *layer, const bool *marked)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    for (size_t i = 0; i < node->proto->n_input; i++)
        if ((int)i != layer->weight_input && is_made_by(marked, node->inputs[i]))
            return true;
    return false;
}

static bool
reads_extremes(const struct planner *p, const struct qdq_layer *layer)
{
    return reads_any(p, layer, marks_of(p)->extreme);
}

static bool
reads_turned(const struct planner *p, const struct qdq_layer *layer)
{
    return reads_any(p, layer, marks_of(p)->turned);
}

static bool
is_chained(const struct planner *p, const struct qdq_layer *layer)
{
    return marks_of(p)->chained[layer->node];
}

static bool
reads_loose(const struct planner *p, const struct qdq_layer *layer)
{
    return reads_any(p, layer, marks_of(p)->loose);
}

static bool
reads_averaged(const struct planner *p, const struct qdq_layer *layer)
{
    return reads_any(p, layer, marks_of(p)->averaged);
}

const struct qdqi_veto qdqi_openvino_vetoes[] = {
    {QDQI_VETO(V12), reads_extremes, false},
    {QDQI_VETO(V13), reads_turned, false},
    {QDQI_VETO(V21), is_chained, false},
    {QDQI_VETO(V22), reads_loose, false},
    {QDQI_VETO(V26), reads_averaged, false},
    {QDQI_VETO(V4), is_slow_product, false},
    {QDQI_VETO(V7), makes_spectrum, false},
    {QDQI_VETO(V8), has_one_input, false},
    {QDQI_VETO(V9), is_wide_depthwise, false},
    {QDQI_VETO(V10), reads_input_seldom, false},
    {QDQI_VETO(V11), is_narrow_pointwise, false},
    {0},
};

/* --- warnings -------------------------------------------------------------- */

/* Returns whether a pair of the layer stands behind a marked node. */
static bool
has_pair_behind(const struct planner *p, const struct qdq_layer *layer,
                const bool *marked)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    for (size_t i = 0; i < layer->n_inputs; i++)
        if (is_made_by(marked, node->inputs[layer->quantized_inputs[i]]))
            return true;
    return false;
}

static bool
lint_pair_behind_maximum(const struct planner *p, const struct qdq_layer *layer)
{
    return has_pair_behind(p, layer, marks_of(p)->extreme);
}

static bool
lint_pair_behind_pool(const struct planner *p, const struct qdq_layer *layer)
{
    return has_pair_behind(p, layer, marks_of(p)->turned);
}

const struct qdqi_lint qdqi_openvino_lints[] = {
    {QDQI_LINT(pair_behind_maximum), V12,
     "OpenVINO computes wrong numbers where a pair stands behind a ReduceMax, a "
     "ReduceMin or a GlobalMaxPool; leave the layer in floating point",
     QDQI_LINT_ALWAYS},
    {QDQI_LINT(pair_behind_pool), V13,
     "OpenVINO computes wrong numbers where a pair stands behind a pool of windows, or "
     "a "
     "Conv without biases and its Relu, and a factor below zero; leave the layer in "
     "floating point",
     QDQI_LINT_ALWAYS},
    {0},
};
