/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/loadable.h"

#include "ground/base/warnings.h"
#include "plan/placement/formats.h"
#include "qdq/prepare.h"

#include <string.h>

/* Makes the spec with the entry behind its own. */
static bool
add_entry(const struct qdq_spec *from, const struct qdq_layer_entry *entry,
          struct qdqi_arena *arena, struct qdq_spec *to)
{
    struct qdq_layer_entry *entries =
        qdqi_arena_array(arena, from->n_layers + 1, sizeof *entries);
    if (!entries)
        return false;
    if (from->n_layers)
        memcpy(entries, from->layers, from->n_layers * sizeof *entries);
    entries[from->n_layers] = *entry;
    *to = *from;
    to->layers = entries;
    to->n_layers++;
    return true;
}

/* Returns the layer of a name, which may be at the same place in both plans. */
static const struct qdq_layer *
find_layer(const struct qdq_plan_view *plan, size_t at, const char *name)
{
    if (at < plan->n_layers && strcmp(plan->layers[at].name, name) == 0)
        return &plan->layers[at];
    for (size_t i = 0; i < plan->n_layers; i++)
        if (strcmp(plan->layers[i].name, name) == 0)
            return &plan->layers[i];
    return NULL;
}

static const char *
refusal_of(const struct qdq_layer *layer)
{
    if (!layer)
        return "no layer has it";
    return layer->weight_input < 0 ? layer->reason : layer->refused;
}

/* Notes what the plan says of the layers that have weights in the attempt's. */
static enum qdq_code
read_plan(const struct qdqi_attempt *a, const struct qdq_plan *plan,
          struct qdqi_arena *arena, const char **ret_why, struct qdq_error *err)
{
    const struct qdq_plan_view *before = &a->plan->view, *after = qdq_plan_view(plan);
    for (size_t i = 0; i < before->n_layers; i++) {
        const struct qdq_layer *layer = &before->layers[i];
        const char *why = layer->weight_input < 0
                              ? NULL
                              : refusal_of(find_layer(after, i, layer->name));
        if (!why || ret_why[layer->weight_row])
            continue;
        if (!(ret_why[layer->weight_row] = qdqi_arena_strdup(arena, why)))
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

/* Makes the plan, of a model with the opset that the formats need. */
static enum qdq_code
make_plan(const struct qdqi_attempt *a, const struct qdq_spec *spec,
          struct qdq_model **ret_prepared, struct qdq_plan **ret, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    if (qdqi_formats_opset(spec) > qdqi_model_opset(a->model->proto))
        code = qdq_model_prepare(a->context->original, spec, ret_prepared, err);
    return code ? code
                : qdq_plan_make(a->context->engine->catalog,
                                *ret_prepared ? *ret_prepared : a->model, spec, ret,
                                err);
}

enum qdq_code
qdqi_find_refusals(const struct qdqi_attempt *a, const struct qdq_layer_entry *entry,
                   struct qdqi_arena *arena, const char **ret_why,
                   struct qdq_error *err)
{
    struct qdq_model *prepared = NULL;
    struct qdq_plan *plan = NULL;
    struct qdq_error why = {0};
    struct qdq_spec spec;
    if (!add_entry(a->spec, entry, arena, &spec))
        return qdqi_no_memory(err);
    enum qdq_code code = make_plan(a, &spec, &prepared, &plan, &why);
    if (!code)
        code = read_plan(a, plan, arena, ret_why, &why);
    qdq_plan_free(&plan);
    qdq_model_free(&prepared);
    if (code == QDQ_NO_MEMORY)
        return qdqi_no_memory(err);
    const char *text = code ? qdqi_arena_strdup(arena, why.text) : NULL;
    for (size_t i = 0; text && i < a->plan->view.n_weights; i++)
        ret_why[i] = text;
    return code && !text ? qdqi_no_memory(err) : QDQ_OK;
}

enum qdq_code
qdqi_warn_refusals(const struct qdqi_attempt *a, const char *name,
                   const char *const *layers, const char *const *why, size_t n,
                   struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < n && !code; i++) {
        struct qdqi_names names = {0};
        bool is_first = why[i] != NULL;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = !why[k] || strcmp(why[k], why[i]) != 0;
        for (size_t k = i; k < n && is_first; k++)
            if (why[k] && strcmp(why[k], why[i]) == 0)
                qdqi_names_add(&names, layers[k]);
        if (is_first)
            code = qdqi_attempt_warn(
                a, err, "format_left_out", names.first,
                "%zu layer%s (%s) cannot have %s, which recipe.formats names: %s",
                names.n, names.n == 1 ? "" : "s", names.text, name, why[i]);
    }
    return code;
}
