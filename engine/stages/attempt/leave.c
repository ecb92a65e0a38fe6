/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/leave.h"

#include "plan/placement/target.h"

#include <string.h>

/* The entry selects the layers by name, so it has precedence over all others. */
const struct qdq_spec *
qdqi_spec_leaving(const struct qdq_spec *spec, const char *const *names, size_t n,
                  struct qdqi_arena *arena)
{
    struct qdq_spec *copy = qdqi_arena_alloc(arena, sizeof *copy);
    struct qdq_layer_entry *entries =
        qdqi_arena_array(arena, spec->n_layers + 1, sizeof *entries);
    if (!copy || !entries)
        return NULL;
    if (spec->n_layers)
        memcpy(entries, spec->layers, spec->n_layers * sizeof *entries);
    entries[spec->n_layers] = (struct qdq_layer_entry){
        .by = QDQ_BY_NAME, .names = names, .n_names = n, .is_list = true};
    *copy = *spec;
    copy->layers = entries;
    copy->n_layers = spec->n_layers + 1;
    return copy;
}

static bool
same_layer(const struct qdq_layer *x, const struct qdq_layer *y)
{
    if (x->node != y->node || x->n_inputs != y->n_inputs ||
        x->weight_input != y->weight_input || x->weight_axis != y->weight_axis)
        return false;
    for (size_t i = 0; i < x->n_inputs; i++)
        if (x->quantized_inputs[i] != y->quantized_inputs[i])
            return false;
    return true;
}

/* Returns whether the layer's plan depends on its neighbours', as is the case for
   layers that only move data. */
static bool
follows(const struct qdqi_attempt *a, const struct qdq_layer *layer)
{
    const struct qdqi_hooks *hooks = a->spec->target->hooks;
    return hooks->follows && hooks->follows(layer);
}

/* Checks that the other layers have the same plan as before. A script of a case sees
   which layers the spec names and may decide differently because of it. */
static enum qdq_code
compare_plans(const struct qdqi_attempt *a, const struct qdq_plan_view *before,
              const struct qdq_plan_view *after, const struct qdqi_map *names,
              const char *reason, struct qdq_error *err)
{
    for (size_t i = 0; i < before->n_layers && i < after->n_layers; i++) {
        const struct qdq_layer *old = &before->layers[i], *layer = &after->layers[i];
        bool same = qdqi_map_get(names, old->name)
                        ? layer->n_inputs == 0 && layer->weight_input < 0
                        : follows(a, old) || same_layer(old, layer);
        if (!same)
            return qdq_error_set(err, QDQ_CASE_FAILED, QDQ_AT_NODE, old->name,
                                 "when the layers that stay in float (%s) are named, "
                                 "the cases plan another thing for '%s'",
                                 reason, old->name);
    }
    return QDQ_OK;
}

/*
 * Copies the ranges to the new plan, whose activations are a subset of the old one's.
 * An activation that shared the range of another one keeps that range, even if it has
 * its own scale now.
 */
static enum qdq_code
carry_ranges(struct qdqi_attempt *a, const struct qdqi_attempt *from,
             const struct qdq_plan_view *after, struct qdq_error *err)
{
    const struct qdq_plan_view *before = &from->plan->view;
    const struct qdqi_planned_tensor *rows = from->plan->activations;
    struct qdqi_map *old = qdqi_map_new(a->scratch);
    size_t n = after->n_tensors;
    struct qdqi_range *ranges = qdqi_arena_array(a->arena, n, sizeof *ranges);
    const char **methods = qdqi_arena_array(a->arena, n, sizeof *methods);
    bool ok = old && ranges && methods;
    for (size_t i = 0; ok && i < before->n_tensors; i++)
        ok = qdqi_map_put(old, before->tensors[i], &from->ranges[rows[i].leader]);
    if (!ok)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const struct qdqi_range *range = qdqi_map_get(old, after->tensors[i]);
        if (!range)
            return qdq_error_set(err, QDQ_NOT_OBSERVED, QDQ_AT_TENSOR,
                                 after->tensors[i],
                                 "with layers left in float, tensor '%s' is to be "
                                 "quantized, which was not calibrated",
                                 after->tensors[i]);
        ranges[i] = *range;
        methods[i] = from->methods[range - from->ranges];
    }
    a->ranges = ranges;
    a->methods = methods;
    return QDQ_OK;
}

/* Sets the reason of the layers that stay in float. */
static void
set_reasons(const struct qdq_plan_view *plan, const struct qdqi_map *names,
            const char *reason)
{
    for (size_t i = 0; i < plan->n_layers; i++)
        /* the const is cast away: the layer is in the plan's own memory */
        if (qdqi_map_get(names, plan->layers[i].name))
            ((struct qdq_layer *)(uintptr_t)&plan->layers[i])->reason = reason;
}

/* Plans the attempt with the ranges of another one, or of its own. */
static enum qdq_code
plan_from(struct qdqi_attempt *a, const struct qdqi_attempt *from,
          const struct qdqi_left *left, const struct qdqi_map *names,
          struct qdq_error *err)
{
    struct qdq_plan *after = NULL;
    enum qdq_code code = qdq_plan_make(a->context->engine->catalog, a->model,
                                       a->planned_by, &after, err);
    if (!code && left->alone)
        code =
            compare_plans(a, &from->plan->view, &after->view, names, left->reason, err);
    if (!code)
        code = carry_ranges(a, from, &after->view, err);
    if (code) {
        qdq_plan_free(&after);
        return code;
    }
    set_reasons(&after->view, names, left->reason);
    qdq_plan_free(&a->plan);
    a->plan = after;
    return QDQ_OK;
}

/* --- layers that are left with others ------------------------------------------------ */

static bool
is_bare(const struct qdq_layer *layer)
{
    return layer->n_inputs == 0 && layer->weight_input < 0;
}

/* Returns whether the layer reads a pair on a tensor that has none in the plan before. */
static bool
reads_new_pair(const struct qdq_plan_view *after, const struct qdq_layer *layer,
               const struct qdqi_map *known)
{
    for (size_t i = 0; i < layer->n_inputs; i++)
        if (!qdqi_map_get(known, after->tensors[layer->input_rows[i]]))
            return true;
    return false;
}

/* Adds to the names the layers that have no pairs and would get some now, as the bias of a MatMul that is
   left. To be left, too, is what keeps their plan. Returns false when out of memory. */
static bool
add_bare(struct qdqi_attempt *a, const struct qdq_plan_view *before,
         const struct qdq_plan_view *after, struct qdqi_map *names,
         struct qdqi_left *left)
{
    struct qdqi_map *known = qdqi_map_new(a->scratch);
    const char **all =
        qdqi_arena_array(a->arena, left->n + before->n_layers + 1, sizeof *all);
    bool ok = known && all;
    for (size_t i = 0; ok && i < before->n_tensors; i++)
        ok = qdqi_map_put(known, before->tensors[i], known);
    for (size_t i = 0; ok && i < left->n; i++)
        all[i] = left->names[i];
    for (size_t i = 0; ok && i < before->n_layers && i < after->n_layers; i++) {
        const struct qdq_layer *old = &before->layers[i], *layer = &after->layers[i];
        if (qdqi_map_get(names, old->name) || !is_bare(old) || is_bare(layer) ||
            (follows(a, old) && !reads_new_pair(after, layer, known)))
            continue;
        const char *name = qdqi_arena_strdup(a->arena, old->name);
        all[left->n++] = name;
        ok = name && qdqi_map_put(names, name, a);
    }
    left->names = all;
    return ok;
}

/* Adds what is to be left with the layers until there is no more of it. */
static enum qdq_code
complete(struct qdqi_attempt *a, const struct qdq_plan_view *before,
         struct qdqi_map *names, struct qdqi_left *left, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t n = 0; !code && left->alone && n < left->n;) {
        struct qdq_plan *after = NULL;
        n = left->n;
        code = qdqi_plan_leaving(a, left->names, n, a->arena, &after, err);
        if (!code && !add_bare(a, before, &after->view, names, left))
            code = qdqi_no_memory(err);
        qdq_plan_free(&after);
    }
    return code;
}

enum qdq_code
qdqi_attempt_leave(struct qdqi_attempt *a, const struct qdqi_left *given,
                   struct qdq_error *err)
{
    struct qdqi_map *names = qdqi_map_new(a->scratch);
    const struct qdqi_attempt *from = a->plan ? a : a->base;
    struct qdqi_left left = *given;
    bool ok = names;
    for (size_t i = 0; ok && i < left.n; i++)
        ok = qdqi_map_put(names, left.names[i], a);
    enum qdq_code code =
        ok ? complete(a, &from->plan->view, names, &left, err) : qdqi_no_memory(err);
    if (code)
        return code;
    const struct qdq_spec *spec =
        qdqi_spec_leaving(a->planned_by, left.names, left.n, a->arena);
    if (!spec)
        return qdqi_no_memory(err);
    a->planned_by = spec;
    return plan_from(a, from, &left, names, err);
}

enum qdq_code
qdqi_attempt_replan(struct qdqi_attempt *a, const struct qdq_spec *spec,
                    struct qdq_error *err)
{
    static const struct qdqi_left none;
    const struct qdqi_map *names = qdqi_map_new(a->scratch);
    struct qdq_spec *own = qdqi_arena_alloc(a->arena, sizeof *own);
    if (!names || !own)
        return qdqi_no_memory(err);
    *own = *a->spec;
    own->rules_on = spec->rules_on;
    own->rules_off = spec->rules_off;
    a->spec = own;
    a->planned_by = spec;
    return plan_from(a, a->plan ? a : a->base, &none, names, err);
}

enum qdq_code
qdqi_plan_leaving(const struct qdqi_attempt *a, const char *const *names, size_t n,
                  struct qdqi_arena *arena, struct qdq_plan **ret,
                  struct qdq_error *err)
{
    const struct qdq_spec *spec = qdqi_spec_leaving(a->planned_by, names, n, arena);
    return spec ? qdq_plan_make(a->context->engine->catalog, a->model, spec, ret, err)
                : qdqi_no_memory(err);
}

bool
qdqi_plan_has_ranges(const struct qdq_plan_view *whole,
                     const struct qdq_plan_view *part, struct qdqi_map *known)
{
    for (size_t i = 0; i < whole->n_tensors; i++)
        if (!qdqi_map_put(known, whole->tensors[i], known))
            return false;
    for (size_t i = 0; i < part->n_tensors; i++)
        if (!qdqi_map_get(known, part->tensors[i]))
            return false;
    return true;
}
