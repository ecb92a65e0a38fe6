/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the weights of LSTM that exporters leave as the Concat of Slices of another
 * framework's weight, whose gates are in another order. All of it is along axis 0, so that
 * parts are runs of elements. Such a weight becomes one constant, as a runtime makes it
 * when it loads the model.
 */
#include "config.h"
#include "transform/prepare/prepare.h"

#include "graph/edit/edit.h"
#include "graph/layers/classes.h"
#include "files/model/constant.h"
#include "qdq/targets.h"

#include <string.h>

enum { MAX_RANK = 3, MAX_DEPTH = 8 };

/* A model may have so many times its own bytes copied, since few nodes can ask for many. */
enum { COPIES = 16 };

struct joining {
    const struct qdq_model *model;
    struct qdqi_arena *arena;
    struct qdqi_edit *edit;
    struct qdqi_map *joined; /* name of a tensor -> that of the constant in its place */
    uint64_t left;           /* bytes that may be copied */
};

/* Elements in C order, in the arena. */
struct part {
    size_t rank;
    int64_t dims[MAX_RANK];
    float *elements;
};

static size_t
row_of(const struct part *p)
{
    size_t n = 1;
    for (size_t i = 1; i < p->rank; i++)
        n *= (size_t)p->dims[i];
    return n;
}

static float *
allocate(struct joining *j, size_t n)
{
    if (n > j->left / sizeof(float))
        return NULL;
    j->left -= n * sizeof(float);
    return qdqi_arena_array(j->arena, n, sizeof(float));
}

/* --- operators -------------------------------------------------------------- */

static bool compute(struct joining *j, const struct qdqi_tensor *t, int depth,
                    struct part *ret);

static bool
read_constant(struct joining *j, const struct qdqi_tensor *t, struct part *ret)
{
    struct qdqi_constant c;
    if (qdqi_constant_is_overridable(j->model, t) ||
        qdqi_constant_read(j->model, t, &c, NULL) || c.dtype != QDQI_FLOAT32 ||
        c.strides || c.rank < 1 || c.rank > MAX_RANK ||
        !(ret->elements = allocate(j, c.n)))
        return false;
    ret->rank = c.rank;
    memcpy(ret->dims, c.dims, c.rank * sizeof *c.dims);
    memcpy(ret->elements, c.bytes, c.n * sizeof *ret->elements);
    return true;
}

/* Reads an input that is one integer. */
static bool
read_int(const struct joining *j, const struct qdqi_node *node, size_t input,
         int64_t *ret)
{
    size_t n = 0;
    return input < node->proto->n_input && node->inputs[input] &&
           qdqi_constant_ints(j->model, node->inputs[input], ret, 1, &n) && n == 1;
}

/* The same, of an input that is `otherwise` where it is left out. */
static bool
is_int(const struct joining *j, const struct qdqi_node *node, size_t input,
       int64_t wanted, int64_t otherwise)
{
    int64_t value = otherwise;
    bool left_out = input >= node->proto->n_input || !node->inputs[input];
    return (left_out || read_int(j, node, input, &value)) && value == wanted;
}

static int64_t
clamp(int64_t i, int64_t n)
{
    i = i < 0 ? i + n : i;
    return i < 0 ? 0 : i > n ? n : i;
}

/* Slice-10: data, starts, ends, axes, steps. */
static bool
slice(struct joining *j, const struct qdqi_node *node, int depth, struct part *ret)
{
    int64_t start, end;
    if (!read_int(j, node, 1, &start) || !read_int(j, node, 2, &end) ||
        !is_int(j, node, 3, 0, 0) || !is_int(j, node, 4, 1, 1) ||
        !compute(j, node->inputs[0], depth, ret))
        return false;
    start = clamp(start, ret->dims[0]);
    end = clamp(end, ret->dims[0]);
    ret->elements += (size_t)start * row_of(ret);
    ret->dims[0] = end > start ? end - start : 0;
    return true;
}

/* Unsqueeze-13: data, axes; before that axes is an attribute. */
static bool
unsqueeze(struct joining *j, const struct qdqi_node *node, int depth, struct part *ret)
{
    const Onnx__AttributeProto *axes = qdqi_node_attribute(node->proto, "axes");
    bool first =
        axes ? axes->n_ints == 1 && axes->ints[0] == 0 : is_int(j, node, 1, 0, -1);
    if (!first || !compute(j, node->inputs[0], depth, ret) || ret->rank == MAX_RANK)
        return false;
    memmove(ret->dims + 1, ret->dims, ret->rank++ * sizeof *ret->dims);
    ret->dims[0] = 1;
    return true;
}

/* Adds `part` behind the elements of `to`. */
static bool
append(struct joining *j, const struct part *part, struct part *to)
{
    const size_t row = row_of(part), n = (size_t)to->dims[0] * row,
                 more = (size_t)part->dims[0] * row;
    if (to->rank != part->rank ||
        memcmp(to->dims + 1, part->dims + 1, (to->rank - 1) * sizeof *to->dims) != 0)
        return false;
    float *all = allocate(j, n + more);
    if (!all)
        return false;
    memcpy(all, to->elements, n * sizeof *all);
    memcpy(all + n, part->elements, more * sizeof *all);
    to->elements = all;
    to->dims[0] += part->dims[0];
    return true;
}

static bool
concat(struct joining *j, const struct qdqi_node *node, int depth, struct part *ret)
{
    if (qdqi_node_int(node->proto, "axis", -1) != 0 || node->proto->n_input == 0 ||
        !compute(j, node->inputs[0], depth, ret))
        return false;
    for (size_t i = 1; i < node->proto->n_input; i++) {
        struct part part;
        if (!compute(j, node->inputs[i], depth, &part) || !append(j, &part, ret))
            return false;
    }
    return true;
}

static bool
identity(struct joining *j, const struct qdqi_node *node, int depth, struct part *ret)
{
    return compute(j, node->inputs[0], depth, ret);
}

/* Computes a tensor. Returns false where it is not made by these operators along axis 0. */
static bool
compute(struct joining *j, const struct qdqi_tensor *t, int depth, struct part *ret)
{
    static const struct {
        const char *op;
        bool (*compute)(struct joining *, const struct qdqi_node *, int, struct part *);
    } operators[] = {
        {"Slice", slice},
        {"Concat", concat},
        {"Unsqueeze", unsqueeze},
        {"Identity", identity},
    };
    if (!t || !t->is_fixed || depth == 0)
        return false;
    if (read_constant(j, t, ret))
        return true;
    const struct qdqi_node *node =
        t->producer >= 0 ? &j->model->graph.nodes[t->producer] : NULL;
    for (size_t i = 0; node && i < sizeof operators / sizeof *operators; i++)
        if (qdqi_node_is(node->proto, operators[i].op) && node->proto->n_input > 0)
            return operators[i].compute(j, node, depth - 1, ret);
    return false;
}

/* --- the step ---------------------------------------------------------------- */

/* Returns the name of the constant in the place of a tensor, or NULL. */
static const char *
join(struct joining *j, const struct qdqi_tensor *t)
{
    const char *name = qdqi_map_get(j->joined, t->name);
    struct part part;
    if (name || !compute(j, t, MAX_DEPTH, &part))
        return name;
    const size_t n = (size_t)part.dims[0] * row_of(&part);
    name = qdqi_edit_name(j->edit, t->name, "_joined");
    if (!name || !qdqi_map_put(j->joined, t->name, (void *)(uintptr_t)name))
        return NULL; /* the arena remembers it */
    qdqi_edit_add_tensor(j->edit, name, QDQI_FLOAT32, part.rank, part.dims,
                         part.elements, n * sizeof *part.elements);
    return name;
}

/* Joins the weights of a node, if it is an LSTM with such weights. Returns whether it has
   any. */
static bool
join_weights(struct joining *j, size_t i)
{
    const struct qdqi_node *node = &j->model->graph.nodes[i];
    bool any = false;
    for (size_t k = 1; k <= QDQI_RECURRENT && qdqi_node_is(node->proto, "LSTM"); k++) {
        const struct qdqi_tensor *t = k < node->proto->n_input ? node->inputs[k] : NULL;
        const int64_t *dims;
        size_t rank;
        if (!t || !t->is_fixed || qdqi_tensor_dims(t, &dims, &rank))
            continue;
        const char *name = join(j, t);
        if (!name)
            continue;
        qdqi_edit_set_input(j->edit, i, k, name);
        qdqi_edit_drop_unused(j->edit, t->name);
        any = true;
    }
    return any;
}

static bool
join_all(struct joining *j)
{
    const struct qdqi_graph *graph = &j->model->graph;
    bool any = false;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->scopes[graph->nodes[i].scope].is_opaque)
            any |= join_weights(j, i);
    return any;
}

enum qdq_code
qdqi_step_join_gates(struct qdqi_preparing *p, struct qdq_model **ret,
                     struct qdq_error *err)
{
    struct joining j = {.model = p->model, .left = COPIES * qdqi_model_bytes(p->model)};
    enum qdq_code code = QDQ_OK;
    if (!p->spec->dynamic)
        return QDQ_OK;
    if ((j.arena = qdqi_arena_new())) {
        j.edit = qdqi_edit_new(p->model, j.arena);
        j.joined = qdqi_map_new(j.arena);
    }
    if (!j.edit || !j.joined) {
        code = qdqi_no_memory(err);
        goto out;
    }
    bool any = join_all(&j);
    if (qdqi_arena_exhausted(j.arena))
        code = qdqi_no_memory(err);
    else if (any)
        code = qdqi_edit_derive(j.edit, &j.arena, ret, err);
out:
    qdqi_arena_free(&j.arena);
    return code;
}
