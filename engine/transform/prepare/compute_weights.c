/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes weights that exporters leave as nodes of constants (weight normalization, the parts of
 * another framework's LSTM, a scale or an update that was never merged), as a runtime does when it
 * loads the model. Such a weight becomes one constant.
 */
#include "config.h"
#include "transform/prepare/prepare.h"

#include "graph/edit/edit.h"
#include "graph/layers/classes.h"
#include "plan/targets/shared/plain_forms.h"
#include "transform/prepare/compute.h"
#include "transform/prepare/named.h"

#include <string.h>

struct computing {
    struct qdqi_computing from;
    struct qdqi_edit *edit;
    struct qdqi_map *made;  /* name of a tensor -> that of the constant in its place */
    bool layers, recurrent; /* whose weights are computed */
    const char *first;      /* the first layer with such a weight */
    size_t n;               /* layers */
};

/* The inputs of an operator that are weights. */
struct weight_inputs {
    const char *op;
    size_t first, last;
    bool is_recurrent;
    const char *suffix; /* of the names of computed weights */
};

static const struct weight_inputs *
find_inputs(const struct qdqi_node *node)
{
    static const struct weight_inputs rows[] = {
        {"Conv", 1, 1, false, "_computed"},
        {"ConvTranspose", 1, 1, false, "_computed"},
        {"Gemm", 1, 1, false, "_computed"},
        {"MatMul", 0, 1, false, "_computed"},
        {"LSTM", 1, QDQI_RECURRENT, true, "_joined"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (qdqi_node_is(node->proto, rows[i].op))
            return &rows[i];
    return NULL;
}

/* Returns whether the tensor is made of constants, and is none that can be read as it is. */
static bool
is_computed(const struct computing *c, const struct qdqi_tensor *t)
{
    struct qdqi_constant constant;
    return t && t->is_fixed && t->producer >= 0 &&
           qdqi_constant_read(c->from.model, t, &constant, NULL) != QDQ_OK;
}

/* Returns the name of the constant in the place of a tensor, or NULL. The weights of an LSTM are
   [directions, gates, inputs]. */
static const char *
make_constant(struct computing *c, const struct qdqi_tensor *t, const char *suffix,
              bool is_recurrent)
{
    const char *name = qdqi_map_get(c->made, t->name);
    struct qdqi_computed value;
    if (name || !qdqi_compute(&c->from, t, &value) || value.n == 0 ||
        (is_recurrent && (value.rank != 3 || value.dims[0] > 2)))
        return name;
    name = qdqi_edit_name(c->edit, t->name, suffix);
    if (!name || !qdqi_map_put(c->made, t->name, (void *)(uintptr_t)name))
        return NULL; /* the arena remembers it */
    qdqi_edit_add_tensor(c->edit, name, QDQI_FLOAT32, value.rank, value.dims,
                         value.elements, value.n * sizeof *value.elements);
    return name;
}

static void
compute_weights(struct computing *c, size_t i)
{
    const struct qdqi_node *node = &c->from.model->graph.nodes[i];
    const struct weight_inputs *inputs = find_inputs(node);
    bool any = false;
    if (!inputs || !(inputs->is_recurrent ? c->recurrent : c->layers))
        return;
    for (size_t k = inputs->first; k <= inputs->last && k < node->proto->n_input; k++) {
        const struct qdqi_tensor *t = node->inputs[k];
        const char *name = is_computed(c, t) ? make_constant(c, t, inputs->suffix,
                                                             inputs->is_recurrent)
                                             : NULL;
        if (!name)
            continue;
        qdqi_edit_set_input(c->edit, i, k, name);
        qdqi_edit_drop_unused(c->edit, t->name);
        any = true;
    }
    if (any && c->n++ == 0)
        c->first = node->name;
}

enum qdq_code
qdqi_step_compute_weights(struct qdqi_preparing *p, struct qdq_model **ret,
                          struct qdq_error *err)
{
    struct qdq_spec spec = *p->spec;
    qdq_spec_complete(&spec);
    struct computing c = {.layers = qdqi_has_plain_forms(&spec),
                          .recurrent = p->spec->dynamic};
    const struct qdqi_graph *graph = &p->model->graph;
    struct qdqi_arena *arena = qdqi_arena_new();
    if (arena) {
        const struct qdqi_map *named = qdqi_named_by_spec(p->spec, arena);
        c.from = qdqi_computing_begin(p->model, named, arena);
        c.edit = qdqi_edit_new(p->model, arena);
        c.made = qdqi_map_new(arena);
    }
    enum qdq_code code =
        c.edit && c.made && c.from.named ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes && !code; i++)
        if (!graph->scopes[graph->nodes[i].scope].is_opaque)
            compute_weights(&c, i);
    if (!code && qdqi_arena_exhausted(arena))
        code = qdqi_no_memory(err);
    if (!code && c.n > 0)
        code = qdqi_edit_derive(c.edit, &arena, ret, err);
    if (!code && c.n > 0 && c.layers)
        code = qdqi_warn(&p->warnings, p->arena, err, "weights_computed", c.first,
                         "the weights of %zu layers, this one first, are computed from "
                         "constants; they are constants in the result",
                         c.n);
    qdqi_arena_free(&arena);
    return code;
}
