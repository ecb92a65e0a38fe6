/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/slices/static_shape.h"

#include "stages/slices/joined_parts.h"
#include "stages/slices/node_values.h"

#include "files/model/constant.h"

#include <string.h>

typedef struct qdqi_static_shape shape;

/* --- declared shapes -------------------------------------------------------- */

static bool
from_value(const struct qdq_value *rows, size_t n, const char *name, shape *ret)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].name, name) != 0 || !rows[i].has_shape ||
            rows[i].rank > QDQI_SHAPE_AXES)
            continue;
        ret->rank = rows[i].rank;
        for (size_t k = 0; k < ret->rank; k++)
            ret->dims[k] = rows[i].dims[k].value >= 0 ? rows[i].dims[k].value : -1;
        return true;
    }
    return false;
}

static bool
from_declared(const struct qdq_model *model, const char *name, shape *ret)
{
    const Onnx__GraphProto *graph = model->proto->graph;
    for (size_t i = 0; i < graph->n_value_info; i++) {
        const Onnx__ValueInfoProto *v = graph->value_info[i];
        const Onnx__TypeProto__Tensor *t =
            v->name && strcmp(v->name, name) == 0 && v->type &&
                    v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                ? v->type->tensor_type
                : NULL;
        if (!t || !t->shape || t->shape->n_dim > QDQI_SHAPE_AXES)
            continue;
        ret->rank = t->shape->n_dim;
        for (size_t k = 0; k < ret->rank; k++) {
            const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[k];
            const bool known =
                d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            ret->dims[k] = known && d->dim_value >= 0 ? d->dim_value : -1;
        }
        return true;
    }
    return false;
}

/* --- operators --------------------------------------------------------------- */

/* Each function sets *ret to the shape of output `output` of a node; *in is that of its first
   input that is not fixed. */

/* Conv and ConvTranspose: the number of channels is known. */
static bool
of_conv(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
        size_t output, shape *ret)
{
    const int64_t *w;
    size_t rank;
    (void)s;
    (void)output;
    if (node->proto->n_input < 2 || !node->inputs[1] ||
        !qdqi_tensor_dims(node->inputs[1], &w, &rank) || rank != in->rank || rank < 3)
        return false;
    ret->rank = rank;
    ret->dims[0] = in->dims[0];
    const bool is_conv = qdqi_node_is(node->proto, "Conv");
    const int64_t groups = is_conv ? 1 : qdqi_node_int(node->proto, "group", 1);
    if (__builtin_mul_overflow(w[is_conv ? 0 : 1], groups, &ret->dims[1]))
        return false;
    for (size_t i = 2; i < rank; i++)
        ret->dims[i] = -1;
    return true;
}

static bool
of_pool(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
        size_t output, shape *ret)
{
    const bool whole = strncmp(node->proto->op_type, "Global", 6) == 0;
    (void)s;
    (void)output;
    *ret = *in;
    for (size_t i = 2; i < ret->rank; i++)
        ret->dims[i] = whole ? 1 : -1;
    return true;
}

static bool
of_matrix(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
          size_t output, shape *ret)
{
    const bool turned = qdqi_node_is(node->proto, "Gemm") &&
                        qdqi_node_int(node->proto, "transB", 0) != 0;
    const int64_t *w;
    size_t rank;
    (void)s;
    (void)output;
    if (node->proto->n_input < 2 || !node->inputs[1] || in->rank < 2 ||
        !qdqi_tensor_dims(node->inputs[1], &w, &rank) || rank < 2 || rank > in->rank)
        return false;
    *ret = *in;
    ret->dims[in->rank - 1] = w[rank - (turned ? 2 : 1)];
    return true;
}

/* Reads a shape that is constant, or a Concat of sizes, of which some are not known (-2). */
static bool
read_shape(const struct qdq_model *model, const struct qdqi_tensor *t, shape *ret)
{
    if (qdqi_constant_ints(model, t, ret->dims, QDQI_SHAPE_AXES, &ret->rank))
        return true;
    const struct qdqi_node *node =
        t->producer >= 0 ? &model->graph.nodes[t->producer] : NULL;
    if (!node || !qdqi_node_is(node->proto, "Concat"))
        return false;
    ret->rank = 0;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        int64_t part[QDQI_SHAPE_AXES] = {-2};
        size_t n = 1;
        if (!node->inputs[i])
            return false;
        if (node->inputs[i]->is_fixed &&
            !qdqi_constant_ints(model, node->inputs[i], part, QDQI_SHAPE_AXES, &n))
            return false;
        for (size_t k = 0; k < n; k++) {
            if (ret->rank == QDQI_SHAPE_AXES)
                return false;
            ret->dims[ret->rank++] = part[k];
        }
    }
    return true;
}

static int64_t
product(const shape *of, size_t first, size_t end)
{
    int64_t n = 1;
    for (size_t i = first; i < end; i++)
        if (of->dims[i] < 0 || __builtin_mul_overflow(n, of->dims[i], &n))
            return -1;
    return n;
}

static bool
of_reshape(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
           size_t output, shape *ret)
{
    const bool zeros = qdqi_node_int(node->proto, "allowzero", 0) != 0;
    int64_t known = 1, *open = NULL;
    (void)output;
    if (node->proto->n_input < 2 || !node->inputs[1] ||
        !read_shape(s->model, node->inputs[1], ret))
        return false;
    bool all = true;
    for (size_t i = 0; i < ret->rank; i++) {
        int64_t *d = &ret->dims[i];
        if (*d == 0 && !zeros)
            *d = i < in->rank ? in->dims[i] : -1;
        else if (*d == -1)
            open = d;
        if (d == open)
            continue;
        *d = *d < 0 ? -1 : *d;
        all = all && *d >= 0;
        if (__builtin_mul_overflow(known, *d > 0 ? *d : 1, &known))
            return false;
    }
    const int64_t n = product(in, 0, in->rank);
    if (open && all && n >= 0 && n % known == 0)
        *open = n / known;
    return true;
}

static bool
of_flatten(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
           size_t output, shape *ret)
{
    int64_t axis = qdqi_node_int(node->proto, "axis", 1);
    axis = axis < 0 ? axis + (int64_t)in->rank : axis;
    (void)s;
    (void)output;
    if (axis < 0 || axis > (int64_t)in->rank)
        return false;
    *ret =
        (shape){2, {product(in, 0, (size_t)axis), product(in, (size_t)axis, in->rank)}};
    return true;
}

static bool
of_transpose(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
             size_t output, shape *ret)
{
    const Onnx__AttributeProto *perm = qdqi_node_attribute(node->proto, "perm");
    (void)s;
    (void)output;
    if (perm && perm->n_ints != in->rank)
        return false;
    ret->rank = in->rank;
    for (size_t i = 0; i < in->rank; i++) {
        const int64_t from = perm ? perm->ints[i] : (int64_t)(in->rank - 1 - i);
        if (from < 0 || from >= (int64_t)in->rank)
            return false;
        ret->dims[i] = in->dims[from];
    }
    return true;
}

/* Squeeze and Unsqueeze. */
static bool
of_ones(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
        size_t output, shape *ret)
{
    const bool adds = qdqi_node_is(node->proto, "Unsqueeze");
    int64_t axes[QDQI_SHAPE_AXES];
    size_t n, rank, from = 0;
    uint32_t named = 0;
    (void)output;
    if (!qdqi_node_constant_ints(s->model, node, 1, "axes", axes, &n))
        return false;
    rank = adds ? in->rank + n : in->rank;
    for (size_t i = 0; i < n; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + (int64_t)rank : axes[i];
        if (axis < 0 || axis >= (int64_t)rank)
            return false;
        named |= 1u << axis;
    }
    *ret = (shape){0};
    for (size_t i = 0; i < rank; i++) {
        const bool is_named = named >> i & 1;
        if (ret->rank == QDQI_SHAPE_AXES || (!is_named && from >= in->rank))
            return false;
        if (adds)
            ret->dims[ret->rank++] = is_named ? 1 : in->dims[from++];
        else if (!is_named)
            ret->dims[ret->rank++] = in->dims[i];
    }
    return true;
}

/* A stack of parts: each has one element along an axis of their own. */
static bool
of_stack(const struct qdqi_node *node, size_t parts, const shape *in, shape *ret)
{
    const int64_t axis = qdqi_node_axis(node, 0, in->rank + 1);
    if (axis < 0 || in->rank == QDQI_SHAPE_AXES)
        return false;
    *ret = *in;
    memmove(&ret->dims[axis + 1], &ret->dims[axis],
            (in->rank - (size_t)axis) * sizeof *ret->dims);
    ret->dims[axis] = (int64_t)parts;
    ret->rank++;
    return true;
}

static bool
of_concat(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
          size_t output, shape *ret)
{
    const int64_t axis = qdqi_node_axis(node, 1, in->rank);
    struct qdqi_joined parts;
    (void)output;
    const bool known = qdqi_joined_parts(s->model, node, &parts);
    if (qdqi_stacks(node))
        return known && of_stack(node, parts.n, in, ret);
    *ret = *in;
    if (axis < 0)
        return false;
    ret->dims[axis] = known ? 0 : -1;
    for (size_t i = 0; known && i < parts.n; i++) {
        shape one;
        if (!qdqi_static_shape(s, parts.tensors[i], &one) || one.rank != in->rank ||
            one.dims[axis] < 0) {
            ret->dims[axis] = -1;
            return true;
        }
        if (__builtin_add_overflow(ret->dims[axis], one.dims[axis], &ret->dims[axis]))
            return false;
    }
    return true;
}

static bool
of_split(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
         size_t output, shape *ret)
{
    const int64_t axis = qdqi_node_axis(node, 0, in->rank);
    int64_t sizes[QDQI_MOST_SPLITS];
    *ret = *in;
    if (axis < 0)
        return false;
    ret->dims[axis] =
        qdqi_split_sizes(s->model, node, in->dims[axis], sizes) ? sizes[output] : -1;
    return true;
}

static bool
of_gather(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
          size_t output, shape *ret)
{
    const int64_t axis = qdqi_node_axis(node, 0, in->rank);
    const int64_t *dims;
    size_t rank;
    (void)s;
    (void)output;
    if (axis < 0 || node->proto->n_input < 2 || !node->inputs[1] ||
        !qdqi_tensor_dims(node->inputs[1], &dims, &rank) || rank > 1)
        return false;
    *ret = *in;
    if (rank == 1) {
        ret->dims[axis] = dims[0];
        return true;
    }
    ret->rank--;
    memmove(&ret->dims[axis], &ret->dims[axis + 1],
            (ret->rank - (size_t)axis) * sizeof *ret->dims);
    return true;
}

/* Slice: the axes that it names are known where the numbers are and their ends count from the
   beginning, or from the end of an axis whose size is known. */
static bool
of_slice(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
         size_t output, shape *ret)
{
    int64_t starts[QDQI_SHAPE_AXES], ends[QDQI_SHAPE_AXES], axes[QDQI_SHAPE_AXES],
        steps[QDQI_SHAPE_AXES];
    size_t n, n_ends, n_axes, n_steps;
    (void)output;
    if (!qdqi_node_constant_ints(s->model, node, 1, "starts", starts, &n) ||
        !qdqi_node_constant_ints(s->model, node, 2, "ends", ends, &n_ends) ||
        n_ends != n)
        return false;
    if (!qdqi_node_constant_ints(s->model, node, 3, "axes", axes, &n_axes))
        for (n_axes = 0; n_axes < n; n_axes++)
            axes[n_axes] = (int64_t)n_axes;
    if (!qdqi_node_constant_ints(s->model, node, 4, NULL, steps, &n_steps))
        for (n_steps = 0; n_steps < n; n_steps++)
            steps[n_steps] = 1;
    *ret = *in;
    for (size_t i = 0; i < n && n_axes == n && n_steps == n; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + (int64_t)in->rank : axes[i];
        if (axis < 0 || axis >= (int64_t)in->rank)
            return false;
        const int64_t size = in->dims[axis];
        int64_t from = starts[i], to = ends[i];
        ret->dims[axis] = -1;
        if (steps[i] < 1 || steps[i] > INT32_MAX ||
            (size < 0 && (from < 0 || to < 0 || to > INT32_MAX)))
            continue;
        from = from < 0 ? from + size : from;
        to = to < 0 ? to + size : to;
        from = from < 0 ? 0 : from;
        to = size >= 0 && to > size ? size : to;
        ret->dims[axis] = to > from ? (to - from + steps[i] - 1) / steps[i] : 0;
    }
    return true;
}

static bool
of_pad(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
       size_t output, shape *ret)
{
    int64_t pads[2 * QDQI_SHAPE_AXES];
    size_t n = 0;
    (void)output;
    *ret = *in;
    if (node->proto->n_input < 2 || !node->inputs[1] || node->proto->n_input > 3 ||
        !qdqi_constant_ints(s->model, node->inputs[1], pads, 2 * QDQI_SHAPE_AXES, &n) ||
        n != 2 * in->rank) {
        for (size_t i = 0; i < ret->rank; i++)
            ret->dims[i] = -1;
        return true;
    }
    for (size_t i = 0; i < ret->rank; i++)
        if (ret->dims[i] >= 0 &&
            (__builtin_add_overflow(ret->dims[i], pads[i], &ret->dims[i]) ||
             __builtin_add_overflow(ret->dims[i], pads[in->rank + i], &ret->dims[i])))
            return false;
    return true;
}

/* Operators whose output has the shape of their input. */
static const char *const keeping[] = {"Identity",
                                      "Cast",
                                      "Dropout",
                                      "Relu",
                                      "LeakyRelu",
                                      "PRelu",
                                      "Clip",
                                      "Elu",
                                      "Sigmoid",
                                      "HardSigmoid",
                                      "HardSwish",
                                      "Tanh",
                                      "Softplus",
                                      "Softmax",
                                      "LogSoftmax",
                                      "Erf",
                                      "Gelu",
                                      "Exp",
                                      "Log",
                                      "Sqrt",
                                      "Abs",
                                      "Neg",
                                      "Floor",
                                      "Round",
                                      "Add",
                                      "Sub",
                                      "Mul",
                                      "Div",
                                      "Pow",
                                      "Max",
                                      "Min",
                                      "BatchNormalization",
                                      "InstanceNormalization",
                                      "LayerNormalization",
                                      NULL};

static const struct {
    const char *op;
    bool (*of)(const struct qdqi_node *node, struct qdqi_shapes *s, const shape *in,
               size_t output, shape *ret);
} operators[] = {
    {"Conv", of_conv},
    {"ConvTranspose", of_conv},
    {"MaxPool", of_pool},
    {"AveragePool", of_pool},
    {"GlobalAveragePool", of_pool},
    {"GlobalMaxPool", of_pool},
    {"Resize", of_pool},
    {"Gemm", of_matrix},
    {"MatMul", of_matrix},
    {"Reshape", of_reshape},
    {"Flatten", of_flatten},
    {"Transpose", of_transpose},
    {"Squeeze", of_ones},
    {"Unsqueeze", of_ones},
    {"Concat", of_concat},
    {"ConcatFromSequence", of_concat},
    {"Split", of_split},
    {"Gather", of_gather},
    {"Slice", of_slice},
    {"Pad", of_pad},
};

/* Returns the position of a tensor among the outputs of the node that makes it. */
static size_t
output_index(const struct qdqi_node *node, const struct qdqi_tensor *t)
{
    size_t i = 0;
    while (i + 1 < node->proto->n_output && node->outputs[i] != t)
        i++;
    return i;
}

/* Returns the first tensor from which a node's shape follows: of its sequence, or among its inputs that are not
   fixed. NULL: there is none. */
static const struct qdqi_tensor *
first_of(const struct qdq_model *model, const struct qdqi_node *node)
{
    struct qdqi_joined parts;
    if (qdqi_node_is(node->proto, "ConcatFromSequence"))
        return qdqi_joined_parts(model, node, &parts) ? parts.tensors[0] : NULL;
    size_t first = 0;
    while (first < node->proto->n_input &&
           (!node->inputs[first] || node->inputs[first]->is_fixed))
        first++;
    return first < node->proto->n_input ? node->inputs[first] : NULL;
}

static bool
from_node(struct qdqi_shapes *s, const struct qdqi_tensor *t, shape *ret)
{
    const struct qdqi_node *node = &s->model->graph.nodes[t->producer];
    const struct qdqi_tensor *taken = qdqi_taken_part(s->model, node);
    shape in;
    size_t i = 0;
    while (i < sizeof operators / sizeof *operators &&
           !qdqi_node_is(node->proto, operators[i].op))
        i++;
    const bool keeps = taken || qdqi_node_is_one_of(node->proto, keeping);
    if ((!keeps && i == sizeof operators / sizeof *operators) ||
        !qdqi_static_shape(s, taken ? taken : first_of(s->model, node), &in))
        return false;
    *ret = in;
    return keeps || operators[i].of(node, s, &in, output_index(node, t), ret);
}

bool
qdqi_static_shape(struct qdqi_shapes *s, const struct qdqi_tensor *t, shape *ret)
{
    const int64_t *dims;
    *ret = (shape){0};
    if (!t || s->visits-- <= 0)
        return false;
    if (t->is_fixed) {
        if (!qdqi_tensor_dims(t, &dims, &ret->rank) || ret->rank > QDQI_SHAPE_AXES)
            return false;
        memcpy(ret->dims, dims, ret->rank * sizeof *dims);
        return true;
    }
    const struct qdq_model_info *info = &s->model->info;
    return from_declared(s->model, t->name, ret) ||
           from_value(info->inputs, info->n_inputs, t->name, ret) ||
           (t->producer >= 0 && from_node(s, t, ret)) ||
           from_value(info->outputs, info->n_outputs, t->name, ret);
}
