/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of the model that was given, of which onnxruntime computes wrong numbers (faults.h). */
#include "config.h"
#include "plan/targets/onnxruntime/onnxruntime.h"

#include "files/model/constant.h"
#include "graph/layers/operators.h"
#include "plan/placement/lint.h"

#include <math.h>
#include <string.h>

enum { DATA, WEIGHT, BIAS, GEMM_INPUTS };
enum { SCALE = 1 }; /* input of DequantizeLinear */

/* A scale that differs by no more is a rounding of the product. */
static const double least_difference = 1e-3;

/* Reads the scales of the DequantizeLinear that makes an input of the node. Returns false where
   there is none whose scales are constants of float32. */
static bool
read_scales(const struct planner *p, const struct qdqi_node *node, int i,
            struct qdqi_constant *ret)
{
    const struct qdqi_node *pair =
        qdqi_maker_before_copies(&p->model->graph, node->inputs[i]);
    return pair && qdqi_node_is(pair->proto, "DequantizeLinear") &&
           pair->proto->n_input > SCALE && pair->inputs[SCALE] &&
           pair->inputs[SCALE]->is_fixed &&
           qdqi_constant_read(p->model, pair->inputs[SCALE], ret, NULL) == QDQ_OK &&
           ret->dtype == QDQI_FLOAT32 && ret->n > 0;
}

static double
scale_at(const struct qdqi_constant *c, size_t i)
{
    float value;
    const size_t at = c->n == 1 || qdqi_constant_is_fill(c) ? 0 : i;
    memcpy(&value, c->bytes + at * sizeof value, sizeof value);
    return (double)value;
}

/* Returns whether the node is a Gemm between pairs whose quantized bias has another scale than
   its product. */
static bool
has_own_bias_scale(const struct planner *p, const struct qdqi_node *node)
{
    struct qdqi_constant c[GEMM_INPUTS];
    if (!qdqi_node_is(node->proto, "Gemm") || node->proto->n_input < GEMM_INPUTS ||
        !qdqi_gemm_is_unscaled(node->proto))
        return false;
    for (int i = 0; i < GEMM_INPUTS; i++)
        if (!read_scales(p, node, i, &c[i]))
            return false;
    const size_t n = c[WEIGHT].n > c[BIAS].n ? c[WEIGHT].n : c[BIAS].n;
    if (c[DATA].n > 1 || (c[WEIGHT].n != n && c[WEIGHT].n > 1) ||
        (c[BIAS].n != n && c[BIAS].n > 1))
        return false;
    for (size_t i = 0; i < n; i++) {
        const double product = scale_at(&c[DATA], 0) * scale_at(&c[WEIGHT], i);
        if (!(fabs(scale_at(&c[BIAS], i) - product) <= least_difference * product))
            return true;
    }
    return false;
}

/* --- what the kernels do not take ------------------------------------------------ */

/* Returns the DequantizeLinear that makes a constant operand, or NULL. */
static const struct qdqi_node *
given_operand(const struct planner *p, const struct qdqi_node *node, size_t i)
{
    const struct qdqi_tensor *t = i < node->proto->n_input ? node->inputs[i] : NULL;
    const struct qdqi_node *pair =
        t && t->is_fixed ? qdqi_maker_before_copies(&p->model->graph, t) : NULL;
    return pair && qdqi_node_is(pair->proto, "DequantizeLinear") &&
                   pair->proto->n_input > SCALE && pair->inputs[SCALE]
               ? pair
               : NULL;
}

/* Returns whether the operand has several scales. *ret_rank: their axes and those of the operand. */
static bool
has_several(const struct qdqi_node *pair, size_t *ret_scale_rank, size_t *ret_rank)
{
    const int64_t *dims;
    size_t n;
    return pair && qdqi_tensor_dims(pair->inputs[0], &dims, ret_rank) &&
           qdqi_tensor_dims(pair->inputs[SCALE], &dims, ret_scale_rank) &&
           qdqi_count_elements(dims, *ret_scale_rank, &n) && n > 1;
}

/* Returns whether the operand's integers have 8 bits. */
static bool
has_bytes(const struct qdqi_node *pair)
{
    return pair->inputs[0]->dtype == QDQI_INT8 || pair->inputs[0]->dtype == QDQI_UINT8;
}

/* Returns whether the integer MatMul has no scales like those of its operands: it takes one for each
   column of a matrix on the right. */
static bool
misreads_product(const struct planner *p, const struct qdqi_node *node)
{
    const struct qdqi_node *left = given_operand(p, node, DATA);
    const struct qdqi_node *right = given_operand(p, node, WEIGHT);
    size_t scale_rank, rank;
    if (has_several(left, &scale_rank, &rank))
        return true;
    return has_several(right, &scale_rank, &rank) && has_bytes(right) &&
           (rank > 2 || scale_rank > 1);
}

static bool
misreads_conv(const struct planner *p, const struct qdqi_node *node)
{
    const struct qdqi_node *pair = given_operand(p, node, WEIGHT);
    size_t scale_rank, rank;
    return has_several(pair, &scale_rank, &rank) &&
           (scale_rank > 1 || qdqi_node_int(pair->proto, "axis", 1) % (int64_t)rank);
}

bool
qdqi_onnxruntime_misreads_given(const struct planner *p, const struct qdqi_node *node)
{
    const bool product = qdqi_node_is(node->proto, "MatMul");
    bool square;
    if (qdqi_has_scales_along_sum(&p->model->graph, node, &square) &&
        (square || product))
        return true;
    if (product)
        return misreads_product(p, node);
    if (qdqi_node_is(node->proto, "Conv"))
        return misreads_conv(p, node);
    return qdqi_node_is(node->proto, "Gemm") && given_operand(p, node, BIAS);
}

/* Returns whether the runtime takes the scales of the weight's rows for those of its columns: behind a
   pair, where their numbers are equal. Where they are not, a MatMul fails in its first run. */
static bool
has_scales_of_rows(const struct planner *p, const struct qdqi_node *node)
{
    bool square;
    if (!qdqi_has_scales_along_sum(&p->model->graph, node, &square))
        return false;
    const struct qdqi_node *pair =
        qdqi_maker_before_copies(&p->model->graph, node->inputs[DATA]);
    return (square || qdqi_node_is(node->proto, "MatMul")) && pair &&
           qdqi_node_is(pair->proto, "DequantizeLinear");
}

/* Returns whether the plan puts a pair in front of a layer with operands that the kernel misreads. */
static bool
is_planned_with_given(const struct planner *p, const struct qdqi_node *node)
{
    const struct qdq_layer *layer = p->by_node[node - p->model->graph.nodes];
    return layer && layer->n_inputs > 0 && qdqi_onnxruntime_misreads_given(p, node);
}

static enum qdq_code
warn_of(struct planner *p,
        bool (*means)(const struct planner *p, const struct qdqi_node *node),
        const char *text, struct qdq_error *err)
{
    struct qdqi_names nodes = {0};
    for (size_t i = 0; i < p->model->graph.n_nodes; i++)
        if (means(p, &p->model->graph.nodes[i]))
            qdqi_names_add(&nodes, p->model->graph.nodes[i].name);
    return qdqi_warn_misread(p, &nodes, text, err);
}

enum qdq_code
qdqi_onnxruntime_warn_given(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code =
        qdqi_warn_several_scales(p,
                                 "onnxruntime 1.31 makes integer kernels of what "
                                 "stands between pairs, which take "
                                 "one scale for an activation: they do not load, fail "
                                 "in their first run, or, as a "
                                 "Softmax, take the first scale for all: "
                                 "\"existing_qdq\": \"strip\" makes pairs "
                                 "anew",
                                 err);
    if (!code)
        code = warn_of(p, has_scales_of_rows,
                       "onnxruntime 1.31 takes the scales of the weight's rows, which "
                       "are summed over, for those of its columns, or fails in its "
                       "first run: \"existing_qdq\": \"strip\" makes pairs anew",
                       err);
    if (!code)
        code = warn_of(p, is_planned_with_given,
                       "the pair in front makes an integer kernel of it, and "
                       "onnxruntime 1.31 takes the scales that the model gives its "
                       "weight or its bias for others, or fails in its first run: "
                       "\"existing_qdq\": \"strip\" makes pairs anew, or leave it in "
                       "float, as rule C28 does",
                       err);
    if (code)
        return code;
    return warn_of(
        p, has_own_bias_scale,
        "onnxruntime 1.31 takes the product of the scales of data and weight for that "
        "of "
        "the Gemm's bias, whatever its DequantizeLinear says: \"existing_qdq\": "
        "\"strip\" makes pairs anew, or give the bias that scale, or leave it in float",
        err);
}
