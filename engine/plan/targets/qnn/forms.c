/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of one element, written as vectors over the last axis (rule Q8). The HTP leaves a
 * scalar Add of 8 bits out where it stands beside a Mul or behind a product of matrices
 * (faults.h), and not one of a vector.
 */
#include "config.h"
#include "plan/targets/qnn/qnn.h"

#include "files/model/constant.h"
#include "graph/edit/edit.h"
#include "graph/layers/operators.h"
#include "ground/base/map.h"
#include "numbers/arithmetic/both.h"
#include "plan/targets/shared/kept_axes.h"

#include <math.h>
#include <string.h>

/* The most nodes between a tensor and the one that tells its last axis; the longest vector that a
   constant becomes. */
enum { MOST_STEPS = 16, LONGEST = 1 << 16 };

/* From this opset on the bounds of a Clip are inputs. */
enum { OPSET_CLIP = 11 };

struct reforming {
    const struct qdq_model *model;
    struct qdqi_edit *edit;
    struct qdqi_arena *arena;
    struct qdqi_map
        *sizes; /* by tensor: int64_t, that of its last axis, as the file says it */
    const uint8_t *gelus; /* NULL: their constants become vectors, too */
    bool *joined; /* by node: it became a part of another operator, or that operator */
    bool any;
};

/* --- the length of the last axis ------------------------------------------------------ */

static bool
put_size(struct reforming *r, const Onnx__ValueInfoProto *value)
{
    if (!value->name || !value->type || !value->type->tensor_type ||
        !value->type->tensor_type->shape || !value->type->tensor_type->shape->n_dim)
        return true;
    const Onnx__TensorShapeProto *shape = value->type->tensor_type->shape;
    const Onnx__TensorShapeProto__Dimension *last = shape->dim[shape->n_dim - 1];
    if (last->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
        last->dim_value < 2)
        return true;
    int64_t *size = qdqi_arena_alloc(r->arena, sizeof *size);
    if (!size)
        return false;
    *size = last->dim_value;
    return qdqi_map_put(r->sizes, value->name, size);
}

static bool
read_sizes(struct reforming *r)
{
    const Onnx__GraphProto *graph = r->model->proto->graph;
    bool ok = (r->sizes = qdqi_map_new(r->arena)) != NULL;
    for (size_t i = 0; ok && i < graph->n_value_info; i++)
        ok = put_size(r, graph->value_info[i]);
    for (size_t i = 0; ok && i < graph->n_input; i++)
        ok = put_size(r, graph->input[i]);
    return ok;
}

/* Returns the size of the last axis of a constant; 0 where it has none. */
static int64_t
last_of_constant(const struct qdqi_tensor *t)
{
    const int64_t *dims;
    size_t rank;
    return t && t->is_fixed && qdqi_tensor_dims(t, &dims, &rank) && rank > 0
               ? dims[rank - 1]
               : 0;
}

static int64_t
last_of_shape(const struct reforming *r, const struct qdqi_tensor *shape)
{
    int64_t sizes[16];
    size_t n;
    return shape && qdqi_constant_ints(r->model, shape, sizes, 16, &n) && n > 0
               ? sizes[n - 1]
               : 0;
}

/* Returns whether the last axis of the output is that of the first input. */
static bool
keeps_last(const struct qdqi_node *node)
{
    static const char *const ops[] = {"Add", "Div",  "Identity", "LayerNormalization",
                                      "Mul", "Sqrt", "Sub",      "Softmax",
                                      "Erf", NULL};
    return qdqi_node_is_one_of(node->proto, ops) || qdqi_is_pointwise(node);
}

/* Returns the size of the tensor's last axis, if it is two or more and known; else 0. */
static int64_t
last_of(const struct reforming *r, const struct qdqi_tensor *t)
{
    for (int step = 0; t && step < MOST_STEPS; step++) {
        const int64_t *said = qdqi_map_get(r->sizes, t->name);
        const struct qdqi_node *node = qdqi_maker_of(&r->model->graph, t);
        if (said || !node)
            return said ? *said : 0;
        const size_t n = node->proto->n_input;
        int64_t found = 0;
        if (n > 1 && qdqi_node_is(node->proto, "Reshape"))
            return last_of_shape(r, node->inputs[1]) > 1
                       ? last_of_shape(r, node->inputs[1])
                       : 0;
        if (n > 1 && qdqi_node_is(node->proto, "Gemm"))
            found = node->inputs[1] && node->inputs[1]->view.stored &&
                            node->inputs[1]->view.rank == 2
                        ? node->inputs[1]
                              ->view.dims[!qdqi_node_int(node->proto, "transB", 0)]
                        : 0;
        else if (n > 1 && (qdqi_node_is(node->proto, "MatMul") || keeps_last(node)))
            found = last_of_constant(node->inputs[1]);
        if (n > 1 && found < 2 && keeps_last(node))
            found = last_of_constant(node->inputs[0]);
        if (found > 1 || n == 0 || !keeps_last(node))
            return found > 1 ? found : 0;
        t = n > 1 && node->inputs[0] && node->inputs[0]->is_fixed ? node->inputs[1]
                                                                  : node->inputs[0];
    }
    return 0;
}

/* --- constants ---------------------------------------------------------------------------- */

/* Returns the index of the operand of the node that is a constant of one element, or -1. */
static int
find_scalar(const struct reforming *r, const struct qdqi_node *node,
            struct qdqi_constant *ret)
{
    static const char *const ops[] = {"Add", "Div", "Max", "Min", "Mul", "Sub", NULL};
    if (!qdqi_node_is_one_of(node->proto, ops) || node->proto->n_input != 2 ||
        (r->gelus && r->gelus[node - r->model->graph.nodes]))
        return -1;
    for (int i = 0; i < 2; i++) {
        const struct qdqi_tensor *t = node->inputs[i], *other = node->inputs[!i];
        if (t && other && t->is_fixed && !other->is_fixed && !other->is_shape &&
            !qdqi_constant_is_overridable(r->model, t) &&
            !qdqi_constant_read(r->model, t, ret, NULL) && ret->n == 1 &&
            ret->dtype == QDQI_FLOAT32 && ret->rank <= 8)
            return i;
    }
    return -1;
}

static bool
write_vector(struct reforming *r, size_t i, int input, const struct qdqi_constant *c,
             int64_t n)
{
    const char *old = r->model->graph.nodes[i].inputs[input]->name;
    const size_t rank = c->rank ? c->rank : 1;
    float *elements = qdqi_arena_array(r->arena, (size_t)n, sizeof *elements);
    int64_t *dims = qdqi_arena_array(r->arena, rank, sizeof *dims);
    const char *name = qdqi_edit_name(r->edit, old, "_vector");
    if (!elements || !dims || !name)
        return false;
    for (int64_t k = 0; k < n; k++)
        elements[k] = qdqi_float_at(c->bytes, 0);
    for (size_t k = 0; k < rank; k++)
        dims[k] = k + 1 == rank ? n : 1;
    qdqi_edit_add_tensor(r->edit, name, QDQI_FLOAT32, rank, dims, elements,
                         (size_t)n * sizeof *elements);
    qdqi_edit_set_input(r->edit, i, (size_t)input, name);
    qdqi_edit_drop_unused(r->edit, old);
    r->any = true;
    return true;
}

/* Returns whether the node is the Max of a tensor and minus infinity, or the Min of one and infinity,
   which changes nothing: infinities have no integers. */
static bool
is_idle(const struct qdqi_node *node, const struct qdqi_constant *c)
{
    const float limit = qdqi_float_at(c->bytes, 0);
    return isinf(limit) && qdqi_node_is(node->proto, limit > 0 ? "Min" : "Max");
}

static bool
pass_on(struct reforming *r, size_t i, int constant)
{
    const struct qdqi_node *node = &r->model->graph.nodes[i];
    qdqi_edit_pass_on(r->edit, i, node->inputs[!constant]->name);
    qdqi_edit_drop_unused(r->edit, node->inputs[constant]->name);
    r->any = true;
    return true;
}

/* Writes the Max of a tensor and a constant as a Clip from below (faults.h). */
static bool
write_clip(struct reforming *r, size_t i, int constant, const struct qdqi_constant *c)
{
    const struct qdqi_node *node = &r->model->graph.nodes[i];
    const char *old = node->inputs[constant]->name;
    const char *inputs[2] = {node->inputs[!constant]->name,
                             qdqi_edit_name(r->edit, old, "_least")};
    if (!inputs[1])
        return false;
    qdqi_edit_add_initializer(r->edit, inputs[1], QDQI_FLOAT32, 1, true, c->bytes);
    qdqi_edit_become(r->edit, i, "Clip", inputs);
    qdqi_edit_drop_unused(r->edit, old);
    r->any = true;
    return true;
}

/* Writes a Reciprocal as the quotient of one and its input (faults.h). */
static bool
write_quotient(struct reforming *r, size_t i)
{
    static const float one = 1;
    const struct qdqi_node *node = &r->model->graph.nodes[i];
    const char *x = node->inputs[0]->name;
    const char *name = qdqi_edit_name(r->edit, x, "_one");
    if (!name)
        return false;
    qdqi_edit_add_initializer(r->edit, name, QDQI_FLOAT32, 1, false, &one);
    qdqi_edit_retype(r->edit, i, "Div", "", "");
    qdqi_edit_set_input(r->edit, i, 0, name);
    qdqi_edit_put_input(r->edit, i, 1, x);
    r->any = true;
    return true;
}

static bool
expand(struct reforming *r, size_t i)
{
    const struct qdqi_node *node = &r->model->graph.nodes[i];
    struct qdqi_constant c;
    if (qdqi_node_is(node->proto, "Reciprocal") && node->proto->n_input == 1 &&
        node->inputs[0] && !node->inputs[0]->is_fixed &&
        node->inputs[0]->dtype == QDQI_FLOAT32)
        return write_quotient(r, i);
    const int input = find_scalar(r, node, &c);
    if (input < 0)
        return true;
    const struct qdqi_tensor *other = node->inputs[!input];
    if (is_idle(node, &c))
        return pass_on(r, i, input);
    if (qdqi_node_is(node->proto, "Max") && c.rank < 2 &&
        qdqi_model_opset(r->model->proto) >= OPSET_CLIP)
        return write_clip(r, i, input, &c);
    const int64_t n = last_of(r, other);
    return n < 2 || n > LONGEST || write_vector(r, i, input, &c, n);
}

/* Writes a ReduceL2 as the square root of a sum of squares. */
static bool
write_root(struct reforming *r, size_t i)
{
    const struct qdqi_node *node = &r->model->graph.nodes[i];
    const struct qdqi_tensor *out = node->outputs[0];
    const size_t behind = qdqi_edit_behind(r->model, out);
    const char *x = node->inputs[0]->name, *axes = qdqi_axes_of(r->edit, node);
    const char *squares = qdqi_edit_name(r->edit, out->name, "_squares");
    const char *sum[2] = {qdqi_edit_name(r->edit, out->name, "_sum"), axes};
    const char *kept = qdqi_edit_name(r->edit, out->name, "_dropped");
    if (!axes || !squares || !sum[0] || !kept)
        return false;
    const bool drops = !qdqi_node_int(node->proto, "keepdims", 1);
    qdqi_edit_pass_on(r->edit, i, x);
    qdqi_edit_retype(r->edit, i, "Mul", "", "");
    qdqi_edit_put_input(r->edit, i, 1, x);
    qdqi_edit_set_output(r->edit, i, 0, squares);
    const char *products[2] = {squares, axes};
    qdqi_edit_add_node(r->edit, behind, "ReduceSum",
                       qdqi_edit_name(r->edit, node->name, "_sum"), products, 2,
                       sum[0]);
    if (drops)
        qdqi_edit_add_node(r->edit, behind, "Squeeze",
                           qdqi_edit_name(r->edit, node->name, "_axes"), sum, 2, kept);
    qdqi_edit_add_node(r->edit, behind, "Sqrt",
                       qdqi_edit_name(r->edit, node->name, "_root"),
                       drops ? &kept : sum, 1, out->name);
    return true;
}

/* Writes reductions as HTPs before v73 compute them (rules Q20 and Q23). */
static void
write_reductions(struct reforming *r, const struct qdq_spec *spec)
{
    const struct qdqi_graph *graph = &r->model->graph;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        if (r->joined[i] || graph->scopes[node->scope].is_opaque)
            continue;
        if ((qdq_spec_has_rule(spec, Q20) && qdqi_drops_axes(node, "ReduceSum") &&
             qdqi_keep_axes(r->model, r->edit, i)) ||
            (qdq_spec_has_rule(spec, Q23) && qdqi_is_norm(node) && write_root(r, i)))
            r->any = true;
    }
}

enum qdq_code
qdqi_qnn_reform(const struct qdq_spec *spec, const struct qdq_model *model,
                struct qdqi_edit *edit, struct qdqi_arena *arena, bool *ret_any,
                struct qdq_error *err)
{
    struct reforming r = {.model = model, .edit = edit, .arena = arena};
    if (spec->weight_only)
        return QDQ_OK;
    r.joined = qdqi_arena_array(arena, model->graph.n_nodes + 1, sizeof *r.joined);
    if (!r.joined)
        return qdqi_no_memory(err);
    enum qdq_code code =
        qdq_spec_has_rule(spec, Q18)
            ? qdqi_join_patterns(spec, model, edit, arena, r.joined, err)
            : QDQ_OK;
    for (size_t i = 0; i < model->graph.n_nodes; i++)
        *ret_any = *ret_any || r.joined[i];
    if (!code && qdqi_model_opset(model->proto) >= QDQI_OPSET_AXES_INPUT)
        write_reductions(&r, spec);
    *ret_any = *ret_any || r.any;
    if (code || !qdq_spec_has_rule(spec, Q8))
        return code;
    bool ok = read_sizes(&r);
    if (ok && qdq_spec_has_rule(spec, Q7))
        ok = (r.gelus = qdqi_mark_gelus(model, arena)) != NULL;
    for (size_t i = 0; ok && i < model->graph.n_nodes; i++)
        if (!r.joined[i] && !model->graph.scopes[model->graph.nodes[i].scope].is_opaque)
            ok = expand(&r, i);
    *ret_any = *ret_any || r.any;
    return ok ? QDQ_OK : qdqi_no_memory(err);
}
