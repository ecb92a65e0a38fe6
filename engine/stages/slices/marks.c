/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/slices/marks.h"

#include "files/model/constant.h"
#include "stages/slices/joined_parts.h"

#include <string.h>

enum { MOST_NODES = 24, MOST_INDICES = 1024 }; /* behind each other; of a Gather */

struct walk {
    struct qdqi_shapes *shapes;
    int depth;
};

static void find(struct walk *w, const struct qdqi_tensor *t, struct qdqi_marks *ret);

/* Adds a mark, unless there is one at its place. The one there keeps its name. */
static void
add_mark(struct qdqi_marks *to, size_t axis, int64_t at, const char *name)
{
    for (size_t i = 0; i < to->n; i++)
        if (to->rows[i].axis == axis && to->rows[i].at == at)
            return;
    if (to->n < QDQI_MOST_MARKS)
        to->rows[to->n++] = (struct qdqi_mark){axis, at, name};
}

static bool
has_marks(const struct qdqi_marks *m, size_t axis)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->rows[i].axis == axis)
            return true;
    return false;
}

/* Returns the name of the part that an element along an axis belongs to; NULL where there is
   none. */
static const char *
part_at(const struct qdqi_marks *m, size_t axis, int64_t at)
{
    const struct qdqi_mark *best = NULL;
    if (m->period[axis] > 0)
        at %= m->period[axis];
    for (size_t i = 0; i < m->n; i++) {
        const struct qdqi_mark *row = &m->rows[i];
        if (row->axis == axis && row->at <= at && (!best || row->at > best->at))
            best = row;
    }
    return best ? best->name : NULL;
}

/* --- the same elements in another shape --------------------------------------- */

/* Returns the number of elements behind each element of an axis; -1: not known. */
static int64_t
stride_of(const struct qdqi_static_shape *s, size_t axis)
{
    int64_t n = 1;
    for (size_t i = axis + 1; i < s->rank; i++)
        if (s->dims[i] < 0 || __builtin_mul_overflow(n, s->dims[i], &n))
            return -1;
    return n;
}

/* Returns how many axes of the two shapes, from the first one on, are the same. Sizes that are
   not known are, where one follows the other. */
static size_t
common_axes(const struct qdqi_static_shape *a, const struct qdqi_static_shape *b)
{
    size_t i = 0;
    while (i < a->rank && i < b->rank && a->dims[i] == b->dims[i])
        i++;
    return i;
}

/* Adds a mark whose part begins `offset` elements behind the beginning of each `whole` ones. */
static void
add_by_offset(struct qdqi_marks *to, int64_t offset, int64_t whole, const char *name)
{
    const struct qdqi_static_shape *s = &to->shape;
    for (size_t axis = 0; axis < s->rank; axis++) {
        const int64_t stride = stride_of(s, axis), size = s->dims[axis];
        if (stride <= 0 || whole <= stride || offset % stride || size == 1)
            continue;
        /* The first axis of which the offset is a whole number of steps; the beginning is one of
           all axes. */
        const int64_t period = whole / stride;
        const bool covers = size < 0 || period < size;
        if (whole % stride || (covers && size > 0 && size % period))
            continue;
        to->period[axis] = covers ? period : 0;
        add_mark(to, axis, covers ? offset / stride : offset / stride % size, name);
        if (offset > 0)
            return;
    }
}

/* Moves the marks of *from to a tensor of another shape with the same elements in the same order. */
static void
reshape_marks(const struct qdqi_marks *from, const struct qdqi_static_shape *shape,
              struct qdqi_marks *ret)
{
    const size_t same = common_axes(&from->shape, shape);
    *ret = (struct qdqi_marks){.shape = *shape};
    for (size_t i = 0; i < from->n; i++) {
        const struct qdqi_mark *m = &from->rows[i];
        const int64_t stride = stride_of(&from->shape, m->axis);
        int64_t whole;
        const int64_t size = from->period[m->axis] > 0 ? from->period[m->axis]
                                                       : from->shape.dims[m->axis];
        if (m->axis < same) {
            ret->period[m->axis] = from->period[m->axis];
            add_mark(ret, m->axis, m->at, m->name);
        } else if (stride > 0 && size > 0 &&
                   !__builtin_mul_overflow(size, stride, &whole) && m->at < size) {
            add_by_offset(ret, m->at * stride, whole, m->name);
        }
    }
}

/* --- operators ----------------------------------------------------------------- */

/* Each function sets ret->rows to the marks of output `output` of a node, whose shape is set. */
typedef void move_fn(struct walk *w, const struct qdqi_node *node, size_t output,
                     struct qdqi_marks *ret);

static void
through_same(struct walk *w, const struct qdqi_node *node, size_t output,
             struct qdqi_marks *ret)
{
    (void)output;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        struct qdqi_marks in;
        if (!node->inputs[i] || node->inputs[i]->is_fixed)
            continue;
        find(w, node->inputs[i], &in);
        if (in.n == 0 || in.shape.rank != ret->shape.rank)
            continue;
        in.shape = ret->shape;
        *ret = in;
        return;
    }
}

static void
through_reshape(struct walk *w, const struct qdqi_node *node, size_t output,
                struct qdqi_marks *ret)
{
    struct qdqi_marks in;
    const struct qdqi_static_shape shape = ret->shape;
    (void)output;
    find(w, node->inputs[0], &in);
    if (in.n > 0)
        reshape_marks(&in, &shape, ret);
}

static void
through_transpose(struct walk *w, const struct qdqi_node *node, size_t output,
                  struct qdqi_marks *ret)
{
    const Onnx__AttributeProto *perm = qdqi_node_attribute(node->proto, "perm");
    struct qdqi_marks in;
    (void)output;
    find(w, node->inputs[0], &in);
    const size_t rank = ret->shape.rank;
    if (in.shape.rank != rank || (perm && perm->n_ints != rank))
        return;
    for (size_t to = 0; in.n > 0 && to < rank; to++) {
        const size_t from = perm ? (size_t)perm->ints[to] : rank - 1 - to;
        if (from >= rank)
            return;
        ret->period[to] = in.period[from];
        for (size_t i = 0; i < in.n; i++)
            if (in.rows[i].axis == from)
                add_mark(ret, to, in.rows[i].at, in.rows[i].name);
    }
}

/* Adds the marks of one part of a join, which begins at `offset` along the axis. The part is marked
   itself where it has no marks there. */
static void
add_part(struct walk *w, const struct qdqi_tensor *part, size_t axis, int64_t offset,
         struct qdqi_marks *ret)
{
    struct qdqi_marks in;
    find(w, part, &in);
    const bool fits = in.shape.rank == ret->shape.rank;
    if (!fits || !has_marks(&in, axis) || in.period[axis] > 0)
        add_mark(ret, axis, offset, part->name);
    for (size_t i = 0; fits && i < in.n; i++) {
        const struct qdqi_mark *m = &in.rows[i];
        if (m->axis != axis && offset == 0)
            ret->period[m->axis] = in.period[m->axis];
        if (m->axis != axis && in.period[m->axis] == ret->period[m->axis])
            add_mark(ret, m->axis, m->at, m->name);
        else if (m->axis == axis && in.period[axis] == 0)
            add_mark(ret, axis, offset + m->at, m->name);
    }
}

/* Adds the marks of a part of a stack, which is element `at` along an axis of its own. */
static void
add_layer(struct walk *w, const struct qdqi_tensor *part, size_t axis, size_t at,
          struct qdqi_marks *ret)
{
    struct qdqi_marks in;
    find(w, part, &in);
    add_mark(ret, axis, (int64_t)at, part->name);
    for (size_t i = 0; i < in.n && in.shape.rank + 1 == ret->shape.rank; i++) {
        const struct qdqi_mark *m = &in.rows[i];
        const size_t to = m->axis + (m->axis >= axis ? 1 : 0);
        if (at == 0)
            ret->period[to] = in.period[m->axis];
        if (in.period[m->axis] == ret->period[to])
            add_mark(ret, to, m->at, m->name);
    }
}

/* Takes the marks along an axis away. */
static void
drop_marks(struct qdqi_marks *of, size_t axis)
{
    size_t kept = 0;
    for (size_t i = 0; i < of->n; i++)
        if (of->rows[i].axis != axis)
            of->rows[kept++] = of->rows[i];
    of->n = kept;
}

static void
through_concat(struct walk *w, const struct qdqi_node *node, size_t output,
               struct qdqi_marks *ret)
{
    const int64_t axis = qdqi_node_axis(node, 1, ret->shape.rank);
    struct qdqi_joined parts;
    int64_t offset = 0;
    (void)output;
    if (axis < 0 || !qdqi_joined_parts(w->shapes->model, node, &parts))
        return;
    for (size_t i = 0; qdqi_stacks(node) && i < parts.n; i++)
        add_layer(w, parts.tensors[i], (size_t)axis, i, ret);
    for (size_t i = 0; !qdqi_stacks(node) && i < parts.n && offset >= 0; i++) {
        struct qdqi_static_shape shape;
        add_part(w, parts.tensors[i], (size_t)axis, offset, ret);
        const bool known = qdqi_static_shape(w->shapes, parts.tensors[i], &shape) &&
                           shape.rank == ret->shape.rank && shape.dims[axis] >= 0;
        if (!known || __builtin_add_overflow(offset, shape.dims[axis], &offset))
            offset = -1;
        /* Where the other parts begin is not known, so nothing is along this axis. */
        if (offset < 0 && i + 1 < parts.n)
            drop_marks(ret, (size_t)axis);
    }
}

static void
through_sequence_at(struct walk *w, const struct qdqi_node *node, size_t output,
                    struct qdqi_marks *ret)
{
    const struct qdqi_tensor *taken = qdqi_taken_part(w->shapes->model, node);
    struct qdqi_marks in;
    (void)output;
    find(w, taken, &in);
    if (in.n > 0 && in.shape.rank == ret->shape.rank)
        *ret = in;
}

/* Adds the marks of `size` elements along an axis of *in, from `from` on; -1: of all behind it. */
static void
add_window(const struct qdqi_marks *in, size_t axis, int64_t from, int64_t size,
           struct qdqi_marks *ret)
{
    const char *first = part_at(in, axis, from);
    ret->period[axis] = 0;
    if (!first || in->period[axis] > 0)
        return;
    add_mark(ret, axis, 0, first);
    for (size_t i = 0; i < in->n; i++) {
        const int64_t at = in->rows[i].at - from;
        if (in->rows[i].axis == axis && at > 0 && (size < 0 || at < size))
            add_mark(ret, axis, at, in->rows[i].name);
    }
}

/* Adds the marks of all axes but one. */
static void
add_others(const struct qdqi_marks *in, size_t axis, struct qdqi_marks *ret)
{
    for (size_t i = 0; i < in->n; i++) {
        const struct qdqi_mark *m = &in->rows[i];
        if (m->axis == axis)
            continue;
        ret->period[m->axis] = in->period[m->axis];
        add_mark(ret, m->axis, m->at, m->name);
    }
}

static void
through_split(struct walk *w, const struct qdqi_node *node, size_t output,
              struct qdqi_marks *ret)
{
    const int64_t axis = qdqi_node_axis(node, 0, ret->shape.rank);
    int64_t sizes[QDQI_MOST_SPLITS], from = 0;
    struct qdqi_marks in;
    find(w, node->inputs[0], &in);
    if (in.n == 0 || axis < 0 || in.shape.rank != ret->shape.rank)
        return;
    add_others(&in, (size_t)axis, ret);
    if (!qdqi_split_sizes(w->shapes->model, node, in.shape.dims[axis], sizes))
        return;
    for (size_t i = 0; i < output; i++)
        if (sizes[i] < 0 || __builtin_add_overflow(from, sizes[i], &from))
            return;
    add_window(&in, (size_t)axis, from, sizes[output], ret);
}

static void
through_slice(struct walk *w, const struct qdqi_node *node, size_t output,
              struct qdqi_marks *ret)
{
    int64_t starts[QDQI_SHAPE_AXES], axes[QDQI_SHAPE_AXES], steps[QDQI_SHAPE_AXES];
    size_t n, n_axes, n_steps;
    struct qdqi_marks in;
    (void)output;
    find(w, node->inputs[0], &in);
    const struct qdq_model *model = w->shapes->model;
    if (in.n == 0 || in.shape.rank != ret->shape.rank ||
        !qdqi_node_constant_ints(model, node, 1, "starts", starts, &n))
        return;
    const bool named = qdqi_node_constant_ints(model, node, 3, "axes", axes, &n_axes);
    if (!qdqi_node_constant_ints(model, node, 4, NULL, steps, &n_steps))
        n_steps = 0;
    for (size_t axis = 0; axis < ret->shape.rank; axis++) {
        size_t at = 0;
        while (at < n && (named && at < n_axes && axes[at] < 0
                              ? axes[at] + (int64_t)ret->shape.rank
                          : named && at < n_axes ? axes[at]
                                                 : (int64_t)at) != (int64_t)axis)
            at++;
        const int64_t size = in.shape.dims[axis];
        const int64_t from = at < n ? starts[at] : 0;
        if (at == n) {
            ret->period[axis] = in.period[axis];
            for (size_t i = 0; i < in.n; i++)
                if (in.rows[i].axis == axis)
                    add_mark(ret, axis, in.rows[i].at, in.rows[i].name);
        } else if ((at >= n_steps || steps[at] == 1) && (from >= 0 || size >= 0)) {
            add_window(&in, axis, from < 0 ? from + size : from, ret->shape.dims[axis],
                       ret);
        }
    }
}

/* Gather: elements along an axis in another order, or some of them. */
static void
through_gather(struct walk *w, const struct qdqi_node *node, size_t output,
               struct qdqi_marks *ret)
{
    const struct qdq_model *model = w->shapes->model;
    int64_t indices[MOST_INDICES];
    const int64_t *dims;
    size_t rank, n;
    struct qdqi_marks in;
    (void)output;
    find(w, node->inputs[0], &in);
    const int64_t axis = qdqi_node_axis(node, 0, in.shape.rank);
    if (in.n == 0 || axis < 0 || node->proto->n_input < 2 || !node->inputs[1] ||
        !qdqi_tensor_dims(node->inputs[1], &dims, &rank))
        return;
    if (rank == 0) { /* the axis is gone, and those behind it come before */
        for (size_t i = 0; i < in.n; i++)
            if (in.rows[i].axis != (size_t)axis) {
                const size_t to =
                    in.rows[i].axis - (in.rows[i].axis > (size_t)axis ? 1 : 0);
                ret->period[to] = in.period[in.rows[i].axis];
                add_mark(ret, to, in.rows[i].at, in.rows[i].name);
            }
        return;
    }
    add_others(&in, (size_t)axis, ret);
    if (!qdqi_constant_ints(model, node->inputs[1], indices, MOST_INDICES, &n))
        return;
    const char *before = NULL;
    for (size_t i = 0; i < n && has_marks(&in, (size_t)axis); i++) {
        const int64_t size = in.shape.dims[axis];
        const int64_t from = indices[i] < 0 ? indices[i] + size : indices[i];
        const char *name = part_at(&in, (size_t)axis, from);
        if (name != before && name)
            add_mark(ret, (size_t)axis, (int64_t)i, name);
        before = name;
    }
}

/* Pad: what it adds is a part by itself along an axis with parts. */
static void
through_pad(struct walk *w, const struct qdqi_node *node, size_t output,
            struct qdqi_marks *ret)
{
    int64_t pads[2 * QDQI_SHAPE_AXES] = {0};
    size_t n = 0;
    struct qdqi_marks in;
    (void)output;
    find(w, node->inputs[0], &in);
    const size_t rank = in.shape.rank;
    const bool given = rank == ret->shape.rank && node->proto->n_input >= 2 &&
                       node->inputs[1] &&
                       qdqi_constant_ints(w->shapes->model, node->inputs[1], pads,
                                          2 * QDQI_SHAPE_AXES, &n) &&
                       n == 2 * rank && node->proto->n_input <= 3;
    for (size_t axis = 0; given && axis < rank; axis++) {
        const int64_t size = in.shape.dims[axis];
        if (!has_marks(&in, axis) || pads[axis] < 0 || pads[rank + axis] < 0 ||
            pads[axis] > INT32_MAX ||
            (in.period[axis] > 0 && (pads[axis] || pads[rank + axis])))
            continue;
        ret->period[axis] = in.period[axis];
        for (size_t i = 0; i < in.n; i++)
            if (in.rows[i].axis == axis)
                add_mark(ret, axis, in.rows[i].at + pads[axis], in.rows[i].name);
        if (pads[axis] > 0)
            add_mark(ret, axis, 0, node->name);
        if (pads[rank + axis] > 0 && size >= 0)
            add_mark(ret, axis, size + pads[axis], node->name);
    }
}

/* Operators that compute each element by itself. */
static const char *const same[] = {"Identity",  "Cast",
                                   "Dropout",   "Relu",
                                   "LeakyRelu", "Clip",
                                   "Sigmoid",   "HardSigmoid",
                                   "HardSwish", "Tanh",
                                   "Exp",       "Softplus",
                                   "Abs",       "Neg",
                                   "Add",       "Sub",
                                   "Mul",       "Div",
                                   "Pow",       "Max",
                                   "Min",       "BatchNormalization",
                                   NULL};

static const struct {
    const char *op;
    move_fn *through;
} operators[] = {
    {"Concat", through_concat},
    {"ConcatFromSequence", through_concat},
    {"SequenceAt", through_sequence_at},
    {"Split", through_split},
    {"Slice", through_slice},
    {"Gather", through_gather},
    {"Pad", through_pad},
    {"Transpose", through_transpose},
    {"Reshape", through_reshape},
    {"Flatten", through_reshape},
    {"Squeeze", through_reshape},
    {"Unsqueeze", through_reshape},
};

static move_fn *
mover_of(const struct qdqi_node *node)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (qdqi_node_is(node->proto, operators[i].op))
            return operators[i].through;
    return qdqi_node_is_one_of(node->proto, same) ? through_same : NULL;
}

/* Adds the parts into which Splits cut a tensor that read it. */
static void
add_readers(struct walk *w, const struct qdqi_tensor *t, struct qdqi_marks *ret)
{
    const struct qdq_model *model = w->shapes->model;
    for (const struct qdqi_use *use = t->uses; use; use = use->next) {
        const struct qdqi_node *node = &model->graph.nodes[use->node];
        int64_t sizes[QDQI_MOST_SPLITS], at = 0;
        const int64_t axis = qdqi_node_axis(node, 0, ret->shape.rank);
        if (use->input != 0 || axis < 0 || !qdqi_node_is(node->proto, "Split") ||
            has_marks(ret, (size_t)axis) ||
            !qdqi_split_sizes(model, node, ret->shape.dims[axis], sizes))
            continue;
        for (size_t i = 0;
             i < node->proto->n_output && sizes[i] >= 0 && sizes[i] < INT32_MAX;
             at += sizes[i++])
            if (node->outputs[i])
                add_mark(ret, (size_t)axis, at, node->outputs[i]->name);
    }
}

static void
find(struct walk *w, const struct qdqi_tensor *t, struct qdqi_marks *ret)
{
    *ret = (struct qdqi_marks){0};
    if (!t || w->depth >= MOST_NODES || !qdqi_static_shape(w->shapes, t, &ret->shape))
        return;
    const struct qdqi_node *node =
        t->producer >= 0 ? &w->shapes->model->graph.nodes[t->producer] : NULL;
    move_fn *through = node && node->proto->n_input > 0 ? mover_of(node) : NULL;
    size_t output = 0;
    while (through && output + 1 < node->proto->n_output && node->outputs[output] != t)
        output++;
    w->depth++;
    if (through)
        through(w, node, output, ret);
    w->depth--;
    add_readers(w, t, ret);
}

void
qdqi_find_marks(struct qdqi_shapes *shapes, const struct qdqi_tensor *tensor,
                struct qdqi_marks *ret)
{
    struct walk w = {.shapes = shapes};
    find(&w, tensor, ret);
}
