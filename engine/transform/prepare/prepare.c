/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/prepare.h"

#include "files/model/model.h"

/* The steps in the order in which they run. NULL ends the table. */
static qdqi_step *const steps[] = {
    qdqi_step_inline,          qdqi_step_remove_pairs,
    qdqi_step_opset,           qdqi_step_uncarry,
    qdqi_step_unfuse,          qdqi_step_einsum,
    qdqi_step_compute_weights, qdqi_step_fold,
    qdqi_step_make_biases,     qdqi_step_tie,
    qdqi_step_reform,          NULL,
};

/* Runs a step. A derived model owns the model that it was derived from, except for
   the source. */
static enum qdq_code
run_step(struct qdqi_preparing *p, qdqi_step *step, struct qdq_model **current,
         struct qdq_error *err)
{
    struct qdq_model *made = NULL;
    enum qdq_code code = step(p, &made, err);
    if (code || !made)
        return code;
    made->base = *current;
    *current = made;
    p->model = made;
    return QDQ_OK;
}

/* Derives an unchanged model from the source, so that the warnings have a model to
   belong to. */
static enum qdq_code
same_model(const struct qdq_model *source, struct qdq_model **ret,
           struct qdq_error *err)
{
    const struct qdqi_edited same = {.proto = source->proto, .bulks = source->bulks};
    struct qdqi_arena *arena = qdqi_arena_new();
    enum qdq_code code = arena ? qdqi_model_derive(source, &same, &arena, ret, err)
                               : qdqi_no_memory(err);
    qdqi_arena_free(&arena);
    return code;
}

static enum qdq_code
hand_over_warnings(const struct qdqi_preparing *p, struct qdq_model *to,
                   struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < p->warnings.n && !code; i++) {
        const struct qdq_warning *w = &p->warnings.rows[i];
        code =
            qdqi_warn(&to->warnings, to->arena, err, w->code, w->node, "%s", w->detail);
    }
    return code;
}

enum qdq_code
qdq_model_prepare(const struct qdq_model *source, const struct qdq_spec *spec,
                  struct qdq_model **ret, struct qdq_error *err)
{
    struct qdqi_preparing p = {
        .model = source, .spec = spec, .arena = qdqi_arena_new()};
    struct qdq_model *current = NULL;
    enum qdq_code code = p.arena ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; steps[i] && !code; i++)
        code = run_step(&p, steps[i], &current, err);
    if (!code && !current && p.warnings.n)
        code = same_model(source, &current, err);
    if (!code && current)
        code = hand_over_warnings(&p, current, err);
    qdqi_arena_free(&p.arena);
    if (code)
        qdq_model_free(&current);
    else
        *ret = current;
    return code;
}
