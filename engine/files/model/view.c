/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/model.h"

#include "files/model/constant.h"

#include <string.h>

/* Limits the axes of a computed view: each costs memory, and a node of few bytes can
   ask for many. */
enum { MAX_RANK = 16 };

/* A view under construction; its strides are always written out. */
struct draft {
    struct qdq_model *model;
    const Onnx__TensorProto *stored;
    /* the tensor's type: the stored one, or one that holds all its values */
    enum qdqi_dtype dtype;
    size_t rank, n; /* n: number of elements */
    int64_t dims[MAX_RANK], strides[MAX_RANK];
};

/* --- between views and drafts -------------------------------------------- */

/* Sets the strides of C order; all 0 when there are no elements. */
static void
order_c(const struct draft *d, int64_t *strides)
{
    int64_t step = d->n ? 1 : 0;
    for (size_t i = d->rank; i-- > 0;) {
        strides[i] = step;
        if (d->n)
            step *= d->dims[i];
    }
}

static bool
draft_of(struct qdq_model *m, const struct qdqi_tensor *t, struct draft *ret)
{
    const struct qdqi_view *v = &t->view;
    if (!v->stored || v->rank > MAX_RANK)
        return false;
    *ret = (struct draft){
        .model = m, .stored = v->stored, .dtype = t->dtype, .rank = v->rank};
    for (size_t i = 0; i < v->rank; i++)
        ret->dims[i] = v->dims[i];
    if (!qdqi_count_elements(ret->dims, ret->rank, &ret->n))
        return false;
    order_c(ret, ret->strides);
    for (size_t i = 0; v->strides && i < v->rank; i++)
        ret->strides[i] = v->strides[i];
    return true;
}

/* The stride of an axis of size 1 has no meaning. */
static bool
is_c_order(const struct draft *d)
{
    int64_t strides[MAX_RANK];
    order_c(d, strides);
    for (size_t i = 0; d->n && i < d->rank; i++)
        if (d->dims[i] != 1 && d->strides[i] != strides[i])
            return false;
    return true;
}

static enum qdq_code
finish(const struct draft *d, struct qdqi_tensor *t, struct qdq_error *err)
{
    bool c_order = is_c_order(d);
    int64_t *dims =
        qdqi_arena_array(d->model->arena, d->rank * (c_order ? 1 : 2), sizeof *dims);
    if (!dims)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < d->rank; i++) {
        dims[i] = d->dims[i];
        if (!c_order)
            dims[d->rank + i] = d->strides[i];
    }
    t->view =
        (struct qdqi_view){d->stored, d->rank, dims, c_order ? NULL : dims + d->rank};
    /* The type that value_info declares may be wrong; that of the stored elements is
       not. */
    t->dtype = d->dtype;
    return QDQ_OK;
}

/* --- new shapes of the same elements ------------------------------------- */

/* Axes that together step through memory evenly: `n` elements, `stride` apart. */
struct run {
    int64_t n, stride;
};

/* Lists the runs from the last axis to the first. Neighbouring axes are joined where
   one continues the other. */
static size_t
find_runs(const struct draft *d, struct run *runs)
{
    size_t n = 0;
    for (size_t i = d->rank; i-- > 0;) {
        if (d->dims[i] == 1)
            continue;
        if (n && d->strides[i] == runs[n - 1].n * runs[n - 1].stride)
            runs[n - 1].n *= d->dims[i];
        else
            runs[n++] = (struct run){d->dims[i], d->strides[i]};
    }
    return n;
}

/* Gives the draft another shape with as many elements. Returns false when that would
   need the elements to move. */
static bool
relabel(struct draft *d, size_t rank, const int64_t *dims)
{
    struct run runs[MAX_RANK] = {{1, 1}};
    int64_t strides[MAX_RANK] = {0};
    size_t n_runs = d->n ? find_runs(d, runs) : 0, run = 0;
    int64_t left = n_runs ? runs[0].n : 1, step = runs[0].stride;
    for (size_t i = rank; d->n && i-- > 0;) {
        if (dims[i] != 1 && left == 1 && run + 1 < n_runs) {
            left = runs[++run].n;
            step = runs[run].stride;
        }
        if (left % dims[i])
            return false;
        strides[i] = step;
        step *= dims[i];
        left /= dims[i];
    }
    d->rank = rank;
    for (size_t i = 0; i < rank; i++) {
        d->dims[i] = dims[i];
        d->strides[i] = strides[i];
    }
    return true;
}

/* Resolves a shape as Reshape-14 says: 0 copies the old size, -1 takes the remaining
   elements. */
static bool
resolve_shape(const struct draft *d, bool zero_is_zero, size_t rank, int64_t *dims)
{
    int64_t known = 1, *open = NULL, n = (int64_t)d->n;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] == 0 && !zero_is_zero) {
            if (i >= d->rank)
                return false;
            dims[i] = d->dims[i];
        }
        if (dims[i] == -1) {
            if (open)
                return false;
            open = &dims[i];
        } else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known)) {
            return false;
        }
    }
    if (!open)
        return known == n;
    if (known == 0 || n % known)
        return false;
    *open = n / known;
    return true;
}

/* --- reading a node ------------------------------------------------------ */

/* Reads integers that are an input, or in older opsets an attribute. Returns false
   when they cannot be read; *ret_given is false when the node has none. */
static bool
find_ints(const struct draft *d, const struct qdqi_node *node, size_t input,
          const char *attribute, int64_t *ret, size_t *ret_n, bool *ret_given)
{
    *ret_n = 0;
    *ret_given = true;
    if (input < node->proto->n_input && node->inputs[input])
        return qdqi_constant_ints(d->model, node->inputs[input], ret, MAX_RANK, ret_n);
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, attribute);
    *ret_given = a != NULL;
    if (!a || a->n_ints > MAX_RANK)
        return !a;
    for (size_t i = 0; i < a->n_ints; i++)
        ret[i] = a->ints[i];
    *ret_n = a->n_ints;
    return true;
}

/* Returns the axes as bits; negative ones count from the end, and each may occur
   once. */
static bool
mark_axes(const int64_t *axes, size_t n, size_t rank, uint32_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + (int64_t)rank : axes[i];
        if (axis < 0 || axis >= (int64_t)rank || *ret >> axis & 1)
            return false;
        *ret |= 1u << axis;
    }
    return true;
}

/* --- operators ------------------------------------------------------------ */

/* Each function turns the draft of a node's first input into that of its first
   output. */

static bool
through_Identity(const struct qdqi_node *node, struct draft *d)
{
    (void)node;
    (void)d;
    return true;
}

/* Casts the draft. float32 holds every value of float16, so the elements stay as
   they are stored. */
static bool
cast_to(struct draft *d, int64_t dtype)
{
    struct qdqi_constant elements;
    if (dtype == d->dtype)
        return true;
    if (dtype != QDQI_FLOAT32 || d->dtype != QDQI_FLOAT16 ||
        qdqi_stored_read(d->model, d->stored, "", &elements, NULL))
        return false;
    d->dtype = QDQI_FLOAT32;
    return true;
}

static bool
through_Cast(const struct qdqi_node *node, struct draft *d)
{
    return cast_to(d, qdqi_node_int(node->proto, "to", 0));
}

static bool
through_CastLike(const struct qdqi_node *node, struct draft *d)
{
    return node->proto->n_input == 2 && node->inputs[1] &&
           cast_to(d, node->inputs[1]->dtype);
}

static bool
through_Transpose(const struct qdqi_node *node, struct draft *d)
{
    const Onnx__AttributeProto *perm = qdqi_node_attribute(node->proto, "perm");
    const struct draft from = *d;
    uint32_t all;
    if (perm &&
        (perm->n_ints != d->rank || !mark_axes(perm->ints, d->rank, d->rank, &all)))
        return false;
    for (size_t i = 0; i < d->rank; i++) {
        int64_t axis = perm ? perm->ints[i] : (int64_t)(d->rank - 1 - i);
        if (axis < 0)
            return false;
        d->dims[i] = from.dims[axis];
        d->strides[i] = from.strides[axis];
    }
    return true;
}

static bool
through_Reshape(const struct qdqi_node *node, struct draft *d)
{
    bool zero_is_zero = qdqi_node_int(node->proto, "allowzero", 0) != 0, given;
    int64_t dims[MAX_RANK];
    size_t rank;
    return find_ints(d, node, 1, "shape", dims, &rank, &given) && given &&
           resolve_shape(d, zero_is_zero, rank, dims) && relabel(d, rank, dims);
}

static bool
through_Flatten(const struct qdqi_node *node, struct draft *d)
{
    int64_t axis = qdqi_node_int(node->proto, "axis", 1), rank = (int64_t)d->rank;
    int64_t dims[2] = {1, 1};
    if (axis < 0)
        axis += rank;
    if (axis < 0 || axis > rank)
        return false;
    for (int64_t i = 0; i < rank; i++) {
        int64_t *part = &dims[i < axis ? 0 : 1];
        if (__builtin_mul_overflow(*part, d->dims[i], part))
            return false;
    }
    return relabel(d, 2, dims);
}

static bool
through_Squeeze(const struct qdqi_node *node, struct draft *d)
{
    int64_t axes[MAX_RANK], dims[MAX_RANK];
    uint32_t out = 0;
    size_t n, rank = 0;
    bool given;
    if (!find_ints(d, node, 1, "axes", axes, &n, &given) ||
        !mark_axes(axes, n, d->rank, &out))
        return false;
    for (size_t i = 0; i < d->rank; i++) {
        bool one = d->dims[i] == 1, drop = given ? out >> i & 1 : one;
        if (drop && !one)
            return false;
        if (!drop)
            dims[rank++] = d->dims[i];
    }
    return relabel(d, rank, dims);
}

static bool
through_Unsqueeze(const struct qdqi_node *node, struct draft *d)
{
    int64_t axes[MAX_RANK], dims[MAX_RANK];
    uint32_t in;
    size_t n, from = 0;
    bool given;
    if (!find_ints(d, node, 1, "axes", axes, &n, &given) || !given ||
        d->rank + n > MAX_RANK || !mark_axes(axes, n, d->rank + n, &in))
        return false;
    for (size_t i = 0; i < d->rank + n; i++)
        dims[i] = in >> i & 1 ? 1 : d->dims[from++];
    return relabel(d, d->rank + n, dims);
}

/* Shape-15: the sizes of the axes from `start` up to but not including `end`. */
static bool
through_Shape(const struct qdqi_node *node, struct draft *d)
{
    int64_t rank = (int64_t)d->rank;
    int64_t range[2] = {qdqi_node_int(node->proto, "start", 0),
                        qdqi_node_int(node->proto, "end", rank)};
    for (int i = 0; i < 2; i++) {
        if (range[i] < 0)
            range[i] += rank;
        range[i] = range[i] < 0 ? 0 : range[i] > rank ? rank : range[i];
    }
    int64_t n = range[1] > range[0] ? range[1] - range[0] : 0;
    int64_t *data = qdqi_arena_array(d->model->arena, (size_t)n, sizeof *data);
    Onnx__TensorProto *t = qdqi_constant_new(d->model->arena, QDQI_INT64, 1, n);
    if (!data || !t)
        return false;
    for (int64_t i = 0; i < n; i++)
        data[i] = d->dims[range[0] + i];
    t->int64_data = data;
    t->n_int64_data = (size_t)n;
    *d = (struct draft){.model = d->model,
                        .stored = t,
                        .dtype = (enum qdqi_dtype)t->data_type,
                        .rank = 1,
                        .n = (size_t)n};
    d->dims[0] = n;
    d->strides[0] = 1;
    return true;
}

/* Returns the one element that ConstantOfShape repeats: float32 zero by default. */
static const Onnx__TensorProto *
fill_element(const struct draft *d, const struct qdqi_node *node)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, "value");
    size_t n;
    if (a)
        return a->t && qdqi_count_elements(a->t->dims, a->t->n_dims, &n) && n == 1
                   ? a->t
                   : NULL;
    Onnx__TensorProto *t = qdqi_constant_new(d->model->arena, QDQI_FLOAT32, 1, 1);
    float *zero = qdqi_arena_alloc(d->model->arena, sizeof *zero);
    if (!t || !zero)
        return NULL;
    t->float_data = zero;
    t->n_float_data = 1;
    return t;
}

static bool
through_ConstantOfShape(const struct qdqi_node *node, struct draft *d)
{
    struct draft fill = {.model = d->model, .stored = fill_element(d, node)};
    if (d->rank != 1 || !fill.stored ||
        !qdqi_constant_ints(d->model, node->inputs[0], fill.dims, MAX_RANK,
                            &fill.rank) ||
        !qdqi_count_elements(fill.dims, fill.rank, &fill.n))
        return false;
    fill.dtype = (enum qdqi_dtype)fill.stored->data_type;
    *d = fill;
    return true;
}

static const struct {
    const char *op;
    bool (*through)(const struct qdqi_node *node, struct draft *draft);
} operators[] = {
    {"Cast", through_Cast},
    {"CastLike", through_CastLike},
    {"ConstantOfShape", through_ConstantOfShape},
    {"Dropout", through_Identity}, /* a fixed Dropout is not in training mode */
    {"Flatten", through_Flatten},
    {"Identity", through_Identity},
    {"Reshape", through_Reshape},
    {"Shape", through_Shape},
    {"Squeeze", through_Squeeze},
    {"Transpose", through_Transpose},
    {"Unsqueeze", through_Unsqueeze},
};

enum { N_OPERATORS = sizeof operators / sizeof *operators };

enum qdq_code
qdqi_view_infer(struct qdq_model *m, const struct qdqi_node *node,
                struct qdq_error *err)
{
    const Onnx__NodeProto *p = node->proto;
    struct draft d;
    size_t i = 0;
    while (i < N_OPERATORS && !qdqi_node_is(p, operators[i].op))
        i++;
    if (i == N_OPERATORS || p->n_output == 0 || !node->outputs[0] || p->n_input == 0 ||
        !node->inputs[0] || !draft_of(m, node->inputs[0], &d))
        return QDQ_OK;
    if (operators[i].through(node, &d))
        return finish(&d, node->outputs[0], err);
    return qdqi_arena_exhausted(m->arena) ? qdqi_no_memory(err) : QDQ_OK;
}
