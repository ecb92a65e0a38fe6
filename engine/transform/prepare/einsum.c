/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an Einsum of computed data and of a constant weight as the MatMul that it is, so that the
 * weight can be quantized (the hook `einsums` of plan/placement/target.h). Exporters leave one of a dense
 * layer over several axes, as Keras' EinsumDense:
 *
 *   data   (-> Transpose)  (-> Reshape: the summed axes are one)  -> MatMul  (-> Reshape)  (-> Transpose)
 *   weight (-> Transpose)  (-> Reshape to a matrix)               ->
 *
 * One that sums nothing, keeps no axis of an operand, has an axis in both operands and in the output, or repeats
 * one of size 1 stays as it is.
 */
#include "config.h"
#include "transform/prepare/named.h"
#include "transform/prepare/prepare.h"

#include "files/model/constant.h"
#include "graph/edit/edit.h"
#include "plan/placement/target.h"

#include <string.h>

enum { MOST_AXES = 8, N_OPERANDS = 2 };

/* The letters of the axes of an operand or of the output. A dot stands for all axes of an ellipsis. */
struct term {
    char axes[MOST_AXES + 1];
    size_t n;
};

struct equation {
    struct term operands[N_OPERANDS], output;
};

struct product {
    const struct qdqi_node *node;
    size_t index;
    int data, weight; /* inputs */
    struct term given, stored, output;
    struct term kept, summed,
        made; /* axes of the data alone, of both operands, of the weight alone */
    const int64_t *dims; /* of the weight */
};

struct writing {
    const struct qdq_model *model;
    struct qdqi_edit *edit;
    struct qdqi_arena *arena;
    bool any;
};

/* --- the equation ------------------------------------------------------------------- */

static bool
add_axis(struct term *t, char axis)
{
    if (t->n == MOST_AXES || memchr(t->axes, axis, t->n))
        return false;
    t->axes[t->n++] = axis;
    t->axes[t->n] = '\0';
    return true;
}

static bool
has_axis(const struct term *t, char axis)
{
    return memchr(t->axes, axis, t->n);
}

/* Reads "ab,bc->ac". Returns false for another number of operands, no output, and an axis that an operand
   has twice. */
static bool
read_equation(const Onnx__AttributeProto *a, struct equation *ret)
{
    struct term *terms[] = {&ret->operands[0], &ret->operands[1], &ret->output};
    size_t at = 0;
    for (size_t i = 0; a && i < a->s.len; i++) {
        const char c = (char)a->s.data[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (c == ' ')
            continue;
        if (c == ',' && at == 0)
            at = 1;
        else if (c == '-' && at == 1 && i + 1 < a->s.len && a->s.data[i + 1] == '>') {
            at = 2;
            i++;
        } else if (c == '.' && i + 2 < a->s.len && a->s.data[i + 1] == '.' &&
                   a->s.data[i + 2] == '.') {
            if (!add_axis(terms[at], '.'))
                return false;
            i += 2;
        } else if (!letter || !add_axis(terms[at], c))
            return false;
    }
    return at == 2;
}

/* Sorts the axes by who has them. Returns false where the equation is no product of matrices. */
static bool
sort_axes(struct product *p)
{
    bool ok = !has_axis(&p->stored, '.');
    for (size_t i = 0; ok && i < p->given.n; i++) {
        const char axis = p->given.axes[i];
        const bool weighed = has_axis(&p->stored, axis),
                   out = has_axis(&p->output, axis);
        ok = weighed != out && add_axis(weighed ? &p->summed : &p->kept, axis);
    }
    for (size_t i = 0; ok && i < p->stored.n; i++) {
        const char axis = p->stored.axes[i];
        if (!has_axis(&p->given, axis))
            ok = has_axis(&p->output, axis) && add_axis(&p->made, axis);
    }
    return ok && p->summed.n > 0 && p->kept.n > 0 && p->made.n > 0 &&
           p->output.n == p->kept.n + p->made.n;
}

/* --- nodes ------------------------------------------------------------------------ */

static struct term
join(const struct term *a, const struct term *b)
{
    struct term ret = *a;
    for (size_t i = 0; i < b->n; i++)
        (void)add_axis(&ret, b->axes[i]);
    return ret;
}

static const char *
make_name(const struct writing *w, const struct product *p, const char *suffix)
{
    return qdqi_edit_name(w->edit, p->node->name, suffix);
}

/* Returns a tensor with the axes of `to`, which are those of `from` in another order. It is called
   `output`, or where that is NULL by a new name. */
static const char *
order(const struct writing *w, const struct product *p, size_t at, const char *tensor,
      const struct term *from, const struct term *to, const char *output)
{
    int64_t perm[MOST_AXES];
    if (strcmp(from->axes, to->axes) == 0)
        return tensor;
    for (size_t i = 0; i < to->n; i++)
        perm[i] = (const char *)memchr(from->axes, to->axes[i], from->n) - from->axes;
    const char *made = output ? output : make_name(w, p, "_ordered");
    Onnx__NodeProto *node = qdqi_edit_add_node(
        w->edit, at, "Transpose", make_name(w, p, "_Transpose"), &tensor, 1, made);
    qdqi_edit_add_ints(w->edit, node, "perm", to->n, perm);
    return made;
}

static const char *
reshape(const struct writing *w, const struct product *p, size_t at, const char *tensor,
        const int64_t *shape, size_t n, const char *output)
{
    const char *made = output ? output : make_name(w, p, "_shaped");
    const char *inputs[] = {tensor, make_name(w, p, "_shape")};
    const void *copy = qdqi_arena_copy(w->arena, shape, n, sizeof *shape);
    if (copy)
        qdqi_edit_add_initializer(w->edit, inputs[1], QDQI_INT64, n, false, copy);
    qdqi_edit_add_node(w->edit, at, "Reshape", make_name(w, p, "_Reshape"), inputs, 2,
                       made);
    return made;
}

static int64_t
size_of(const struct product *p, const struct term *axes)
{
    int64_t n = 1;
    for (size_t i = 0; i < axes->n; i++)
        n *= p->dims[(const char *)memchr(p->stored.axes, axes->axes[i], p->stored.n) -
                     p->stored.axes];
    return n;
}

/* Returns the weight as a matrix whose rows are summed over. Where its axes are stored the other way
   round, a Transpose makes it. */
static const char *
write_weight(const struct writing *w, const struct product *p)
{
    const char *tensor = p->node->inputs[p->weight]->name;
    const struct term rows = join(&p->summed, &p->made),
                      columns = join(&p->made, &p->summed);
    static const struct term row = {"ab", 2}, column = {"ba", 2};
    const int64_t shape[] = {size_of(p, &p->summed), size_of(p, &p->made)};
    const int64_t turned[] = {shape[1], shape[0]};
    const bool several = p->summed.n > 1 || p->made.n > 1;
    if (strcmp(p->stored.axes, columns.axes) == 0) {
        if (several)
            tensor = reshape(w, p, p->index, tensor, turned, 2, NULL);
        return order(w, p, p->index, tensor, &column, &row, NULL);
    }
    tensor = order(w, p, p->index, tensor, &p->stored, &rows, NULL);
    return several ? reshape(w, p, p->index, tensor, shape, 2, NULL) : tensor;
}

static const char *
write_data(const struct writing *w, const struct product *p)
{
    const struct term to = join(&p->kept, &p->summed);
    const char *tensor =
        order(w, p, p->index, p->node->inputs[p->data]->name, &p->given, &to, NULL);
    int64_t shape[MOST_AXES + 1] = {0}; /* 0: as it is */
    shape[p->kept.n] = -1;
    return p->summed.n > 1 ? reshape(w, p, p->index, tensor, shape, p->kept.n + 1, NULL)
                           : tensor;
}

static void
write_product(struct writing *w, const struct product *p)
{
    const struct term from = join(&p->kept, &p->made);
    const bool orders = strcmp(from.axes, p->output.axes) != 0, parts = p->made.n > 1;
    const char *out = p->node->outputs[0]->name;
    const char *inputs[] = {write_data(w, p), write_weight(w, p)};
    const size_t behind = qdqi_edit_behind(w->model, p->node->outputs[0]);
    qdqi_edit_become(w->edit, p->index, "MatMul", inputs);
    w->any = true;
    if (!orders && !parts)
        return;
    const char *made = make_name(w, p, "_product");
    qdqi_edit_set_output(w->edit, p->index, 0, made);
    if (parts) {
        int64_t shape[MOST_AXES] = {0};
        for (size_t i = 0; i < p->made.n; i++)
            shape[p->kept.n + i] = size_of(p, &(struct term){{p->made.axes[i]}, 1});
        made = reshape(w, p, behind, made, shape, from.n, orders ? NULL : out);
    }
    if (orders)
        order(w, p, behind, made, &from, &p->output, out);
}

/* --- which ones -------------------------------------------------------------------- */

static bool
is_weight(const struct writing *w, const struct qdqi_tensor *t)
{
    return t && t->is_fixed && t->dtype == QDQI_FLOAT32 && t->view.stored &&
           !qdqi_constant_is_overridable(w->model, t);
}

/* Returns the shape that the main graph declares of a tensor, or NULL. */
static const Onnx__TensorShapeProto *
declared_shape(const struct writing *w, const char *name)
{
    const Onnx__GraphProto *graph = w->model->proto->graph;
    Onnx__ValueInfoProto *const *const lists[] = {graph->input, graph->value_info};
    const size_t lengths[] = {graph->n_input, graph->n_value_info};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < lengths[k]; i++) {
            const Onnx__ValueInfoProto *v = lists[k][i];
            if (v->name && strcmp(v->name, name) == 0 && v->type &&
                v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
                return v->type->tensor_type->shape;
        }
    return NULL;
}

/* Returns whether the sizes of an axis that is summed may differ: an Einsum repeats one of size 1, a MatMul does
   not. A size that is not declared is taken for that of the weight. */
static bool
may_repeat(const struct writing *w, const struct product *p)
{
    const Onnx__TensorShapeProto *shape =
        declared_shape(w, p->node->inputs[p->data]->name);
    const char *all = memchr(p->given.axes, '.', p->given.n);
    for (size_t i = 0; i < p->summed.n; i++) {
        const struct term axis = {{p->summed.axes[i]}, 1};
        const char *at = memchr(p->given.axes, axis.axes[0], p->given.n);
        const size_t behind = p->given.n - (size_t)(at - p->given.axes);
        const size_t place = !shape            ? 0
                             : all && all < at ? shape->n_dim - behind
                                               : (size_t)(at - p->given.axes);
        if (size_of(p, &axis) == 1 ||
            (shape && place < shape->n_dim &&
             shape->dim[place]->value_case ==
                 ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
             shape->dim[place]->dim_value != size_of(p, &axis)))
            return true;
    }
    return false;
}

/* Reads an Einsum that is such a product. All axes of an ellipsis stay where they are. */
static bool
read_product(const struct writing *w, size_t i, struct product *ret)
{
    const struct qdqi_node *node = &w->model->graph.nodes[i];
    struct equation e = {0};
    if (!qdqi_node_is(node->proto, "Einsum") || node->proto->n_input != N_OPERANDS ||
        node->proto->n_output != 1 || !node->inputs[0] || !node->inputs[1] ||
        !node->outputs[0] ||
        !read_equation(qdqi_node_attribute(node->proto, "equation"), &e))
        return false;
    const int weight = is_weight(w, node->inputs[0]) ? 0 : 1;
    if (!is_weight(w, node->inputs[weight]) || node->inputs[!weight]->is_fixed)
        return false;
    *ret = (struct product){.node = node,
                            .index = i,
                            .data = !weight,
                            .weight = weight,
                            .given = e.operands[!weight],
                            .stored = e.operands[weight],
                            .output = e.output,
                            .dims = node->inputs[weight]->view.dims};
    if (node->inputs[weight]->view.rank != ret->stored.n || !sort_axes(ret) ||
        may_repeat(w, ret))
        return false;
    const struct term data = join(&ret->kept, &ret->summed),
                      out = join(&ret->kept, &ret->made);
    return !has_axis(&ret->given, '.') || (ret->summed.n == 1 && ret->made.n == 1 &&
                                           strcmp(data.axes, ret->given.axes) == 0 &&
                                           strcmp(out.axes, ret->output.axes) == 0);
}

enum qdq_code
qdqi_step_einsum(struct qdqi_preparing *p, struct qdq_model **ret,
                 struct qdq_error *err)
{
    struct qdq_spec spec = *p->spec;
    qdq_spec_complete(&spec);
    const struct qdqi_hooks *hooks = spec.target->hooks;
    const struct qdqi_graph *graph = &p->model->graph;
    if (!hooks->einsums || !hooks->einsums(&spec) || p->model->proto->n_training_info)
        return QDQ_OK;
    struct writing w = {.model = p->model, .arena = qdqi_arena_new()};
    w.edit = w.arena ? qdqi_edit_new(p->model, w.arena) : NULL;
    const struct qdqi_map *named = w.edit ? qdqi_named_by_spec(p->spec, w.arena) : NULL;
    enum qdq_code code = named ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes && !code; i++) {
        struct product product;
        if (!graph->scopes[graph->nodes[i].scope].is_opaque &&
            !qdqi_map_get(named, "Einsum") && read_product(&w, i, &product))
            write_product(&w, &product);
    }
    if (!code && qdqi_arena_exhausted(w.arena))
        code = qdqi_no_memory(err);
    if (!code && w.any)
        code = qdqi_edit_derive(w.edit, &w.arena, ret, err);
    qdqi_arena_free(&w.arena);
    return code;
}
