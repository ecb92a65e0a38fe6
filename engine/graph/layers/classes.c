/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/classes.h"

#include "files/model/constant.h"
#include "graph/layers/rows.h"
#include "qdq/words.h"

#include <string.h>

bool
qdqi_input_is_constant(const struct qdqi_node *node, int i)
{
    return i >= 0 && (size_t)i < node->proto->n_input && node->inputs[i] &&
           node->inputs[i]->is_fixed;
}

bool
qdqi_input_is_computed(const struct qdqi_node *node, int i)
{
    return i >= 0 && (size_t)i < node->proto->n_input && node->inputs[i] &&
           !node->inputs[i]->is_fixed && !node->inputs[i]->is_shape;
}

/* --- predicates of the table ---------------------------------------------- */

bool
qdqi_is_any_node(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    (void)node;
    return true;
}

/* Returns the rank of the weight's shape; 0 when it is not constant or cannot be
   read. */
static size_t
weight_shape(const struct qdqi_node *node, const int64_t **ret)
{
    size_t rank = 0;
    return qdqi_input_is_constant(node, 1) &&
                   qdqi_tensor_dims(node->inputs[1], ret, &rank)
               ? rank
               : 0;
}

static bool
qdqi_is_conv_2d(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    const int64_t *dims;
    return weight_shape(node, &dims) == 4;
}

/* Returns whether the weight is [C*M, 1, kh, kw] with C groups (ONNX Conv-22). */
static bool
qdqi_is_depthwise_conv(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    int64_t group = qdqi_node_int(node->proto, "group", 1);
    const int64_t *dims;
    return group > 1 && weight_shape(node, &dims) == 4 && dims[1] == 1 &&
           dims[0] % group == 0;
}

bool
qdqi_is_one_constant_operand(const struct qdq_model *model,
                             const struct qdqi_node *node)
{
    (void)model;
    return qdqi_input_is_constant(node, 0) != qdqi_input_is_constant(node, 1);
}

static bool
qdqi_is_all_computed(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (!qdqi_input_is_computed(node, (int)i))
            return false;
    return node->proto->n_input > 0;
}

/* Returns the tensor in front of Identity and Transpose nodes, which exporters leave
   between the halves of a pattern. At most four such nodes are skipped. */
static const struct qdqi_tensor *
look_behind_layout(const struct qdq_model *model, const struct qdqi_tensor *tensor)
{
    for (int steps = 0; steps < 4 && tensor && tensor->producer >= 0; steps++) {
        const struct qdqi_node *maker = &model->graph.nodes[tensor->producer];
        if (!qdqi_node_is(maker->proto, "Identity") &&
            !qdqi_node_is(maker->proto, "Transpose"))
            break;
        tensor = maker->proto->n_input ? maker->inputs[0] : NULL;
    }
    return tensor;
}

/* Returns whether input b is Sigmoid of input a. */
static bool
is_sigmoid_of(const struct qdq_model *model, const struct qdqi_node *node, int a, int b)
{
    const struct qdqi_tensor *gate = look_behind_layout(model, node->inputs[b]);
    if (!gate || gate->producer < 0)
        return false;
    const struct qdqi_node *sigmoid = &model->graph.nodes[gate->producer];
    return qdqi_node_is(sigmoid->proto, "Sigmoid") && sigmoid->proto->n_input == 1 &&
           look_behind_layout(model, sigmoid->inputs[0]) ==
               look_behind_layout(model, node->inputs[a]);
}

static bool
qdqi_is_all_computed_no_swish(const struct qdq_model *model,
                              const struct qdqi_node *node)
{
    return node->proto->n_input == 2 && qdqi_is_all_computed(model, node) &&
           !is_sigmoid_of(model, node, 0, 1) && !is_sigmoid_of(model, node, 1, 0);
}

/* Reads the axes of a Reduce operator: an attribute, or from opset 18 on a constant
   input. */
static bool
reduce_axes(const struct qdq_model *model, const struct qdqi_node *node, int64_t *axes,
            size_t max, size_t *ret_n)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, "axes");
    if (a && a->n_ints > 0 && a->n_ints <= max) {
        memcpy(axes, a->ints, a->n_ints * sizeof *axes);
        *ret_n = a->n_ints;
        return true;
    }
    return qdqi_input_is_constant(node, 1) &&
           qdqi_constant_ints(model, node->inputs[1], axes, max, ret_n);
}

/* Returns whether the axes are {2,3} or {2,3,4}, the spatial axes of a batch of
   images or volumes, in any order and counted from the front or from the end. */
static bool
are_spatial(const int64_t *axes, size_t n)
{
    unsigned from_front = 0, from_end = 0;
    for (size_t i = 0; i < n; i++) {
        if (axes[i] >= 2 && axes[i] < 2 + (int64_t)n)
            from_front |= 1u << (axes[i] - 2);
        if (axes[i] < 0 && axes[i] >= -(int64_t)n)
            from_end |= 1u << -(axes[i] + 1);
    }
    unsigned all = (1u << n) - 1;
    return from_front == all || from_end == all;
}

/* Converts axes of a transposed tensor to axes of the Transpose's input. */
static void
look_behind_transpose(const struct qdq_model *model, const struct qdqi_node *node,
                      int64_t *axes, size_t n)
{
    int64_t maker = node->inputs[0] ? node->inputs[0]->producer : -1;
    if (maker < 0 || !qdqi_node_is(model->graph.nodes[maker].proto, "Transpose"))
        return;
    const Onnx__AttributeProto *perm =
        qdqi_node_attribute(model->graph.nodes[maker].proto, "perm");
    int64_t rank = perm ? (int64_t)perm->n_ints : 0;
    for (size_t i = 0; i < n; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis >= 0 && axis < rank)
            axes[i] = perm->ints[axis];
    }
}

static bool
qdqi_is_reduces_all_spatial_axes(const struct qdq_model *model,
                                 const struct qdqi_node *node)
{
    int64_t axes[3];
    size_t n;
    if (!reduce_axes(model, node, axes, 3, &n) || n < 2)
        return false;
    look_behind_transpose(model, node, axes, n);
    return are_spatial(axes, n);
}

/* --- channel axes -------------------------------------------------------- */

QDQI_AXIS(NONE)
{
    return -1;
}

static QDQI_AXIS(FIRST)
{
    return rank >= 1 ? 0 : -1;
}

QDQI_AXIS(LAST)
{
    return (int)rank - 1;
}

/* ConvTranspose-11: the weight is [C, M/group, ...]. With several groups no axis has
   one element for each output channel. */
static QDQI_AXIS(SECOND)
{
    return rank >= 2 && qdqi_node_int(node->proto, "group", 1) == 1 ? 1 : -1;
}

/* Gemm-13: B is [K, N], or [N, K] with transB. */
static QDQI_AXIS(GEMM)
{
    if (rank != 2 || weight_input != 1)
        return -1;
    return qdqi_node_int(node->proto, "transB", 0) ? 0 : 1;
}

/* MatMul-13: output channels are along the last axis of B and along the last but one
   of A. */
static QDQI_AXIS(MATMUL)
{
    if (rank < 2)
        return -1;
    return (int)rank - (weight_input == 1 ? 1 : 2);
}

static QDQI_AXIS(given)
{
    int axis = cls->given_axis;
    if (axis == QDQ_NO_AXIS)
        return -1;
    if (axis < 0)
        axis += (int)rank;
    return axis >= 0 && (size_t)axis < rank ? axis : QDQI_BAD_AXIS;
}

/* --- the library's table -------------------------------------------------- */

static const struct qdqi_class library[] = {
#include "ground/tbl/layers.h"
};
#undef LAYER

enum { N_LIBRARY = sizeof library / sizeof *library };

const struct qdq_layer_support *
qdqi_library_layer(size_t i)
{
    return i < N_LIBRARY ? &library[i].support : NULL;
}

/* --- given rows ---------------------------------------------------------- */

static const char *const kind_names[] = {
    [QDQ_WEIGHTED] = "weighted",
    [QDQ_NON_WEIGHTED] = "non_weighted",
    [QDQ_MULTI_INPUT] = "multi_input",
};

static struct qdqi_class
given_row(const struct qdq_support *given, const struct qdqi_class *like,
          const char *source, const char *note)
{
    bool weight = given->kind == QDQ_WEIGHTED && given->quantize_weight;
    bool is_on = given->quantize_input || weight;
    return (struct qdqi_class){
        .support = {.cls = given->cls,
                    .op = like ? like->support.op : given->cls,
                    .kind = kind_names[given->kind],
                    .weight_input =
                        given->kind == QDQ_WEIGHTED ? given->weight_input : -1,
                    .quantize_input = given->quantize_input,
                    .quantize_weight = weight,
                    .selected_by = is_on ? QDQI_BY_ON : QDQI_BY_OFF,
                    .note = note   ? note
                            : like ? like->support.note
                                   : given->cls,
                    .source = source},
        .kind = given->kind,
        .moves_data = like && like->moves_data,
        .state = is_on ? QDQI_ON : QDQI_OFF,
        .axis = qdqi_axis_given,
        .is = like ? like->is : qdqi_is_any_node,
        .is_given = true,
        .given_axis = given->channel_axis,
    };
}

size_t
qdqi_given_rows(const struct qdq_support *given, const char *source, const char *note,
                struct qdqi_class *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < N_LIBRARY; i++) {
        const struct qdqi_class *like = &library[i];
        if (like->state == QDQI_NAMED || strcmp(like->support.cls, given->cls) != 0)
            continue;
        if (ret)
            ret[n] = given_row(given, like, source, note);
        n++;
    }
    if (n == 0 && ret)
        ret[0] = given_row(given, NULL, source, note);
    return n ? n : 1;
}

/* --- the rows of one plan ------------------------------------------------- */

/* A row of one operator. Rows are tried in the order of the list. */
struct row {
    const struct qdqi_class *cls;
    struct row *next;
};

struct rows {
    struct row *first, **last;
};

struct qdqi_classes {
    struct qdqi_arena *arena;
    struct qdqi_map *by_op; /* operator -> struct rows */
    struct qdqi_map *known; /* names of classes and operators */
    const char **names;     /* the same names; the last one is NULL */
    size_t n_names;
};

static bool
add_name(struct qdqi_classes *c, const char *name)
{
    if (qdqi_map_get(c->known, name))
        return true;
    c->names[c->n_names++] = name;
    return qdqi_map_put(c->known, name, c);
}

static bool
add_row(struct qdqi_classes *c, const struct qdqi_class *cls)
{
    struct rows *rows = qdqi_map_get(c->by_op, cls->support.op);
    struct row *row = qdqi_arena_alloc(c->arena, sizeof *row);
    if (!rows && (rows = qdqi_arena_alloc(c->arena, sizeof *rows))) {
        rows->last = &rows->first;
        if (!qdqi_map_put(c->by_op, cls->support.op, rows))
            return false;
    }
    if (!rows || !row)
        return false;
    row->cls = cls;
    *rows->last = row;
    rows->last = &row->next;
    return add_name(c, cls->support.cls) && add_name(c, cls->support.op);
}

/* Adds the rows of a spec, the last one first, because the last of several equal
   rows counts. */
static bool
add_spec_rows(struct qdqi_classes *c, const struct qdq_support *given, size_t n)
{
    while (n-- > 0) {
        size_t n_rows = qdqi_given_rows(&given[n], "spec", NULL, NULL);
        struct qdqi_class *rows = qdqi_arena_array(c->arena, n_rows, sizeof *rows);
        if (!rows)
            return false;
        qdqi_given_rows(&given[n], "spec", NULL, rows);
        for (size_t i = 0; i < n_rows; i++)
            if (!add_row(c, &rows[i]))
                return false;
    }
    return true;
}

enum qdq_code
qdqi_classes_new(const struct qdqi_class *operators, size_t n_operators,
                 const struct qdqi_class *own, size_t n_own,
                 const struct qdq_spec *spec, struct qdqi_arena *arena,
                 struct qdqi_classes **ret, struct qdq_error *err)
{
    struct qdqi_classes *c = qdqi_arena_alloc(arena, sizeof *c);
    if (!c)
        return qdqi_no_memory(err);
    c->arena = arena;
    c->by_op = qdqi_map_new(arena);
    c->known = qdqi_map_new(arena);
    /* Each row adds at most two names: a class and an operator. */
    c->names = qdqi_arena_array(
        arena, 2 * (N_LIBRARY + n_own + spec->n_support + n_operators) + 1,
        sizeof *c->names);
    bool ok = c->by_op && c->known && c->names &&
              add_spec_rows(c, spec->support, spec->n_support);
    for (size_t i = 0; ok && i < n_operators; i++)
        ok = add_row(c, &operators[i]);
    for (size_t i = 0; ok && i < n_own; i++)
        ok = add_row(c, &own[i]);
    for (size_t i = 0; ok && i < N_LIBRARY; i++)
        ok = add_row(c, &library[i]);
    if (!ok)
        return qdqi_no_memory(err);
    *ret = c;
    return QDQ_OK;
}

/* --- lookups ------------------------------------------------------------- */

/* Returns whether the row matches the node. Rows of the library match only ONNX's
   own operators; a given row may be for any domain. */
static bool
fits(const struct qdqi_class *cls, const struct qdq_model *model,
     const struct qdqi_node *node)
{
    return (cls->is_given || qdqi_is_onnx_domain(node->proto->domain)) &&
           cls->is(model, node);
}

/* Returns whether the node reads and makes something. One that does not is no layer, whatever its
   operator. */
static bool
is_connected(const struct qdqi_node *node)
{
    bool makes = false;
    for (size_t i = 0; i < node->proto->n_output; i++)
        makes = makes || node->outputs[i];
    return makes && node->proto->n_input > 0;
}

const struct qdqi_class *
qdqi_class_of(const struct qdqi_classes *classes, const struct qdq_model *model,
              const struct qdqi_node *node)
{
    const struct rows *rows = qdqi_map_get(classes->by_op, node->proto->op_type);
    if (!is_connected(node))
        return NULL;
    for (const struct row *row = rows ? rows->first : NULL; row; row = row->next)
        if (fits(row->cls, model, node))
            return row->cls;
    return NULL;
}

bool
qdqi_class_is_known(const struct qdqi_classes *classes, const char *name)
{
    return qdqi_map_get(classes->known, name);
}

static const char *
known_name(const void *arg, size_t i)
{
    const struct qdqi_classes *classes = arg;
    return i < classes->n_names ? classes->names[i] : NULL;
}

const char *
qdqi_class_nearest(const struct qdqi_classes *classes, const char *name)
{
    return qdq_nearest_word(name, known_name, classes);
}

bool
qdqi_class_goes_by(const struct qdqi_class *cls, const char *name)
{
    return cls->state != QDQI_NAMED &&
           (strcmp(cls->support.cls, name) == 0 || strcmp(cls->support.op, name) == 0);
}

int
qdqi_weight_input(const struct qdqi_class *cls, const struct qdqi_node *node)
{
    int i = cls->support.weight_input;
    bool other = cls->kind == QDQ_WEIGHTED && !qdqi_input_is_constant(node, i) &&
                 (cls->axis == qdqi_axis_MATMUL || cls->is_operand);
    return other ? 0 : i;
}
