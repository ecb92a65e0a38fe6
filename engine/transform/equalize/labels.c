/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/labels.h"

#include "transform/equalize/axis.h"

#include <string.h>

enum { MAX_LABELS = 1 << 22 };

/* The node whose output is computed. */
struct passing {
    const struct qdq_model *model;
    const struct qdqi_node *node;
    size_t output;
    struct qdqi_arena *arena;
    const struct qdqi_labels *from;
};

/* Allocates the labels of a shape. */
static bool
allocate(struct qdqi_arena *arena, struct qdqi_labels *l)
{
    if (l->rank > QDQI_LABEL_AXES || !qdqi_count_elements(l->dims, l->rank, &l->n) ||
        l->n == 0 || l->n > MAX_LABELS)
        return false;
    l->all = qdqi_arena_array(arena, l->n, sizeof *l->all);
    return l->all;
}

bool
qdqi_labels_init(struct qdqi_arena *arena, size_t rank, const int64_t *dims,
                 struct qdqi_labels *ret)
{
    *ret = (struct qdqi_labels){.rank = rank};
    if (rank == 0 || rank > QDQI_LABEL_AXES)
        return false;
    memcpy(ret->dims, dims, rank * sizeof *dims);
    if (!allocate(arena, ret))
        return false;
    for (size_t i = 0; i < ret->n; i++)
        ret->all[i] = (uint32_t)(i % (size_t)dims[rank - 1]);
    return true;
}

/* --- shapes ----------------------------------------------------------------- */

/* Sets the shape with the labels in their order. */
static bool
relabel(const struct passing *p, size_t rank, const int64_t *dims,
        struct qdqi_labels *ret)
{
    size_t n;
    if (rank == 0 || rank > QDQI_LABEL_AXES || !qdqi_count_elements(dims, rank, &n) ||
        n != p->from->n)
        return false;
    *ret = (struct qdqi_labels){.rank = rank, .n = n, .all = p->from->all};
    memcpy(ret->dims, dims, rank * sizeof *dims);
    return true;
}

static bool
reshape(const struct passing *p, struct qdqi_labels *ret)
{
    struct qdqi_axes shape;
    int64_t known = 1;
    int64_t *open = NULL;
    if (p->node->proto->n_input < 2 || !p->node->inputs[1] ||
        qdqi_node_int(p->node->proto, "allowzero", 0) ||
        !qdqi_constant_ints(p->model, p->node->inputs[1], shape.list, QDQI_LABEL_AXES,
                            &shape.n))
        return false;
    for (size_t i = 0; i < shape.n; i++) {
        int64_t *size = &shape.list[i];
        if (*size == 0 && i < p->from->rank)
            *size = p->from->dims[i];
        if (*size == -1 && !open)
            open = size;
        else if (*size <= 0 || *size > MAX_LABELS / known)
            return false;
        else
            known *= *size;
    }
    if (open)
        *open = (int64_t)p->from->n / known;
    return relabel(p, shape.n, shape.list, ret);
}

/* Returns the index of an axis that may be counted from the end; `rank` where there is no
   such axis. */
static size_t
axis_of(int64_t axis, size_t rank)
{
    axis += axis < 0 ? (int64_t)rank : 0;
    return axis < 0 || axis > (int64_t)rank ? rank : (size_t)axis;
}

static bool
squeeze(const struct passing *p, struct qdqi_labels *ret)
{
    struct qdqi_axes axes;
    int64_t dims[QDQI_LABEL_AXES];
    bool gone[QDQI_LABEL_AXES] = {false};
    size_t rank = 0;
    if (!qdqi_axes_read(p->model, p->node, 1, &axes))
        return false;
    for (size_t i = 0; i < axes.n; i++) {
        size_t axis = axis_of(axes.list[i], p->from->rank);
        if (axis == p->from->rank || p->from->dims[axis] != 1)
            return false;
        gone[axis] = true;
    }
    for (size_t i = 0; i < p->from->rank; i++)
        if (!gone[i])
            dims[rank++] = p->from->dims[i];
    return relabel(p, rank, dims, ret);
}

static bool
unsqueeze(const struct passing *p, struct qdqi_labels *ret)
{
    struct qdqi_axes axes;
    int64_t dims[QDQI_LABEL_AXES];
    bool is_new[QDQI_LABEL_AXES] = {false};
    if (!qdqi_axes_read(p->model, p->node, 1, &axes) ||
        p->from->rank + axes.n > QDQI_LABEL_AXES)
        return false;
    size_t rank = p->from->rank + axes.n, next = 0;
    for (size_t i = 0; i < axes.n; i++) {
        size_t axis = axis_of(axes.list[i], rank);
        if (axis == rank || is_new[axis])
            return false;
        is_new[axis] = true;
    }
    for (size_t i = 0; i < rank; i++)
        dims[i] = is_new[i] ? 1 : p->from->dims[next++];
    return relabel(p, rank, dims, ret);
}

/* --- the order of elements -------------------------------------------------- */

static bool
transpose(const struct passing *p, struct qdqi_labels *ret)
{
    const Onnx__AttributeProto *perm = qdqi_node_attribute(p->node->proto, "perm");
    size_t rank = p->from->rank, strides[QDQI_LABEL_AXES], step = 1;
    size_t at[QDQI_LABEL_AXES] = {0}, source = 0;
    bool used[QDQI_LABEL_AXES] = {false};
    int64_t from[QDQI_LABEL_AXES];
    if (perm && perm->n_ints != rank)
        return false;
    for (size_t i = rank; i-- > 0; step *= (size_t)p->from->dims[i])
        strides[i] = step;
    *ret = (struct qdqi_labels){.rank = rank};
    for (size_t i = 0; i < rank; i++) {
        from[i] = perm ? perm->ints[i] : (int64_t)(rank - 1 - i);
        if (from[i] < 0 || from[i] >= (int64_t)rank || used[from[i]])
            return false;
        used[from[i]] = true;
        ret->dims[i] = p->from->dims[from[i]];
    }
    if (!allocate(p->arena, ret))
        return false;
    for (size_t i = 0; i < ret->n; i++) {
        ret->all[i] = p->from->all[source];
        for (size_t a = rank; a-- > 0;) {
            source += strides[from[a]];
            if (++at[a] < (size_t)ret->dims[a])
                break;
            source -= strides[from[a]] * (size_t)ret->dims[a];
            at[a] = 0;
        }
    }
    return true;
}

/* Takes n elements along an axis: those of the list; without one those from `first` on. */
static bool
take(const struct passing *p, size_t axis, const int64_t *list, int64_t first, size_t n,
     struct qdqi_labels *ret)
{
    size_t inner = 1, size = (size_t)p->from->dims[axis], outer = 0;
    *ret = *p->from;
    ret->dims[axis] = (int64_t)n;
    if (!allocate(p->arena, ret))
        return false;
    for (size_t i = axis + 1; i < ret->rank; i++)
        inner *= (size_t)ret->dims[i];
    for (; outer < p->from->n / inner / size; outer++)
        for (size_t i = 0; i < n; i++) {
            size_t index = axis_of(list ? list[i] : first + (int64_t)i, size);
            if (index >= size)
                return false;
            memcpy(ret->all + (outer * n + i) * inner,
                   p->from->all + (outer * size + index) * inner,
                   inner * sizeof *ret->all);
        }
    return true;
}

static bool
gather(const struct passing *p, struct qdqi_labels *ret)
{
    size_t rank = p->from->rank;
    size_t axis = axis_of(qdqi_node_int(p->node->proto, "axis", 0), rank);
    const struct qdqi_tensor *indices = p->node->inputs[1];
    struct qdqi_axes list;
    if (axis == rank || !indices || !indices->is_fixed || indices->view.rank > 1 ||
        !qdqi_constant_ints(p->model, indices, list.list, QDQI_MAX_AXES, &list.n) ||
        !take(p, axis, list.list, 0, list.n, ret))
        return false;
    if (indices->view.rank == 1)
        return true;
    ret->rank--;
    memmove(ret->dims + axis, ret->dims + axis + 1,
            (ret->rank - axis) * sizeof *ret->dims);
    return ret->rank > 0;
}

/* Returns an end of a slice as an index from 0 to `size`. */
static int64_t
end_of(int64_t end, int64_t size)
{
    end += end < 0 ? size : 0;
    return end < 0 ? 0 : end > size ? size : end;
}

static bool
slice(const struct passing *p, struct qdqi_labels *ret)
{
    struct qdqi_axes in[4]; /* starts, ends, axes, steps */
    size_t n_input = p->node->proto->n_input;
    if (n_input < 4)
        return false;
    for (size_t i = 0; i < 4 && i + 1 < n_input; i++)
        if (!p->node->inputs[i + 1] ||
            !qdqi_constant_ints(p->model, p->node->inputs[i + 1], in[i].list,
                                QDQI_MAX_AXES, &in[i].n) ||
            in[i].n != 1)
            return false;
    size_t axis = axis_of(in[2].list[0], p->from->rank);
    if (axis == p->from->rank || (n_input > 4 && in[3].list[0] != 1))
        return false;
    int64_t size = p->from->dims[axis];
    int64_t first = end_of(in[0].list[0], size), end = end_of(in[1].list[0], size);
    return first < end && take(p, axis, NULL, first, (size_t)(end - first), ret);
}

/* Reads the sizes of the parts; without them, they are equal. */
static bool
read_parts(const struct passing *p, int64_t size, struct qdqi_axes *ret)
{
    const Onnx__NodeProto *node = p->node->proto;
    const Onnx__AttributeProto *parts = qdqi_node_attribute(node, "split");
    ret->n = node->n_output;
    if (ret->n == 0 || ret->n > QDQI_MAX_AXES || (parts && parts->n_ints != ret->n))
        return false;
    if (node->n_input > 1 && p->node->inputs[1]) {
        size_t n;
        return qdqi_constant_ints(p->model, p->node->inputs[1], ret->list,
                                  QDQI_MAX_AXES, &n) &&
               n == ret->n;
    }
    for (size_t i = 0; i < ret->n; i++)
        ret->list[i] = parts ? parts->ints[i] : size / (int64_t)ret->n;
    return parts || size % (int64_t)ret->n == 0;
}

static bool
split(const struct passing *p, struct qdqi_labels *ret)
{
    size_t axis = axis_of(qdqi_node_int(p->node->proto, "axis", 0), p->from->rank);
    struct qdqi_axes parts;
    int64_t first = 0;
    if (axis == p->from->rank || !read_parts(p, p->from->dims[axis], &parts) ||
        p->output >= parts.n)
        return false;
    int64_t left = p->from->dims[axis], n = 0;
    for (size_t i = 0; i <= p->output; i++) {
        first += n;
        n = parts.list[i];
        if (n <= 0 || n > left)
            return false;
        left -= n;
    }
    return take(p, axis, NULL, first, (size_t)n, ret);
}

/* --- sums ------------------------------------------------------------------- */

/* The other factor is taken to have as many rows as the one with the labels. */
static bool
multiply(const struct passing *p, struct qdqi_labels *ret)
{
    const struct qdqi_labels *from = p->from;
    if (from->rank < 2)
        return false;
    size_t columns = (size_t)from->dims[from->rank - 1];
    size_t matrix = columns * (size_t)from->dims[from->rank - 2];
    for (size_t i = 0; i < from->n; i++)
        if (from->all[i] != from->all[i / matrix * matrix + i % columns])
            return false;
    *ret = *from;
    return true;
}

static const struct {
    const char *op;
    bool (*pass)(const struct passing *p, struct qdqi_labels *ret);
} operators[] = {
    {"Reshape", reshape}, {"Transpose", transpose}, {"Squeeze", squeeze},
    {"Gather", gather},   {"Unsqueeze", unsqueeze}, {"Slice", slice},
    {"Split", split},     {"MatMul", multiply},
};

bool
qdqi_labels_pass(const struct qdq_model *model, const struct qdqi_node *node,
                 size_t output, struct qdqi_arena *arena,
                 const struct qdqi_labels *from, struct qdqi_labels *ret)
{
    const struct passing p = {model, node, output, arena, from};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (qdqi_node_is(node->proto, operators[i].op))
            return operators[i].pass(&p, ret);
    *ret = *from;
    return true;
}
