/* SPDX-License-Identifier: Apache-2.0 */
/* Finds rows of a spec's layer support without which the plan is the same. */
#include "config.h"
#include "plan/placement/planner.h"

#include <string.h>

static bool
same_ints(const int *a, size_t n_a, const int *b, size_t n_b)
{
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * sizeof *a) == 0);
}

/* Returns whether two plans of a node put the same pairs there; NULL: there are none. */
static bool
same_pairs(const struct qdq_layer *a, const struct qdq_layer *b)
{
    static const struct qdq_layer none = {.weight_input = -1};
    a = a ? a : &none;
    b = b ? b : &none;
    return same_ints(a->quantized_inputs, a->n_inputs, b->quantized_inputs,
                     b->n_inputs) &&
           same_ints(a->quantized_outputs, a->n_outputs, b->quantized_outputs,
                     b->n_outputs) &&
           a->weight_input == b->weight_input &&
           (a->weight_input < 0 || a->weight_axis == b->weight_axis);
}

/* Both plans have their layers in the order of the nodes. */
static bool
same_plans(const struct qdq_plan_view *a, const struct qdq_plan_view *b)
{
    size_t i = 0, k = 0;
    while (i < a->n_layers || k < b->n_layers) {
        const struct qdq_layer *x = i < a->n_layers ? &a->layers[i] : NULL;
        const struct qdq_layer *y = k < b->n_layers ? &b->layers[k] : NULL;
        if (x && y && x->node != y->node)
            *(x->node < y->node ? &y : &x) = NULL;
        if (!same_pairs(x, y))
            return false;
        i += x != NULL;
        k += y != NULL;
    }
    return true;
}

/* Makes the plan without row i. Any error, such as an entry for a class that only this row
   has, is an effect of the row. */
static enum qdq_code
is_idle(struct planner *p, size_t i, bool *ret, struct qdq_error *err)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_plan *plan = arena ? qdqi_arena_alloc(arena, sizeof *plan) : NULL;
    struct qdq_support *rows =
        arena ? qdqi_arena_array(arena, p->spec->n_support, sizeof *rows) : NULL;
    struct qdq_error why = {0};
    *ret = false;
    if (!plan || !rows) {
        qdqi_arena_free(&arena);
        return qdqi_no_memory(err);
    }
    struct qdq_spec spec = *p->spec;
    for (size_t k = 0; k < p->spec->n_support; k++)
        if (k != i)
            rows[k - (k > i)] = p->spec->support[k];
    spec.support = rows;
    spec.n_support--;
    plan->arena = arena;
    plan->short_names = p->plan->short_names;
    plan->decoder = p->plan->decoder;
    struct planner other = {.catalog = p->catalog,
                            .model = p->model,
                            .spec = &spec,
                            .plan = plan,
                            .script_time = p->script_time};
    enum qdq_code code = qdqi_planner_make(&other, &why);
    p->script_time = other.script_time;
    *ret = !code && same_plans(&p->plan->view, &plan->view);
    qdqi_arena_free(&arena);
    return code == QDQ_NO_MEMORY ? qdqi_no_memory(err) : QDQ_OK;
}

/* Returns whether the model has a node of the row's class; else there is a warning. */
static bool
is_used(const struct planner *p, const struct qdq_support *row)
{
    for (size_t i = 0; i < p->model->graph.n_nodes; i++) {
        const struct qdqi_class *cls = p->graph->classes[i];
        if (cls && strcmp(cls->support.cls, row->cls) == 0)
            return true;
    }
    return false;
}

enum qdq_code
qdqi_warn_idle_support(struct planner *p, struct qdq_error *err)
{
    enum { MOST_ROWS = 32 }; /* that are tried: each takes a plan */
    const struct qdq_spec *spec = p->spec;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < spec->n_support && i < MOST_ROWS && !code; i++) {
        bool idle;
        if (!is_used(p, &spec->support[i]) || (code = is_idle(p, i, &idle, err)) ||
            !idle)
            continue;
        code =
            qdqi_warn(&p->warnings, p->plan->arena, err, "support_without_effect", NULL,
                      "layer_support[%zu]: the plan is the same without this row of "
                      "class \"%.64s\"",
                      i, spec->support[i].cls);
    }
    return code;
}
