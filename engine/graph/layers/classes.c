/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/classes.h"

#include "files/model/constant.h"
#include "qdq/targets.h"
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

static bool
any_node(const struct qdq_model *model, const struct qdqi_node *node)
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
conv_2d(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    const int64_t *dims;
    return weight_shape(node, &dims) == 4;
}

/* Returns whether the weight is [C*M, 1, kh, kw] with C groups (ONNX Conv-22). */
static bool
depthwise_conv(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    int64_t group = qdqi_node_int(node->proto, "group", 1);
    const int64_t *dims;
    return group > 1 && weight_shape(node, &dims) == 4 && dims[1] == 1 &&
           dims[0] % group == 0;
}

static bool
one_constant_operand(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    return qdqi_input_is_constant(node, 0) != qdqi_input_is_constant(node, 1);
}

static bool
all_computed(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (!qdqi_input_is_computed(node, (int)i))
            return false;
    return node->proto->n_input > 0;
}

/* Returns whether the node gathers rows of a constant matrix, and nothing but such nodes
   reads the matrix. */
static bool
gathers_rows(const struct qdq_model *model, const struct qdqi_node *node)
{
    struct qdqi_constant c;
    if (node->proto->n_input != 2 || !qdqi_input_is_constant(node, 0) ||
        !node->inputs[1] || node->inputs[1]->is_fixed ||
        qdqi_constant_read(model, node->inputs[0], &c, NULL) || c.rank != 2 ||
        qdqi_constant_is_fill(&c))
        return false;
    const struct qdqi_tensor *table = node->inputs[0];
    bool alone = !table->is_output && !table->is_captured &&
                 !qdqi_constant_is_overridable(model, table);
    for (const struct qdqi_use *use = table->uses; alone && use; use = use->next) {
        const Onnx__NodeProto *reader = model->graph.nodes[use->node].proto;
        alone = use->input == 0 && qdqi_node_is(reader, "Gather") &&
                qdqi_node_int(reader, "axis", 0) == 0;
    }
    return alone;
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
all_computed_no_swish(const struct qdq_model *model, const struct qdqi_node *node)
{
    return node->proto->n_input == 2 && all_computed(model, node) &&
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
reduces_all_spatial_axes(const struct qdq_model *model, const struct qdqi_node *node)
{
    int64_t axes[3];
    size_t n;
    if (!reduce_axes(model, node, axes, 3, &n) || n < 2)
        return false;
    look_behind_transpose(model, node, axes, n);
    return are_spatial(axes, n);
}

/* --- channel axes -------------------------------------------------------- */

#define AXIS(name)                                                                     \
    static int axis_##name(const struct qdqi_class *cls, const struct qdqi_node *node, \
                           int weight_input, size_t rank)

AXIS(NONE)
{
    (void)cls;
    (void)node;
    (void)weight_input;
    (void)rank;
    return -1;
}

AXIS(FIRST)
{
    (void)cls;
    (void)node;
    (void)weight_input;
    return rank >= 1 ? 0 : -1;
}

AXIS(LAST)
{
    (void)cls;
    (void)node;
    (void)weight_input;
    return (int)rank - 1;
}

/* ConvTranspose-11: the weight is [C, M/group, ...]. With several groups no axis has
   one element for each output channel. */
AXIS(SECOND)
{
    (void)cls;
    (void)weight_input;
    return rank >= 2 && qdqi_node_int(node->proto, "group", 1) == 1 ? 1 : -1;
}

/* Gemm-13: B is [K, N], or [N, K] with transB. */
AXIS(GEMM)
{
    (void)cls;
    if (rank != 2 || weight_input != 1)
        return -1;
    return qdqi_node_int(node->proto, "transB", 0) ? 0 : 1;
}

/* MatMul-13: output channels are along the last axis of B and along the last but one
   of A. */
AXIS(MATMUL)
{
    (void)cls;
    (void)node;
    if (rank < 2)
        return -1;
    return (int)rank - (weight_input == 1 ? 1 : 2);
}

/* LSTM-14: W is [num_directions, 4*hidden_size, input_size], R likewise. */
AXIS(GATES)
{
    (void)cls;
    (void)node;
    (void)weight_input;
    return rank == 3 ? 1 : -1;
}

AXIS(given)
{
    (void)node;
    (void)weight_input;
    int axis = cls->given_axis;
    if (axis == QDQ_NO_AXIS)
        return -1;
    if (axis < 0)
        axis += (int)rank;
    return axis >= 0 && (size_t)axis < rank ? axis : QDQI_BAD_AXIS;
}

/* --- the library's table -------------------------------------------------- */

static const char *const kind_names[] = {
    [QDQ_WEIGHTED] = "weighted",
    [QDQ_NON_WEIGHTED] = "non_weighted",
    [QDQ_MULTI_INPUT] = "multi_input",
};

/*
 * Values for the states and kinds of the table: how a class is selected, and for each
 * kind its number, its name, whether it passes data through and whether it only moves
 * data.
 */
#define BY_ON "default"
#define BY_OFF "any"
#define BY_ASKED "name_or_class"
#define BY_NAMED "name"
#define KIND_WEIGHTED QDQ_WEIGHTED
#define KIND_TABLE QDQ_WEIGHTED
#define KIND_RECURRENT QDQ_WEIGHTED
#define KIND_NON_WEIGHTED QDQ_NON_WEIGHTED
#define KIND_MOVING QDQ_NON_WEIGHTED
#define KIND_PASS QDQ_NON_WEIGHTED
#define KIND_MULTI_INPUT QDQ_MULTI_INPUT
#define NAME_WEIGHTED "weighted"
#define NAME_TABLE "weighted"
#define NAME_RECURRENT "weighted"
#define NAME_NON_WEIGHTED "non_weighted"
#define NAME_MOVING "non_weighted"
#define NAME_PASS "non_weighted"
#define NAME_MULTI_INPUT "multi_input"
#define THROUGH_WEIGHTED false
#define THROUGH_TABLE false
#define THROUGH_RECURRENT false
#define THROUGH_NON_WEIGHTED false
#define THROUGH_MOVING false
#define THROUGH_PASS true
#define THROUGH_MULTI_INPUT false
#define MOVES_WEIGHTED false
#define MOVES_TABLE false
#define MOVES_RECURRENT false
#define MOVES_NON_WEIGHTED false
#define MOVES_MOVING true
#define MOVES_PASS true
#define MOVES_MULTI_INPUT false
#define IS_TABLE_WEIGHTED false
#define IS_TABLE_TABLE true
#define IS_TABLE_RECURRENT false
#define IS_TABLE_NON_WEIGHTED false
#define IS_TABLE_MOVING false
#define IS_TABLE_PASS false
#define IS_TABLE_MULTI_INPUT false
#define IS_RECURRENT_WEIGHTED false
#define IS_RECURRENT_TABLE false
#define IS_RECURRENT_RECURRENT true
#define IS_RECURRENT_NON_WEIGHTED false
#define IS_RECURRENT_MOVING false
#define IS_RECURRENT_PASS false
#define IS_RECURRENT_MULTI_INPUT false

#define LAYER(class_name, op_name, row_kind, weight, row_axis, row_state, predicate, \
              text)                                                                  \
    {.support = {.cls = class_name,                                                  \
                 .op = op_name,                                                      \
                 .kind = NAME_##row_kind,                                            \
                 .weight_input = weight,                                             \
                 .quantize_input = QDQI_##row_state == QDQI_ON,                      \
                 .quantize_weight = QDQI_##row_state == QDQI_ON && (weight) >= 0,    \
                 .selected_by = BY_##row_state,                                      \
                 .pass_through = THROUGH_##row_kind,                                 \
                 .note = text,                                                       \
                 .source = "library"},                                               \
     .kind = KIND_##row_kind,                                                        \
     .moves_data = MOVES_##row_kind,                                                 \
     .is_table = IS_TABLE_##row_kind,                                                \
     .is_recurrent = IS_RECURRENT_##row_kind,                                        \
     .state = QDQI_##row_state,                                                      \
     .axis = axis_##row_axis,                                                        \
     .is = predicate},
static const struct qdqi_class library[] = {
#include "ground/tbl/layers.h"
};

static const struct qdqi_class operands[] = {
#include "ground/tbl/operands.h"
};
#undef LAYER

enum { N_OPERANDS = sizeof operands / sizeof *operands };

enum { N_LIBRARY = sizeof library / sizeof *library };

const struct qdq_layer_support *
qdqi_library_layer(size_t i)
{
    return i < N_LIBRARY ? &library[i].support : NULL;
}

/* --- given rows ---------------------------------------------------------- */

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
                    .selected_by = is_on ? BY_ON : BY_OFF,
                    .note = note   ? note
                            : like ? like->support.note
                                   : given->cls,
                    .source = source},
        .kind = given->kind,
        .moves_data = like && like->moves_data,
        .state = is_on ? QDQI_ON : QDQI_OFF,
        .axis = axis_given,
        .is = like ? like->is : any_node,
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
        arena, 2 * (N_LIBRARY + N_OPERANDS + spec->n_support + n_operators) + 1,
        sizeof *c->names);
    bool ok = c->by_op && c->known && c->names &&
              add_spec_rows(c, spec->support, spec->n_support);
    for (size_t i = 0; ok && i < n_operators; i++)
        ok = add_row(c, &operators[i]);
    size_t n_operands = spec->target->quantizes_constants ? N_OPERANDS : 0;
    for (size_t i = 0; ok && i < n_operands; i++)
        ok = add_row(c, &operands[i]);
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
    bool library_row = cls->axis != axis_given;
    return (!library_row || qdqi_is_onnx_domain(node->proto->domain)) &&
           cls->is(model, node);
}

const struct qdqi_class *
qdqi_class_of(const struct qdqi_classes *classes, const struct qdq_model *model,
              const struct qdqi_node *node)
{
    const struct rows *rows = qdqi_map_get(classes->by_op, node->proto->op_type);
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

bool
qdqi_class_is_operand(const struct qdqi_class *cls)
{
    return cls >= operands && cls < operands + N_OPERANDS && !cls->is_table &&
           !cls->is_recurrent;
}

int
qdqi_weight_input(const struct qdqi_class *cls, const struct qdqi_node *node)
{
    int i = cls->support.weight_input;
    bool other = cls->kind == QDQ_WEIGHTED && !qdqi_input_is_constant(node, i) &&
                 (cls->axis == axis_MATMUL || qdqi_class_is_operand(cls));
    return other ? 0 : i;
}
