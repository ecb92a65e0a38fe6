/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GELUs and LayerNormalizations that exporters make of five to nine nodes, written as the one operator
 * that ONNX has for them (rule Q18). The HTP computes that in integers, of all generations. The provider
 * makes an operator of floats of a GELU's nodes.
 */
#include "config.h"
#include "plan/targets/qnn/qnn.h"

#include "files/model/constant.h"
#include "graph/edit/edit.h"
#include "graph/layers/operators.h"
#include "numbers/arithmetic/both.h"
#include "plan/targets/shared/kept_axes.h"

#include <math.h>
#include <string.h>

enum { OPSET_NORM = 17, OPSET_GELU = 20, MOST_NODES = 12 };

/* Nodes that are one operator together. */
struct pattern {
    const struct qdqi_node *last; /* becomes the operator */
    const struct qdqi_node *inner[MOST_NODES];
    size_t n;
    const struct qdqi_tensor *x, *factor, *bias; /* which the operator reads */
    float epsilon;
};

static void
add(struct pattern *pattern, const struct qdqi_node *node)
{
    for (size_t i = 0; i < pattern->n; i++)
        if (pattern->inner[i] == node)
            return;
    if (pattern->n < MOST_NODES)
        pattern->inner[pattern->n++] = node;
}

/* Returns the node that makes a tensor, if it is of that operator and reads n inputs, and adds it; NULL. */
static const struct qdqi_node *
made_by(const struct qdq_model *model, struct pattern *pattern,
        const struct qdqi_tensor *t, const char *op, size_t n)
{
    const struct qdqi_node *node = qdqi_maker_of(&model->graph, t);
    if (!node || !qdqi_node_is(node->proto, op) || node->proto->n_input < n ||
        !node->inputs[0] || (n > 1 && !node->inputs[1]))
        return NULL;
    add(pattern, node);
    return node;
}

/* Returns whether the nodes of a pattern alone read what its inner ones make. */
static bool
is_closed(const struct qdq_model *model, const struct pattern *pattern)
{
    for (size_t i = 0; i < pattern->n; i++) {
        const struct qdqi_node *node = pattern->inner[i];
        const struct qdqi_tensor *t = node->outputs[0];
        if (node->proto->n_output != 1 || !t || t->is_output || t->is_captured ||
            node->scope != pattern->last->scope)
            return false;
        for (const struct qdqi_use *use = t->uses; use; use = use->next) {
            const struct qdqi_node *reader = &model->graph.nodes[use->node];
            bool is_inner = reader == pattern->last;
            for (size_t k = 0; k < pattern->n && !is_inner; k++)
                is_inner = reader == pattern->inner[k];
            if (!is_inner)
                return false;
        }
    }
    return pattern->n < MOST_NODES;
}

/* --- LayerNormalization -------------------------------------------------------------- */

/* Returns the length of a constant vector of float32 of two elements or more; 0 for any other tensor. */
static int64_t
length_of(const struct qdqi_tensor *t)
{
    const int64_t *dims;
    size_t rank;
    return t && t->is_fixed && t->dtype == QDQI_FLOAT32 &&
                   qdqi_tensor_dims(t, &dims, &rank) && rank == 1 && dims[0] > 1
               ? dims[0]
               : 0;
}

static bool
is_two(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    struct qdqi_constant c;
    return t && t->is_fixed && !qdqi_constant_read(model, t, &c, NULL) && c.n == 1 &&
           c.dtype == QDQI_FLOAT32 && qdqi_float_at(c.bytes, 0) == 2;
}

/* Returns the input of a mean over the last axis that makes the tensor, or NULL. */
static const struct qdqi_tensor *
mean_of(const struct qdq_model *model, struct pattern *pattern,
        const struct qdqi_tensor *t)
{
    const struct qdqi_node *node = made_by(model, pattern, t, "ReduceMean", 1);
    if (!node || !qdqi_node_int(node->proto, "keepdims", 1))
        return NULL;
    const Onnx__AttributeProto *axes = qdqi_node_attribute(node->proto, "axes");
    int64_t axis = axes && axes->n_ints == 1 ? axes->ints[0] : 0;
    size_t n = 1;
    if (node->proto->n_input > 1 &&
        (!node->inputs[1] ||
         !qdqi_constant_ints(model, node->inputs[1], &axis, 1, &n) || n != 1))
        return NULL;
    return axis == -1 ? node->inputs[0] : NULL;
}

/* Returns x, if the tensor is x less its mean, or NULL. */
static const struct qdqi_tensor *
centred(const struct qdq_model *model, struct pattern *pattern,
        const struct qdqi_tensor *t)
{
    const struct qdqi_node *sub = made_by(model, pattern, t, "Sub", 2);
    return sub && mean_of(model, pattern, sub->inputs[1]) == sub->inputs[0]
               ? sub->inputs[0]
               : NULL;
}

/* Returns whether the tensor is the square root of epsilon and the mean square of x less its mean. */
static bool
is_deviation(const struct qdq_model *model, struct pattern *pattern,
             const struct qdqi_tensor *t)
{
    struct qdqi_constant c;
    const struct qdqi_node *root = made_by(model, pattern, t, "Sqrt", 1);
    const struct qdqi_node *sum =
        root ? made_by(model, pattern, root->inputs[0], "Add", 2) : NULL;
    if (!sum || sum->inputs[0]->is_fixed == sum->inputs[1]->is_fixed)
        return false;
    const int constant = sum->inputs[1]->is_fixed;
    if (qdqi_constant_read(model, sum->inputs[constant], &c, NULL) || c.n != 1 ||
        c.dtype != QDQI_FLOAT32)
        return false;
    pattern->epsilon = qdqi_float_at(c.bytes, 0);
    const struct qdqi_tensor *squares = mean_of(model, pattern, sum->inputs[!constant]);
    const struct qdqi_node *product = made_by(model, pattern, squares, "Mul", 2);
    if (!product && (product = made_by(model, pattern, squares, "Pow", 2)) &&
        !is_two(model, product->inputs[1]))
        return false;
    return product &&
           (qdqi_node_is(product->proto, "Pow") ||
            product->inputs[0] == product->inputs[1]) &&
           centred(model, pattern, product->inputs[0]) == pattern->x;
}

/* Returns the other operand of a node with a constant vector, which *ret_vector becomes. */
static const struct qdqi_tensor *
beside_vector(const struct qdqi_node *node, const struct qdqi_tensor **ret_vector)
{
    for (int i = 0; node && i < 2; i++)
        if (node->inputs[i] && node->inputs[!i] && !node->inputs[!i]->is_fixed &&
            length_of(node->inputs[i])) {
            *ret_vector = node->inputs[i];
            return node->inputs[!i];
        }
    return NULL;
}

/* Finds out whether a node ends a LayerNormalization: (x - mean) / deviation * factor + bias. */
static bool
find_norm(const struct qdq_model *model, const struct qdqi_node *last,
          struct pattern *ret)
{
    *ret = (struct pattern){.last = last};
    if (!qdqi_node_is(last->proto, "Add") || last->proto->n_input != 2)
        return false;
    const struct qdqi_node *product =
        made_by(model, ret, beside_vector(last, &ret->bias), "Mul", 2);
    const struct qdqi_node *quotient =
        made_by(model, ret, beside_vector(product, &ret->factor), "Div", 2);
    if (!quotient || length_of(ret->bias) != length_of(ret->factor))
        return false;
    ret->x = centred(model, ret, quotient->inputs[0]);
    return ret->x && is_deviation(model, ret, quotient->inputs[1]) &&
           is_closed(model, ret);
}

/* --- GELU ------------------------------------------------------------------------------- */

/* Adds the parts of a GELU in front of one of them, and finds what it is computed from. */
static void
add_parts(const struct qdq_model *model, const uint8_t *parts,
          const struct qdqi_node *node, struct pattern *pattern)
{
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        const struct qdqi_node *maker = qdqi_maker_of(&model->graph, t);
        const uint8_t part = maker ? parts[t->producer] : QDQI_GELU_NONE;
        if (part == QDQI_GELU_FIRST || part == QDQI_GELU_INNER) {
            add(pattern, maker);
            if (pattern->n < MOST_NODES)
                add_parts(model, parts, maker, pattern);
        } else if (t && !t->is_fixed) {
            pattern->x = t;
        }
    }
}

static bool
find_gelu(const struct qdq_model *model, const uint8_t *parts,
          const struct qdqi_node *last, struct pattern *ret)
{
    *ret = (struct pattern){.last = last};
    if (parts[last - model->graph.nodes] != QDQI_GELU_LAST)
        return false;
    add_parts(model, parts, last, ret);
    return ret->x && is_closed(model, ret);
}

/* --- the spec ------------------------------------------------------------------------------ */

static bool
names(const struct qdq_layer_entry *entry, const struct qdqi_node *node)
{
    for (size_t k = 0; entry->by == QDQ_BY_NAME && k < entry->n_names; k++)
        if (strcmp(entry->names[k], node->name) == 0)
            return true;
    return false;
}

/* Returns whether an entry of the spec names an inner node, or a range what it makes: it stays. */
static bool
is_named(const struct qdq_spec *spec, const struct pattern *pattern)
{
    for (size_t i = 0; i < pattern->n; i++) {
        const struct qdqi_node *node = pattern->inner[i];
        for (size_t k = 0; k < spec->n_layers; k++)
            if (names(&spec->layers[k], node))
                return true;
        for (size_t k = 0; k < spec->calibration.n_ranges; k++)
            if (strcmp(spec->calibration.ranges[k].tensor, node->outputs[0]->name) == 0)
                return true;
    }
    return false;
}

/* --- the edit --------------------------------------------------------------------------------- */

static void
write(const struct qdq_model *model, struct qdqi_edit *edit,
      const struct pattern *pattern)
{
    const size_t last = (size_t)(pattern->last - model->graph.nodes);
    qdqi_edit_pass_on(edit, last, pattern->x->name);
    qdqi_edit_retype(edit, last, pattern->factor ? "LayerNormalization" : "Gelu", "",
                     "");
    if (pattern->factor) {
        qdqi_edit_put_input(edit, last, 1, pattern->factor->name);
        qdqi_edit_put_input(edit, last, 2, pattern->bias->name);
        qdqi_edit_set_float(edit, last, "epsilon", pattern->epsilon);
    }
    for (size_t i = 0; i < 2; i++)
        if (pattern->last->inputs[i] != pattern->x)
            qdqi_edit_drop_unused(edit, pattern->last->inputs[i]->name);
}

enum qdq_code
qdqi_join_patterns(const struct qdq_spec *spec, const struct qdq_model *model,
                   struct qdqi_edit *edit, struct qdqi_arena *arena, bool *joined,
                   struct qdq_error *err)
{
    const int64_t opset = qdqi_model_opset(model->proto);
    const uint8_t *parts = qdqi_mark_gelus(model, arena);
    if (!parts)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < model->graph.n_nodes; i++) {
        const struct qdqi_node *node = &model->graph.nodes[i];
        struct pattern pattern;
        const bool is_there =
            (opset >= OPSET_GELU && find_gelu(model, parts, node, &pattern)) ||
            (opset >= OPSET_NORM && find_norm(model, node, &pattern));
        if (!is_there || model->graph.scopes[node->scope].is_opaque ||
            is_named(spec, &pattern))
            continue;
        write(model, edit, &pattern);
        joined[i] = true;
        for (size_t k = 0; k < pattern.n; k++)
            joined[pattern.inner[k] - model->graph.nodes] = true;
    }
    return QDQ_OK;
}

int64_t
qdqi_qnn_least_opset(const struct qdq_spec *spec, const struct qdq_model *model)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    const uint8_t *parts = arena ? qdqi_mark_gelus(model, arena) : NULL;
    int64_t least = 0;
    for (size_t i = 0; parts && i < model->graph.n_nodes && least < OPSET_GELU; i++) {
        const struct qdqi_node *node = &model->graph.nodes[i];
        struct pattern pattern;
        if (spec->weight_only || model->graph.scopes[node->scope].is_opaque)
            continue;
        if (least < QDQI_OPSET_AXES_INPUT &&
            ((qdq_spec_has_rule(spec, Q20) && qdqi_drops_axes(node, "ReduceSum")) ||
             (qdq_spec_has_rule(spec, Q23) && qdqi_is_norm(node))))
            least = QDQI_OPSET_AXES_INPUT;
        if (!qdq_spec_has_rule(spec, Q18))
            continue;
        if (find_gelu(model, parts, node, &pattern))
            least = OPSET_GELU;
        else if (find_norm(model, node, &pattern))
            least = OPSET_NORM;
    }
    qdqi_arena_free(&arena);
    return least;
}
