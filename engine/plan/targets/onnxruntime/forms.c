/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of layers with integers as weights and floats as activations of which ONNX Runtime 1.31
 * makes one MatMulNBits, instead of dequantizing the weight in each run (rule C21):
 *
 *   a Gemm has no transB, and no alpha or beta other than 1: its weight is stored transposed, and
 *   the factors are part of the weight and of the bias, which has one axis;
 *   one whose weight is a table that Gathers read, too, is a MatMul behind a Transpose (rule P2);
 *   a Relu or Clip behind a MatMul or Gemm is a Max, a Min, or both.
 */
#include "config.h"
#include "plan/targets/onnxruntime/onnxruntime.h"

#include "files/model/constant.h"
#include "graph/edit/edit.h"
#include "graph/layers/operators.h"
#include "numbers/arithmetic/both.h"

#include <math.h>
#include <string.h>

/* From opset 13 on the bounds of a Clip are inputs and Max takes every float. */
enum { WEIGHT = 1, BIAS = 2, OPSET_MIN = 13 };

struct reforming {
    const struct qdq_spec *spec;
    const struct qdq_model *model;
    struct qdqi_edit *edit;
    struct qdqi_arena *arena;
    bool any;
};

/* A Gemm that is written anew. */
struct gemm {
    size_t node;
    struct qdqi_constant weight, bias;
    bool has_bias, turns, scales, flattens;
    bool
        shares; /* its weight, which is a table, too: a Transpose stands in front of it */
    float alpha, beta;
};

static float
factor_of(const Onnx__NodeProto *proto, const char *name)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(proto, name);
    return a ? a->f : 1;
}

/* --- the numbers ------------------------------------------------------------------ */

/* Reads a constant of floats in C order. */
static bool
read_floats(const struct reforming *r, const struct qdqi_tensor *t,
            struct qdqi_constant *ret)
{
    return t && t->is_fixed && !qdqi_constant_is_overridable(r->model, t) &&
           !qdqi_constant_read(r->model, t, ret, NULL) && !ret->strides &&
           (ret->dtype == QDQI_FLOAT32 || ret->dtype == QDQI_FLOAT16);
}

/* Returns whether one node alone reads the tensor. ONNX Runtime does not fuse others. */
static bool
has_one_reader(const struct qdqi_tensor *t)
{
    return t->uses && !t->uses->next && !t->is_output && !t->is_captured;
}

/* Returns the elements of a matrix in the order of its transpose. */
static uint8_t *
transpose(struct reforming *r, const struct qdqi_constant *w)
{
    const size_t rows = (size_t)w->dims[0], columns = (size_t)w->dims[1];
    const size_t size = w->dtype == QDQI_FLOAT16 ? 2 : 4;
    enum { TILE = 16 };
    uint8_t *ret = qdqi_arena_array(r->arena, w->n, size);
    for (size_t i = 0; ret && i < rows; i += TILE)
        for (size_t k = 0; k < columns; k += TILE)
            for (size_t a = i; a < i + TILE && a < rows; a++)
                for (size_t b = k; b < k + TILE && b < columns; b++)
                    memcpy(ret + (b * rows + a) * size,
                           w->bytes + (a * columns + b) * size, size);
    return ret;
}

/* Returns the constant's float32 elements times the factor; NULL where one is not finite. */
static uint8_t *
multiply(struct reforming *r, const uint8_t *bytes, size_t n, float factor)
{
    float *ret = qdqi_arena_array(r->arena, n, sizeof *ret);
    for (size_t i = 0; ret && i < n; i++) {
        ret[i] = qdqi_float_at(bytes, i) * factor;
        if (!isfinite(ret[i]))
            return NULL;
    }
    return (uint8_t *)ret;
}

/* Adds a constant of the type and the number of elements of another. */
static void
add_like(struct reforming *r, const char *name, const struct qdqi_constant *like,
         size_t rank, const int64_t *dims, const uint8_t *bytes)
{
    const size_t size = like->dtype == QDQI_FLOAT16 ? 2 : 4;
    if (name)
        qdqi_edit_add_tensor(r->edit, name, like->dtype, rank, dims, bytes,
                             like->n * size);
}

static void
replace_input(struct reforming *r, size_t node, size_t input, const char *name)
{
    const char *old = r->model->graph.nodes[node].inputs[input]->name;
    qdqi_edit_set_input(r->edit, node, input, name);
    qdqi_edit_drop_unused(r->edit, old);
}

/* --- Gemm ------------------------------------------------------------------------- */

/* Returns whether the bias is one number for each column. */
static bool
is_row(const struct qdqi_constant *bias, int64_t columns)
{
    return bias->rank >= 1 && bias->rank <= 2 && (int64_t)bias->n == columns &&
           bias->dims[bias->rank - 1] == columns;
}

/* Returns whether an entry selects the node by its operator, which must not change then. */
static bool
is_selected(const struct reforming *r, const char *op)
{
    for (size_t i = 0; i < r->spec->n_layers; i++)
        for (size_t k = 0; k < r->spec->layers[i].n_names; k++)
            if (strcmp(r->spec->layers[i].names[k], op) == 0)
                return true;
    return false;
}

/* Returns whether rule P2 can store the weight of Gemm i for the Gathers that read it, too. */
static bool
is_shared_table(const struct reforming *r, size_t i)
{
    const struct qdqi_tensor *t = r->model->graph.nodes[i].inputs[WEIGHT];
    if (!qdq_spec_has_rule(r->spec, P2) || t->is_output || t->is_captured ||
        is_selected(r, "Gemm"))
        return false;
    for (const struct qdqi_use *use = t->uses; use; use = use->next)
        if (use->node != i &&
            (use->input != 0 ||
             !qdqi_node_is(r->model->graph.nodes[use->node].proto, "Gather")))
            return false;
    return true;
}

/* Reads a Gemm that has another form, and says what is to change. */
static bool
begin(const struct reforming *r, size_t i, struct gemm *ret)
{
    const struct qdqi_node *node = &r->model->graph.nodes[i];
    const Onnx__NodeProto *proto = node->proto;
    if (!qdqi_node_is(proto, "Gemm") || proto->n_input < 2 ||
        qdqi_node_int(proto, "transA", 0) ||
        !read_floats(r, node->inputs[WEIGHT], &ret->weight) || ret->weight.rank != 2 ||
        ret->weight.n == 0)
        return false;
    ret->node = i;
    ret->shares = !has_one_reader(node->inputs[WEIGHT]);
    ret->turns = qdqi_node_int(proto, "transB", 0) != 0;
    ret->alpha = factor_of(proto, "alpha");
    ret->beta = factor_of(proto, "beta");
    ret->has_bias = proto->n_input > BIAS && node->inputs[BIAS];
    if (ret->has_bias && (!read_floats(r, node->inputs[BIAS], &ret->bias) ||
                          !is_row(&ret->bias, ret->weight.dims[!ret->turns])))
        return false;
    ret->flattens = ret->has_bias && ret->bias.rank == 2;
    ret->scales = ret->alpha != 1 || (ret->has_bias && ret->beta != 1);
    if (ret->shares && (!ret->turns || ret->alpha != 1 || !is_shared_table(r, i)))
        return false;
    return (ret->turns || ret->scales || ret->flattens) &&
           (!ret->scales || ret->weight.dtype == QDQI_FLOAT32);
}

/* Returns the elements of the weight as they are to be stored; NULL where one is not finite. */
static const uint8_t *
make_weight(struct reforming *r, const struct gemm *g)
{
    const uint8_t *ret = g->turns ? transpose(r, &g->weight) : g->weight.bytes;
    return ret && g->alpha != 1 ? multiply(r, ret, g->weight.n, g->alpha) : ret;
}

/* Makes a Gemm read the transpose of its weight, which others read as it is. */
static bool
add_transpose(struct reforming *r, size_t node, const char *weight)
{
    static const int64_t swapped[] = {1, 0};
    const char *made = qdqi_edit_name(r->edit, weight, "_transposed");
    Onnx__NodeProto *added = qdqi_edit_add_node(
        r->edit, node, "Transpose", qdqi_edit_name(r->edit, weight, "_Transpose"),
        &weight, 1, made);
    qdqi_edit_add_ints(r->edit, added, "perm", 2, swapped);
    qdqi_edit_set_input(r->edit, node, WEIGHT, made);
    return added;
}

static bool
write_weight(struct reforming *r, const struct gemm *g)
{
    const char *old = r->model->graph.nodes[g->node].inputs[WEIGHT]->name;
    const int64_t *dims = g->weight.dims, turned[] = {dims[1], dims[0]};
    if (g->shares)
        return add_transpose(r, g->node, old);
    const uint8_t *bytes = make_weight(r, g);
    if (!bytes || bytes == g->weight.bytes)
        return bytes;
    const char *name =
        qdqi_edit_name(r->edit, old, g->turns ? "_transposed" : "_scaled");
    add_like(r, name, &g->weight, 2, g->turns ? turned : dims, bytes);
    replace_input(r, g->node, WEIGHT, name);
    return true;
}

/* Makes a MatMul of the Gemm, and an Add of its bias. ONNX Runtime takes a Transpose into a Gemm. */
static void
write_product(struct reforming *r, const struct gemm *g, const char *bias)
{
    const struct qdqi_node *node = &r->model->graph.nodes[g->node];
    const struct qdqi_tensor *out = node->outputs[0];
    qdqi_edit_retype(r->edit, g->node, "MatMul", "", "transA");
    if (!g->has_bias)
        return;
    const char *inputs[] = {qdqi_edit_name(r->edit, out->name, "_product"), bias};
    qdqi_edit_drop_last_input(r->edit, g->node);
    qdqi_edit_set_output(r->edit, g->node, 0, inputs[0]);
    qdqi_edit_add_node(r->edit, qdqi_edit_behind(r->model, out), "Add",
                       qdqi_edit_name(r->edit, node->name, "_bias"), inputs, 2,
                       out->name);
}

/* Writes the bias as a row that has been multiplied by beta. Returns its name. */
static const char *
write_bias(struct reforming *r, const struct gemm *g, const uint8_t *bytes)
{
    const char *old = r->model->graph.nodes[g->node].inputs[BIAS]->name;
    if (!g->flattens && g->beta == 1)
        return old;
    const char *name = qdqi_edit_name(r->edit, old, "_row");
    add_like(r, name, &g->bias, 1, &g->weight.dims[!g->turns], bytes);
    replace_input(r, g->node, BIAS, name);
    return name;
}

static void
write_gemm(struct reforming *r, const struct gemm *g)
{
    static const char *const gone[] = {"transB", "alpha", "beta"};
    const uint8_t *bytes = g->has_bias ? g->bias.bytes : NULL;
    if (bytes && g->beta != 1)
        bytes = multiply(r, bytes, g->bias.n, g->beta);
    if ((g->has_bias && !bytes) || !write_weight(r, g))
        return;
    const char *bias = g->has_bias ? write_bias(r, g, bytes) : NULL;
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        qdqi_edit_retype(r->edit, g->node, "Gemm", "", gone[i]);
    if (g->shares)
        write_product(r, g, bias);
    r->any = true;
}

/* --- Relu and Clip ---------------------------------------------------------------- */

/* Returns whether a MatMul or Gemm with a constant on the right makes the tensor, or the Add of a
   constant behind one, and nothing else reads what it makes. */
static bool
is_of_layer(const struct reforming *r, const struct qdqi_tensor *t, bool behind_add)
{
    static const char *const ops[] = {"MatMul", "Gemm", NULL};
    const struct qdqi_node *maker = qdqi_maker_of(&r->model->graph, t);
    if (!maker || !t->uses || t->uses->next)
        return false;
    if (!behind_add && qdqi_node_is(maker->proto, "Add") && maker->proto->n_input == 2)
        for (size_t i = 0; i < 2; i++)
            if (maker->inputs[i] && maker->inputs[!i] && maker->inputs[!i]->is_fixed &&
                is_of_layer(r, maker->inputs[i], true))
                return true;
    return qdqi_node_is_one_of(maker->proto, ops) && maker->proto->n_input > WEIGHT &&
           maker->inputs[WEIGHT] && maker->inputs[WEIGHT]->is_fixed;
}

static void
write_relu(struct reforming *r, size_t i)
{
    static const float zero[1];
    static const uint8_t half_zero[2];
    const struct qdqi_node *node = &r->model->graph.nodes[i];
    const bool half = node->inputs[0]->dtype == QDQI_FLOAT16;
    const char *name = qdqi_edit_name(r->edit, node->outputs[0]->name, "_zero");
    qdqi_edit_add_initializer(r->edit, name, half ? QDQI_FLOAT16 : QDQI_FLOAT32, 1,
                              true, half ? (const void *)half_zero : zero);
    qdqi_edit_retype(r->edit, i, "Max", "", "");
    qdqi_edit_put_input(r->edit, i, 1, name);
    r->any = true;
}

/* Returns the name of a bound of a Clip, or NULL where it has none. */
static const char *
bound_of(const struct qdqi_node *node, size_t input)
{
    return input < node->proto->n_input && node->inputs[input]
               ? node->inputs[input]->name
               : NULL;
}

static void
write_clip(struct reforming *r, size_t i)
{
    const struct qdqi_node *node = &r->model->graph.nodes[i];
    const struct qdqi_tensor *out = node->outputs[0];
    const char *least = bound_of(node, 1), *most = bound_of(node, 2);
    const char *inputs[] = {node->inputs[0]->name, least ? least : most};
    if (!inputs[1])
        return;
    qdqi_edit_become(r->edit, i, least ? "Max" : "Min", inputs);
    r->any = true;
    if (!least || !most)
        return;
    const char *capped[] = {qdqi_edit_name(r->edit, out->name, "_floored"), most};
    qdqi_edit_set_output(r->edit, i, 0, capped[0]);
    qdqi_edit_add_node(r->edit, qdqi_edit_behind(r->model, out), "Min",
                       qdqi_edit_name(r->edit, node->name, "_min"), capped, 2,
                       out->name);
}

static void
write_clipping(struct reforming *r, size_t i)
{
    const struct qdqi_node *node = &r->model->graph.nodes[i];
    const Onnx__NodeProto *proto = node->proto;
    const bool relu = qdqi_node_is(proto, "Relu");
    if ((!relu && !qdqi_node_is(proto, "Clip")) || proto->n_input < 1 ||
        proto->n_output != 1 || !node->inputs[0] || !node->outputs[0] ||
        (node->inputs[0]->dtype != QDQI_FLOAT32 &&
         node->inputs[0]->dtype != QDQI_FLOAT16) ||
        !is_of_layer(r, node->inputs[0], false) || is_selected(r, proto->op_type))
        return;
    if (relu)
        write_relu(r, i);
    else
        write_clip(r, i);
}

/* --- the hook --------------------------------------------------------------------- */

enum qdq_code
qdqi_onnxruntime_reform(const struct qdq_spec *spec, const struct qdq_model *model,
                        struct qdqi_edit *edit, struct qdqi_arena *arena, bool *ret_any,
                        struct qdq_error *err)
{
    const struct qdqi_graph *graph = &model->graph;
    struct reforming r = {.spec = spec, .model = model, .edit = edit, .arena = arena};
    if (!qdq_spec_has_rule(spec, C21) || qdqi_model_opset(model->proto) < OPSET_MIN)
        return QDQ_OK;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct gemm gemm = {0};
        if (graph->scopes[graph->nodes[i].scope].is_opaque)
            continue;
        if (begin(&r, i, &gemm))
            write_gemm(&r, &gemm);
        else
            write_clipping(&r, i);
    }
    *ret_any = r.any;
    return qdqi_arena_exhausted(arena) ? qdqi_no_memory(err) : QDQ_OK;
}
