/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/compute.h"

#include <math.h>
#include <string.h>

enum { MAX_AXES = QDQI_COMPUTED_AXES, MAX_DEPTH = 16 };

/* A model may have so many times its own bytes computed, and a few more. Each node that is computed
   counts as some bytes: those of tensors without elements are not for nothing. */
enum { COPIES = 16, SPARE_BYTES = 1 << 20, STEP_BYTES = 64 };

/* A node whose output is computed. */
struct step {
    struct qdqi_computing *c;
    const struct qdqi_node *node;
    size_t output; /* which of its outputs */
    int depth;     /* so many nodes may still stand before it */
    const struct operator_row *row;
};

struct operator_row {
    const char *op;
    bool (*compute)(struct step *s, struct qdqi_computed *ret);
    double (*unary)(double);
    double (*binary)(double, double);
};

static bool compute(struct qdqi_computing *c, const struct qdqi_tensor *t, int depth,
                    struct qdqi_computed *ret);

static bool
allocate(struct qdqi_computing *c, struct qdqi_computed *to)
{
    if (!qdqi_count_elements(to->dims, to->rank, &to->n) ||
        to->n > c->left / sizeof(float))
        return false;
    c->left -= to->n * sizeof(float);
    to->elements = qdqi_arena_array(c->arena, to->n, sizeof(float));
    return to->elements;
}

/* --- inputs and attributes --------------------------------------------------- */

static const struct qdqi_tensor *
input_of(const struct step *s, size_t i)
{
    return i < s->node->proto->n_input ? s->node->inputs[i] : NULL;
}

static bool
compute_input(struct step *s, size_t i, struct qdqi_computed *ret)
{
    return input_of(s, i) && compute(s->c, input_of(s, i), s->depth - 1, ret);
}

/* Reads the integers of an attribute, or of the input that has them in later opsets. Returns
   false where neither can be read; *ret_n is 0 where both are left out. */
static bool
read_ints(const struct step *s, const char *attribute, size_t input, int64_t *ret,
          size_t *ret_n)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(s->node->proto, attribute);
    *ret_n = 0;
    if (!a)
        return !input_of(s, input) ||
               qdqi_constant_ints(s->c->model, input_of(s, input), ret, MAX_AXES,
                                  ret_n);
    if (a->n_ints > MAX_AXES)
        return false;
    for (size_t i = 0; i < a->n_ints; i++)
        ret[(*ret_n)++] = a->ints[i];
    return true;
}

/* Makes axes that may count from the end into a set. */
static bool
axes_of(const int64_t *axes, size_t n, size_t rank, bool *ret)
{
    memset(ret, 0, MAX_AXES * sizeof *ret);
    for (size_t i = 0; i < n; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + (int64_t)rank : axes[i];
        if (axis < 0 || axis >= (int64_t)rank || ret[axis])
            return false;
        ret[axis] = true;
    }
    return true;
}

static bool
axis_of(const struct step *s, int64_t otherwise, size_t rank, size_t *ret)
{
    int64_t axis = qdqi_node_int(s->node->proto, "axis", otherwise);
    axis = axis < 0 ? axis + (int64_t)rank : axis;
    *ret = (size_t)axis;
    return axis >= 0 && axis < (int64_t)rank;
}

/* --- broadcasting ------------------------------------------------------------- */

/* Computes the distance between neighbours along each axis; 0 along axes of one element, which
   are repeated up to `rank` axes. */
static void
stretch(const struct qdqi_computed *of, size_t rank, size_t *ret)
{
    size_t step = 1;
    for (size_t i = 0; i < rank; i++) {
        const size_t at = rank - 1 - i;
        const bool is_there = i < of->rank;
        const size_t size = is_there ? (size_t)of->dims[of->rank - 1 - i] : 1;
        ret[at] = size == 1 ? 0 : step;
        step *= size;
    }
}

/* Moves on to the next element in C order, and returns its offset in the strides. */
static void
next(const struct qdqi_computed *shape, size_t *index, const size_t *strides,
     size_t *at)
{
    for (size_t k = shape->rank; k-- > 0;) {
        *at += strides[k];
        if (++index[k] < (size_t)shape->dims[k])
            return;
        *at -= strides[k] * index[k];
        index[k] = 0;
    }
}

/* Copies the elements that the strides name, in the order of the result's shape. */
static void
gather(const float *from, const size_t *strides, size_t at, struct qdqi_computed *to)
{
    size_t index[MAX_AXES] = {0};
    for (size_t i = 0; i < to->n; i++) {
        to->elements[i] = from[at];
        next(to, index, strides, &at);
    }
}

static bool
broadcast(const struct qdqi_computed *a, const struct qdqi_computed *b,
          struct qdqi_computed *ret)
{
    ret->rank = a->rank > b->rank ? a->rank : b->rank;
    for (size_t i = 0; i < ret->rank; i++) {
        const int64_t x = i < a->rank ? a->dims[a->rank - 1 - i] : 1;
        const int64_t y = i < b->rank ? b->dims[b->rank - 1 - i] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        ret->dims[ret->rank - 1 - i] = x == 1 ? y : x;
    }
    return true;
}

/* --- arithmetic ---------------------------------------------------------------- */

static double
add(double a, double b)
{
    return a + b;
}
static double
subtract(double a, double b)
{
    return a - b;
}
static double
multiply(double a, double b)
{
    return a * b;
}
static double
divide(double a, double b)
{
    return a / b;
}
static double
negate(double a)
{
    return -a;
}
static double
reciprocal(double a)
{
    return 1 / a;
}
static double
sigmoid(double a)
{
    return 1 / (1 + exp(-a));
}
static double
keep(double a)
{
    return a;
}

/* Add-7, Sub-7, Mul-7, Div-7, Pow-7; Max-8 and Min-8 of two inputs. */
static bool
compute_binary(struct step *s, struct qdqi_computed *ret)
{
    struct qdqi_computed a, b;
    size_t of_a[MAX_AXES], of_b[MAX_AXES], index_a[MAX_AXES] = {0},
                                           index_b[MAX_AXES] = {0};
    size_t at_a = 0, at_b = 0;
    if (s->node->proto->n_input != 2 || qdqi_node_attribute(s->node->proto, "axis") ||
        !compute_input(s, 0, &a) || !compute_input(s, 1, &b) ||
        !broadcast(&a, &b, ret) || !allocate(s->c, ret))
        return false;
    stretch(&a, ret->rank, of_a);
    stretch(&b, ret->rank, of_b);
    for (size_t i = 0; i < ret->n; i++) {
        ret->elements[i] =
            (float)s->row->binary((double)a.elements[at_a], (double)b.elements[at_b]);
        next(ret, index_a, of_a, &at_a);
        next(ret, index_b, of_b, &at_b);
    }
    return true;
}

static bool
compute_unary(struct step *s, struct qdqi_computed *ret)
{
    struct qdqi_computed a;
    if (!compute_input(s, 0, &a))
        return false;
    *ret = a;
    if (!allocate(s->c, ret))
        return false;
    for (size_t i = 0; i < ret->n; i++)
        ret->elements[i] = (float)s->row->unary((double)a.elements[i]);
    return true;
}

/* Cast-6 to float32: what is read is float32. */
static bool
compute_cast(struct step *s, struct qdqi_computed *ret)
{
    return qdqi_node_int(s->node->proto, "to", 0) ==
               ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
           compute_input(s, 0, ret);
}

/* MatMul-1 of two matrices. */
static bool
compute_matmul(struct step *s, struct qdqi_computed *ret)
{
    struct qdqi_computed a, b;
    if (!compute_input(s, 0, &a) || !compute_input(s, 1, &b) || a.rank != 2 ||
        b.rank != 2 || a.dims[1] != b.dims[0])
        return false;
    *ret = (struct qdqi_computed){.rank = 2, .dims = {a.dims[0], b.dims[1]}};
    const size_t inner = (size_t)a.dims[1], columns = (size_t)b.dims[1];
    if (!allocate(s->c, ret) || (inner > 0 && ret->n > s->c->left / inner))
        return false; /* a product is bounded, too */
    for (size_t i = 0; i < ret->n; i++) {
        const float *row = a.elements + i / columns * inner;
        double sum = 0;
        for (size_t k = 0; k < inner; k++)
            sum += (double)row[k] * (double)b.elements[k * columns + i % columns];
        ret->elements[i] = (float)sum;
    }
    return true;
}

/* --- reductions ----------------------------------------------------------------- */

static double
add_size(double sum, double a)
{
    return sum + fabs(a);
}
static double
add_square(double sum, double a)
{
    return sum + a * a;
}

/* Reads which axes are reduced: all where none is named. */
static bool
read_reduced(const struct step *s, const struct qdqi_computed *from, bool *ret)
{
    int64_t axes[MAX_AXES];
    size_t n;
    if (!read_ints(s, "axes", 1, axes, &n) || !axes_of(axes, n, from->rank, ret))
        return false;
    if (n == 0 && qdqi_node_int(s->node->proto, "noop_with_empty_axes", 0))
        return false;
    for (size_t i = 0; i < from->rank && n == 0; i++)
        ret[i] = true;
    return true;
}

/* ReduceL1, ReduceL2, ReduceMean, ReduceSum, ReduceSumSquare, ReduceMax, ReduceMin: axes are an
   attribute, or from opset 13 (ReduceSum) and 18 on an input. */
static bool
compute_reduction(struct step *s, struct qdqi_computed *ret)
{
    const bool keeps = qdqi_node_int(s->node->proto, "keepdims", 1);
    struct qdqi_computed from, kept;
    bool reduced[MAX_AXES];
    size_t strides[MAX_AXES], index[MAX_AXES] = {0}, at = 0;
    if (!compute_input(s, 0, &from) || !read_reduced(s, &from, reduced))
        return false;
    kept = from;
    ret->rank = 0;
    for (size_t i = 0; i < from.rank; i++) {
        kept.dims[i] = reduced[i] ? 1 : from.dims[i];
        if (!reduced[i] || keeps)
            ret->dims[ret->rank++] = kept.dims[i];
    }
    if (from.n == 0 || !allocate(s->c, ret))
        return false;
    double *sums = qdqi_arena_array(s->c->arena, ret->n, sizeof *sums);
    bool *begun = qdqi_arena_array(s->c->arena, ret->n, sizeof *begun);
    if (!sums || !begun)
        return false;
    stretch(&kept, from.rank, strides);
    const bool is_extreme = s->row->binary == fmax || s->row->binary == fmin;
    for (size_t i = 0; i < from.n; i++) {
        const double a = (double)from.elements[i];
        sums[at] = is_extreme && !begun[at] ? a : s->row->binary(sums[at], a);
        begun[at] = true;
        next(&from, index, strides, &at);
    }
    const double count = (double)(from.n / ret->n);
    for (size_t i = 0; i < ret->n; i++)
        ret->elements[i] =
            (float)(s->row->unary
                        ? s->row->unary(sums[i])
                        : sums[i] /
                              (strcmp(s->row->op, "ReduceMean") == 0 ? count : 1));
    return true;
}

/* --- operators that move elements ------------------------------------------------ */

/* Gives the elements of *to another shape, which must have as many. */
static bool
reshape(struct qdqi_computed *to, const int64_t *dims, size_t rank)
{
    size_t n;
    if (rank > MAX_AXES || !qdqi_count_elements(dims, rank, &n) || n != to->n)
        return false;
    memcpy(to->dims, dims, rank * sizeof *dims);
    to->rank = rank;
    return true;
}

/* Reshape-5, with 0 for the size that is there, and -1 for what is left. */
static bool
compute_reshape(struct step *s, struct qdqi_computed *ret)
{
    int64_t dims[MAX_AXES];
    size_t n, rest = SIZE_MAX, known = 1;
    if (!compute_input(s, 0, ret) || !read_ints(s, "shape", 1, dims, &n) ||
        qdqi_node_int(s->node->proto, "allowzero", 0))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (dims[i] == 0 && i < ret->rank)
            dims[i] = ret->dims[i];
        if (dims[i] == -1 && rest == SIZE_MAX)
            rest = i;
        else if (dims[i] <= 0 || (size_t)dims[i] > ret->n / known)
            return false;
        else
            known *= (size_t)dims[i];
    }
    if (rest != SIZE_MAX)
        dims[rest] = (int64_t)(ret->n / known);
    return reshape(ret, dims, n);
}

/* Unsqueeze-1 and -13. */
static bool
compute_unsqueeze(struct step *s, struct qdqi_computed *ret)
{
    int64_t axes[MAX_AXES], dims[MAX_AXES];
    bool added[MAX_AXES];
    size_t n, from = 0;
    if (!compute_input(s, 0, ret) || !read_ints(s, "axes", 1, axes, &n) ||
        ret->rank + n > MAX_AXES || !axes_of(axes, n, ret->rank + n, added))
        return false;
    const size_t rank = ret->rank + n;
    for (size_t i = 0; i < rank; i++)
        dims[i] = added[i] ? 1 : ret->dims[from++];
    return reshape(ret, dims, rank);
}

/* Squeeze-1 and -13: without axes, all of one element go. */
static bool
compute_squeeze(struct step *s, struct qdqi_computed *ret)
{
    int64_t axes[MAX_AXES], dims[MAX_AXES];
    bool gone[MAX_AXES];
    size_t n, rank = 0;
    if (!compute_input(s, 0, ret) || !read_ints(s, "axes", 1, axes, &n) ||
        !axes_of(axes, n, ret->rank, gone))
        return false;
    for (size_t i = 0; i < ret->rank; i++)
        if (!(n ? gone[i] : ret->dims[i] == 1))
            dims[rank++] = ret->dims[i];
    return reshape(ret, dims, rank);
}

/* Transpose-1. */
static bool
compute_transpose(struct step *s, struct qdqi_computed *ret)
{
    struct qdqi_computed from;
    int64_t perm[MAX_AXES];
    bool seen[MAX_AXES];
    size_t n, strides[MAX_AXES], of[MAX_AXES], step = 1;
    if (!compute_input(s, 0, &from) || !read_ints(s, "perm", SIZE_MAX, perm, &n))
        return false;
    for (size_t i = 0; n == 0 && i < from.rank; i++)
        perm[i] = (int64_t)(from.rank - 1 - i);
    if ((n != 0 && n != from.rank) || !axes_of(perm, from.rank, from.rank, seen))
        return false;
    for (size_t i = 0; i < from.rank; i++)
        if (perm[i] < 0) /* axes of a permutation do not count from the end */
            return false;
    for (size_t i = from.rank; i-- > 0; step *= (size_t)from.dims[i])
        of[i] = step;
    *ret = from;
    for (size_t i = 0; i < from.rank; i++) {
        ret->dims[i] = from.dims[perm[i]];
        strides[i] = of[perm[i]];
    }
    if (!allocate(s->c, ret))
        return false;
    gather(from.elements, strides, 0, ret);
    return true;
}

/* Expand-8. */
static bool
compute_expand(struct step *s, struct qdqi_computed *ret)
{
    struct qdqi_computed from, to = {0};
    size_t strides[MAX_AXES];
    if (!compute_input(s, 0, &from) || !read_ints(s, "", 1, to.dims, &to.rank) ||
        !broadcast(&from, &to, ret) || !allocate(s->c, ret))
        return false;
    stretch(&from, ret->rank, strides);
    gather(from.elements, strides, 0, ret);
    return true;
}

/* Copies `count` places along an axis from one tensor to another. */
static void
copy_along(const struct qdqi_computed *from, size_t begin, struct qdqi_computed *to,
           size_t at, size_t count, size_t axis)
{
    size_t inner = 1, outer = 1;
    for (size_t i = axis + 1; i < from->rank; i++)
        inner *= (size_t)from->dims[i];
    for (size_t i = 0; i < axis; i++)
        outer *= (size_t)from->dims[i];
    const size_t of_from = (size_t)from->dims[axis] * inner,
                 of_to = (size_t)to->dims[axis] * inner;
    for (size_t i = 0; i < outer; i++)
        memcpy(to->elements + i * of_to + at * inner,
               from->elements + i * of_from + begin * inner,
               count * inner * sizeof(float));
}

/* Concat-4. */
static bool
compute_concat(struct step *s, struct qdqi_computed *ret)
{
    const size_t n = s->node->proto->n_input;
    size_t axis = 0, at = 0;
    if (n == 0 || n > s->c->left / sizeof(struct qdqi_computed))
        return false;
    s->c->left -= n * sizeof(struct qdqi_computed);
    struct qdqi_computed *parts = qdqi_arena_array(s->c->arena, n, sizeof *parts);
    if (!parts)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!compute_input(s, i, &parts[i]) || parts[i].rank != parts[0].rank ||
            !axis_of(s, INT64_MAX, parts[0].rank, &axis))
            return false;
        for (size_t k = 0; k < parts[0].rank; k++)
            if (k != axis && parts[i].dims[k] != parts[0].dims[k])
                return false;
        at += (size_t)parts[i].dims[axis];
    }
    *ret = parts[0];
    ret->dims[axis] = (int64_t)at;
    if (!allocate(s->c, ret))
        return false;
    at = 0;
    for (size_t i = 0; i < n; i++) {
        copy_along(&parts[i], 0, ret, at, (size_t)parts[i].dims[axis], axis);
        at += (size_t)parts[i].dims[axis];
    }
    return true;
}

static int64_t
clamp(int64_t i, int64_t n)
{
    i = i < 0 ? (i < -n ? 0 : i + n) : i;
    return i > n ? n : i;
}

/* Takes `count` places along an axis. */
static bool
take(struct qdqi_computing *c, const struct qdqi_computed *from, size_t axis,
     size_t begin, size_t count, struct qdqi_computed *ret)
{
    *ret = *from;
    ret->dims[axis] = (int64_t)count;
    if (!allocate(c, ret))
        return false;
    copy_along(from, begin, ret, 0, count, axis);
    return true;
}

/* Slice-1 and -10, forwards by one element. */
static bool
compute_slice(struct step *s, struct qdqi_computed *ret)
{
    int64_t begins[MAX_AXES], ends[MAX_AXES], axes[MAX_AXES], steps[MAX_AXES];
    size_t n, n_ends, n_axes, n_steps;
    bool seen[MAX_AXES];
    if (!compute_input(s, 0, ret) || !read_ints(s, "starts", 1, begins, &n) ||
        !read_ints(s, "ends", 2, ends, &n_ends) ||
        !read_ints(s, "axes", 3, axes, &n_axes) ||
        !read_ints(s, "", 4, steps, &n_steps) || n_ends != n || n > ret->rank ||
        (n_axes != 0 && n_axes != n) || (n_steps != 0 && n_steps != n))
        return false;
    for (size_t i = 0; n_axes == 0 && i < n; i++)
        axes[i] = (int64_t)i;
    if (!axes_of(axes, n, ret->rank, seen))
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct qdqi_computed from = *ret;
        const size_t axis =
            (size_t)(axes[i] < 0 ? axes[i] + (int64_t)from.rank : axes[i]);
        const int64_t begin = clamp(begins[i], from.dims[axis]),
                      end = clamp(ends[i], from.dims[axis]);
        if ((n_steps != 0 && steps[i] != 1) ||
            !take(s->c, &from, axis, (size_t)begin,
                  end > begin ? (size_t)(end - begin) : 0, ret))
            return false;
    }
    return true;
}

/* Split-2, -13 and -18: by stated sizes, or into equal parts. */
static bool
compute_split(struct step *s, struct qdqi_computed *ret)
{
    struct qdqi_computed from;
    int64_t sizes[MAX_AXES], begin = 0;
    size_t n, axis;
    const size_t parts = s->node->proto->n_output;
    if (!compute_input(s, 0, &from) || !axis_of(s, 0, from.rank, &axis) ||
        !read_ints(s, "split", 1, sizes, &n) || parts > MAX_AXES ||
        (n == 0 ? from.dims[axis] % (int64_t)parts != 0 : n != parts))
        return false;
    for (size_t i = 0; i <= s->output; i++) {
        sizes[i] = n ? sizes[i] : from.dims[axis] / (int64_t)parts;
        if (sizes[i] < 0 || sizes[i] > from.dims[axis] - begin)
            return false;
        begin += sizes[i];
    }
    const int64_t size = sizes[s->output];
    return take(s->c, &from, axis, (size_t)(begin - size), (size_t)size, ret);
}

/* --- the table ---------------------------------------------------------------------- */

static const struct operator_row rows[] = {
    {"Add", compute_binary, NULL, add},
    {"Sub", compute_binary, NULL, subtract},
    {"Mul", compute_binary, NULL, multiply},
    {"Div", compute_binary, NULL, divide},
    {"Pow", compute_binary, NULL, pow},
    {"Max", compute_binary, NULL, fmax},
    {"Min", compute_binary, NULL, fmin},
    {"Sqrt", compute_unary, sqrt, NULL},
    {"Abs", compute_unary, fabs, NULL},
    {"Neg", compute_unary, negate, NULL},
    {"Reciprocal", compute_unary, reciprocal, NULL},
    {"Exp", compute_unary, exp, NULL},
    {"Tanh", compute_unary, tanh, NULL},
    {"Sigmoid", compute_unary, sigmoid, NULL},
    {"Identity", compute_unary, keep, NULL},
    {"Cast", compute_cast, NULL, NULL},
    {"MatMul", compute_matmul, NULL, NULL},
    {"ReduceL1", compute_reduction, NULL, add_size},
    {"ReduceL2", compute_reduction, sqrt, add_square},
    {"ReduceMean", compute_reduction, NULL, add},
    {"ReduceSum", compute_reduction, NULL, add},
    {"ReduceSumSquare", compute_reduction, NULL, add_square},
    {"ReduceMax", compute_reduction, NULL, fmax},
    {"ReduceMin", compute_reduction, NULL, fmin},
    {"Reshape", compute_reshape, NULL, NULL},
    {"Unsqueeze", compute_unsqueeze, NULL, NULL},
    {"Squeeze", compute_squeeze, NULL, NULL},
    {"Transpose", compute_transpose, NULL, NULL},
    {"Expand", compute_expand, NULL, NULL},
    {"Concat", compute_concat, NULL, NULL},
    {"Slice", compute_slice, NULL, NULL},
    {"Split", compute_split, NULL, NULL},
};

static bool
read_constant(struct qdqi_computing *c, const struct qdqi_tensor *t,
              struct qdqi_computed *ret)
{
    struct qdqi_constant from;
    if (qdqi_constant_is_overridable(c->model, t) ||
        qdqi_constant_read(c->model, t, &from, NULL) || from.dtype != QDQI_FLOAT32 ||
        from.strides || from.rank > MAX_AXES)
        return false;
    ret->rank = from.rank;
    for (size_t i = 0; i < from.rank; i++)
        ret->dims[i] = from.dims[i];
    if (!allocate(c, ret))
        return false;
    memcpy(ret->elements, from.bytes, from.n * sizeof *ret->elements);
    return true;
}

static size_t
output_index(const struct qdqi_node *node, const struct qdqi_tensor *t)
{
    size_t i = 0;
    while (i < node->proto->n_output && node->outputs[i] != t)
        i++;
    return i;
}

static bool
compute(struct qdqi_computing *c, const struct qdqi_tensor *t, int depth,
        struct qdqi_computed *ret)
{
    *ret = (struct qdqi_computed){0};
    if (!t->is_fixed || depth == 0 || qdqi_map_get(c->named, t->name) ||
        c->left < STEP_BYTES)
        return false;
    c->left -= STEP_BYTES;
    if (read_constant(c, t, ret))
        return true;
    const struct qdqi_node *node =
        t->producer >= 0 ? &c->model->graph.nodes[t->producer] : NULL;
    if (node && qdqi_map_get(c->named, node->name))
        return false;
    for (size_t i = 0; node && i < sizeof rows / sizeof *rows; i++) {
        struct step s = {c, node, 0, depth, &rows[i]};
        if (!qdqi_node_is(node->proto, rows[i].op))
            continue;
        s.output = output_index(node, t);
        return (s.output == 0 || strcmp(rows[i].op, "Split") == 0) &&
               s.output < node->proto->n_output && rows[i].compute(&s, ret);
    }
    return false;
}

struct qdqi_computing
qdqi_computing_begin(const struct qdq_model *model, const struct qdqi_map *named,
                     struct qdqi_arena *arena)
{
    return (struct qdqi_computing){model, arena, named,
                                   COPIES * qdqi_model_bytes(model) + SPARE_BYTES};
}

bool
qdqi_compute(struct qdqi_computing *c, const struct qdqi_tensor *tensor,
             struct qdqi_computed *ret)
{
    return compute(c, tensor, MAX_DEPTH, ret);
}
