/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/unfuse_attention.h"

#include "files/model/constant.h"
#include "transform/prepare/compute.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { DATA, WEIGHT, BIAS, MASK, PAST, ADDEND, LENGTH, N_INPUTS };
enum { QUERY, KEY, VALUE, N_PARTS };
enum { OPSET_MIN = 13 }; /* Split has its sizes, and Unsqueeze its axes, as inputs */
/* Up to this length the positions that are seen are a constant. */
enum { MOST_POSITIONS = 512 };

struct attention {
    const struct qdq_model *model;
    struct qdqi_edit *edit;
    struct qdqi_arena *arena;
    const struct qdqi_map *named; /* what computing leaves as it is */
    const struct qdqi_node *node;
    size_t index, behind;
    int64_t heads, sizes[N_PARTS];
    size_t mask_rank; /* 0: there is no mask */
    float scale, filter;
    /* rule P7: a position sees itself and those before it; before the node is read: whether it may */
    bool is_causal;
};

static bool
has_input(const struct qdqi_node *node, size_t i)
{
    return i < node->proto->n_input && node->inputs[i];
}

bool
qdqi_is_attention(const struct qdqi_node *node)
{
    return qdqi_node_is_microsoft(node->proto) &&
           strcmp(node->proto->op_type, "Attention") == 0 && has_input(node, DATA) &&
           has_input(node, WEIGHT) && node->inputs[WEIGHT]->is_fixed &&
           node->inputs[WEIGHT]->dtype == QDQI_FLOAT32 && node->proto->n_output > 0 &&
           node->outputs[0];
}

/* --- what the node has -------------------------------------------------------- */

/* Returns the number of the weight's columns, which may be computed from constants; 0: it is no matrix. */
static int64_t
count_columns(const struct attention *a)
{
    const struct qdqi_tensor *weight = a->node->inputs[WEIGHT];
    struct qdqi_computing from = qdqi_computing_begin(a->model, a->named, a->arena);
    struct qdqi_computed value;
    const int64_t *dims;
    size_t rank;
    if (qdqi_tensor_dims(weight, &dims, &rank))
        return rank == 2 ? dims[1] : 0;
    return qdqi_compute(&from, weight, &value) && value.rank == 2 ? value.dims[1] : 0;
}

/* Reads the widths of queries, keys and values. Returns false where they do not fit together. */
static bool
read_sizes(struct attention *a)
{
    const Onnx__AttributeProto *given =
        qdqi_node_attribute(a->node->proto, "qkv_hidden_sizes");
    const int64_t columns = count_columns(a);
    if (given && given->n_ints > 0 && given->n_ints != N_PARTS)
        return false;
    int64_t left = columns;
    for (size_t i = 0; i < N_PARTS; i++) {
        a->sizes[i] = given && given->n_ints > 0 ? given->ints[i] : columns / N_PARTS;
        if (a->sizes[i] <= 0 || a->sizes[i] > left || a->heads <= 0 ||
            a->sizes[i] % a->heads != 0)
            return false;
        left -= a->sizes[i];
    }
    return left == 0 && a->sizes[QUERY] == a->sizes[KEY];
}

/* Returns the shape that the model states of a tensor, or NULL. */
static const Onnx__TensorShapeProto *
stated_shape(const struct attention *a, const char *name)
{
    const Onnx__GraphProto *g = a->model->proto->graph;
    for (size_t i = 0; i < g->n_input + g->n_value_info; i++) {
        const Onnx__ValueInfoProto *info =
            i < g->n_input ? g->input[i] : g->value_info[i - g->n_input];
        const Onnx__TypeProto *type = info->type;
        if (info->name && strcmp(info->name, name) == 0 && type &&
            type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            type->tensor_type->shape)
            return type->tensor_type->shape;
    }
    return NULL;
}

/* Returns the number of axes of a tensor, which a constant has, or the model states; 0: it states none. */
static size_t
stated_rank(const struct attention *a, const struct qdqi_tensor *t)
{
    const int64_t *dims;
    size_t rank;
    if (t->is_fixed && qdqi_tensor_dims(t, &dims, &rank))
        return rank;
    const Onnx__TensorShapeProto *shape = stated_shape(a, t->name);
    return shape ? shape->n_dim : 0;
}

/* Returns the number of positions of the data, where the model states it and it is small; else 0. */
static int64_t
stated_positions(const struct attention *a)
{
    enum { POSITIONS = 1, RANK = 3 };
    const Onnx__TensorShapeProto *shape = stated_shape(a, a->node->inputs[DATA]->name);
    const Onnx__TensorShapeProto__Dimension *dim =
        shape && shape->n_dim == RANK ? shape->dim[POSITIONS] : NULL;
    return dim &&
                   dim->value_case ==
                       ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
                   dim->dim_value > 0 && dim->dim_value <= MOST_POSITIONS
               ? dim->dim_value
               : 0;
}

/* Reads the node. Returns NULL, or what it has that is not written otherwise. */
static const char *
read_node(struct attention *a)
{
    const struct qdqi_node *node = a->node;
    const Onnx__AttributeProto *scale = qdqi_node_attribute(node->proto, "scale");
    const Onnx__AttributeProto *filter =
        qdqi_node_attribute(node->proto, "mask_filter_value");
    a->heads = qdqi_node_int(node->proto, "num_heads", 0);
    if (qdqi_model_opset(a->model->proto) < OPSET_MIN)
        return "the opset is older than 13";
    const bool is_causal = qdqi_node_int(node->proto, "unidirectional", 0) != 0;
    if (is_causal && !a->is_causal)
        return "each position sees those before it alone";
    a->is_causal = is_causal;
    if (qdqi_node_int(node->proto, "do_rotary", 0))
        return "it turns queries and keys by their positions";
    if (has_input(node, PAST) || has_input(node, LENGTH) ||
        (node->proto->n_output > 1 && node->outputs[1]))
        return "it keeps keys and values for its next run";
    if (!read_sizes(a))
        return "the sizes of its weight and of its heads do not fit together";
    if (has_input(node, MASK)) {
        a->mask_rank = node->inputs[MASK]->dtype == QDQI_INT32
                           ? stated_rank(a, node->inputs[MASK])
                           : 0;
        if (a->mask_rank != 2 && a->mask_rank != 3)
            return "its mask states lengths, or its axes are not known";
    }
    a->filter = filter ? filter->f : -10000;
    a->scale = scale && scale->f != 0 ? scale->f
                                      : 1 / sqrtf((float)(a->sizes[QUERY] / a->heads));
    return NULL;
}

/* --- new nodes ------------------------------------------------------------------ */

static const char *
make_name(const struct attention *a, const char *suffix)
{
    return qdqi_edit_name(a->edit, a->node->outputs[0]->name, suffix);
}

/* Adds a node behind the projection. Its output is `output`, or a new name where that is NULL. */
static const char *
add(const struct attention *a, const char *op, const char *suffix,
    const char *const *inputs, size_t n, const char *output, Onnx__NodeProto **ret)
{
    const char *to = output ? output : make_name(a, suffix);
    *ret =
        qdqi_edit_add_node(a->edit, a->behind, op, make_name(a, suffix), inputs, n, to);
    return to;
}

static const char *
compute(const struct attention *a, const char *op, const char *suffix, const char *x,
        const char *y, const char *output)
{
    Onnx__NodeProto *node;
    return add(a, op, suffix, (const char *[]){x, y}, 2, output, &node);
}

static const char *
integers(const struct attention *a, const char *suffix, const int64_t *values, size_t n)
{
    const char *name = make_name(a, suffix);
    const void *copy = qdqi_arena_copy(a->arena, values, n, sizeof *values);
    if (copy)
        qdqi_edit_add_initializer(a->edit, name, QDQI_INT64, n, false, copy);
    return name;
}

static const char *
number(const struct attention *a, const char *suffix, float value)
{
    const char *name = make_name(a, suffix);
    const void *copy = qdqi_arena_copy(a->arena, &value, 1, sizeof value);
    if (copy)
        qdqi_edit_add_initializer(a->edit, name, QDQI_FLOAT32, 1, true, copy);
    return name;
}

static const char *
transpose(const struct attention *a, const char *x, const char *suffix,
          const int64_t perm[4], const char *output)
{
    Onnx__NodeProto *node;
    const char *made = add(a, "Transpose", suffix, &x, 1, output, &node);
    qdqi_edit_add_ints(a->edit, node, "perm", 4, perm);
    return made;
}

/* Parts a tensor [batch, positions, width] into heads, in the order `perm` of [batch, positions, heads,
   size]. */
static const char *
part(const struct attention *a, const char *x, const int64_t perm[4])
{
    const int64_t shape[] = {0, 0, a->heads, -1};
    const char *heads =
        compute(a, "Reshape", "_heads", x, integers(a, "_heads_shape", shape, 4), NULL);
    return transpose(a, heads, "_by_heads", perm, NULL);
}

/* Returns what the mask adds to the scores: 0 for a key that is seen, else the filter's value. */
static const char *
add_mask(const struct attention *a, const char *scores)
{
    static const int32_t none;
    static const int64_t axes[] = {1, 2};
    const char *zero = make_name(a, "_none");
    Onnx__NodeProto *node;
    qdqi_edit_add_initializer(a->edit, zero, QDQI_INT32, 1, true, &none);
    const char *seen =
        compute(a, "Greater", "_seen", a->node->inputs[MASK]->name, zero, NULL);
    const char *wide =
        compute(a, "Unsqueeze", "_seen_wide", seen,
                integers(a, "_axes", axes, a->mask_rank == 2 ? 2 : 1), NULL);
    const char *inputs[] = {wide, number(a, "_zero", 0),
                            number(a, "_filter", a->filter)};
    const char *mask = add(a, "Where", "_mask", inputs, 3, NULL, &node);
    return compute(a, "Add", "_masked", scores, mask, NULL);
}

/* Returns a constant that says of each position, and each key, whether it is seen. */
static const char *
add_seen_constant(const struct attention *a, int64_t n)
{
    const char *name = make_name(a, "_before");
    uint8_t *seen = qdqi_arena_array(a->arena, (size_t)(n * n), 1);
    const int64_t dims[] = {n, n};
    if (!seen)
        return name;
    for (int64_t i = 0; i < n; i++)
        memset(seen + i * n, 1, (size_t)i + 1);
    qdqi_edit_add_tensor(a->edit, name, QDQI_BOOL, 2, dims, seen, (size_t)(n * n));
    return name;
}

static const char *
whole(const struct attention *a, const char *suffix, int64_t value)
{
    const char *name = make_name(a, suffix);
    const void *copy = qdqi_arena_copy(a->arena, &value, 1, sizeof value);
    if (copy)
        qdqi_edit_add_initializer(a->edit, name, QDQI_INT64, 1, true, copy);
    return name;
}

/* Adds what computes the same by the length of the data. */
static const char *
add_seen_computed(const struct attention *a)
{
    static const int64_t axis = 1;
    Onnx__NodeProto *node;
    const char *sizes =
        add(a, "Shape", "_data_sizes", &a->node->inputs[DATA]->name, 1, NULL, &node);
    const char *n =
        compute(a, "Gather", "_length", sizes, whole(a, "_length_axis", 1), NULL);
    const char *from[] = {whole(a, "_first", 0), n, whole(a, "_step", 1)};
    const char *keys = add(a, "Range", "_keys", from, 3, NULL, &node);
    const char *queries = compute(a, "Unsqueeze", "_queries", keys,
                                  integers(a, "_queries_axis", &axis, 1), NULL);
    return compute(a, "LessOrEqual", "_before", keys, queries, NULL);
}

/* Gives the lowest number to the scores of keys behind the position, as the operator does. */
static const char *
add_causal_mask(const struct attention *a, const char *scores)
{
    const int64_t n = stated_positions(a);
    const char *inputs[] = {n > 0 ? add_seen_constant(a, n) : add_seen_computed(a),
                            scores, number(a, "_lowest", -FLT_MAX)};
    Onnx__NodeProto *node;
    return add(a, "Where", "_causal", inputs, 3, NULL, &node);
}

static const char *
add_scores(const struct attention *a, const char *query, const char *key)
{
    const char *scores = compute(a, "MatMul", "_scores", query, key, NULL);
    scores = compute(a, "Mul", "_scaled", scores, number(a, "_scale", a->scale), NULL);
    if (a->mask_rank > 0)
        scores = add_mask(a, scores);
    if (has_input(a->node, ADDEND))
        scores =
            compute(a, "Add", "_biased", scores, a->node->inputs[ADDEND]->name, NULL);
    return a->is_causal ? add_causal_mask(a, scores) : scores;
}

/* Makes the node the projection itself, and adds the bias and the Split. */
static void
add_projection(const struct attention *a, const char *parts[N_PARTS])
{
    const struct qdqi_node *node = a->node;
    const char *made = make_name(a, "_projection");
    Onnx__NodeProto *split;
    qdqi_edit_become(
        a->edit, a->index, "MatMul",
        (const char *const[]){node->inputs[DATA]->name, node->inputs[WEIGHT]->name});
    qdqi_edit_retype(a->edit, a->index, "MatMul", "", "");
    qdqi_edit_set_output(a->edit, a->index, 0, made);
    if (has_input(node, BIAS))
        made = compute(a, "Add", "_projected", made, node->inputs[BIAS]->name, NULL);
    const char *inputs[] = {made, integers(a, "_sizes", a->sizes, N_PARTS)};
    parts[QUERY] = add(a, "Split", "_query", inputs, 2, NULL, &split);
    parts[KEY] = make_name(a, "_key");
    parts[VALUE] = make_name(a, "_value");
    qdqi_edit_add_output(a->edit, split, parts[KEY]);
    qdqi_edit_add_output(a->edit, split, parts[VALUE]);
    qdqi_edit_add_int(a->edit, split, "axis", -1);
}

const char *
qdqi_unfuse_attention(const struct qdq_model *model, struct qdqi_edit *edit,
                      struct qdqi_arena *arena, const struct qdqi_map *named,
                      size_t node, bool causal_too)
{
    static const int64_t by_head[] = {0, 2, 1, 3}, turned[] = {0, 2, 3, 1},
                         whole[] = {0, 0, -1};
    struct attention a = {.model = model,
                          .edit = edit,
                          .arena = arena,
                          .named = named,
                          .node = &model->graph.nodes[node],
                          .index = node,
                          .is_causal = causal_too};
    const char *parts[N_PARTS], *output = a.node->outputs[0]->name;
    const char *why = read_node(&a);
    Onnx__NodeProto *softmax;
    if (why)
        return why;
    a.behind = qdqi_edit_behind(model, a.node->outputs[0]);
    add_projection(&a, parts);
    const char *query = part(&a, parts[QUERY], by_head);
    const char *key = part(&a, parts[KEY], turned);
    const char *value = part(&a, parts[VALUE], by_head);
    const char *scores = add_scores(&a, query, key);
    const char *shares = add(&a, "Softmax", "_shares", &scores, 1, NULL, &softmax);
    qdqi_edit_add_int(edit, softmax, "axis", -1);
    const char *seen = compute(&a, "MatMul", "_context", shares, value, NULL);
    seen = transpose(&a, seen, "_context_by_positions", by_head, NULL);
    compute(&a, "Reshape", "_joined", seen, integers(&a, "_joined_shape", whole, 3),
            output);
    return NULL;
}
