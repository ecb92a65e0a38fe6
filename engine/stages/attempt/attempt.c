/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/attempt.h"

#include "plan/placement/kept_weights.h"
#include "plan/placement/moment_memory.h"
#include "stages/attempt/memory.h"
#include "stages/attempt/roundings.h"
#include "transform/equalize/equalize.h"

#include <stdlib.h>
#include <string.h>

/* --- making and freeing ------------------------------------------------------ */

enum qdq_code
qdqi_attempt_new(const struct qdqi_context *context, const struct qdq_spec *spec,
                 struct qdqi_attempt **ret, struct qdq_error *err)
{
    struct qdqi_attempt *a = calloc(1, sizeof *a);
    if (!a)
        return qdqi_no_memory(err);
    *a = (struct qdqi_attempt){.context = context,
                               .spec = spec,
                               .planned_by = spec,
                               .arena = qdqi_arena_new(),
                               .scratch = qdqi_arena_new(),
                               .model = context->original,
                               .observations = -1};
    if (a->arena && a->scratch)
        a->warnings = qdqi_arena_alloc(a->arena, sizeof *a->warnings);
    if (!a->warnings) {
        qdqi_attempt_free(&a);
        return qdqi_no_memory(err);
    }
    a->warnings->arena = a->arena;
    *ret = a;
    return QDQ_OK;
}

enum qdq_code
qdqi_attempt_beside(const struct qdqi_attempt *other, const struct qdq_spec *spec,
                    int observations, struct qdqi_attempt **ret, struct qdq_error *err)
{
    enum qdq_code code = qdqi_attempt_new(other->context, spec, ret, err);
    if (code)
        return code;
    (*ret)->is_trial = true;
    (*ret)->observations = observations;
    (*ret)->batch = other->batch;
    (*ret)->calibrated.run_seconds = other->calibrated.run_seconds;
    (*ret)->warnings->stage = QDQ_STAGE_EQUALIZE;
    return QDQ_OK;
}

enum qdq_code
qdqi_attempt_derive(const struct qdqi_attempt *base, struct qdqi_attempt **ret,
                    struct qdq_error *err)
{
    struct qdqi_attempt *a;
    enum qdq_code code =
        qdqi_attempt_beside(base, base->spec, base->observations, &a, err);
    if (code)
        return code;
    a->base = base;
    a->planned_by = base->planned_by;
    a->prepared = base->prepared;
    a->equalized = base->equalized;
    a->smoothed = base->smoothed;
    a->model = base->model;
    a->fixed = base->fixed;
    a->calibrated = base->calibrated;
    a->moments = base->moments;
    a->float16_constants = base->float16_constants;
    *ret = a;
    return QDQ_OK;
}

enum qdq_code
qdqi_attempt_adopt(struct qdqi_attempt **attempt, struct qdqi_attempt **trial,
                   struct qdq_error *err)
{
    struct qdqi_attempt *old = *attempt, *a = *trial;
    enum qdq_code code = qdqi_stage_warnings_complete(a->warnings, old->warnings, err);
    if (code)
        return code;
    a->is_trial = false;
    a->observations = old->observations;
    a->effort.bytes += old->effort.bytes;
    if (a->effort.threads < old->effort.threads)
        a->effort.threads = old->effort.threads;
    *attempt = a;
    *trial = NULL;
    qdqi_attempt_free(&old);
    return QDQ_OK;
}

void
qdqi_attempt_forget_moments(struct qdqi_attempt *a)
{
    struct qdqi_layer_moments *m = a->moments && !a->base ? a->moments->first : NULL;
    for (; m; m = m->next) {
        for (size_t g = 0; m->moments && !m->owner && g < m->groups; g++)
            qdqi_moment_fini(&m->moments[g]);
        if (!m->owner)
            free(m->moments);
        qdqi_roundings_free(m);
    }
    a->moments = NULL;
}

void
qdqi_attempt_finish(struct qdqi_attempt *a)
{
    qdqi_attempt_forget_moments(a);
    a->context = NULL;
    qdqi_arena_free(&a->scratch);
}

void
qdqi_attempt_free(struct qdqi_attempt **attempt)
{
    struct qdqi_attempt *a = *attempt;
    if (!a)
        return;
    qdqi_attempt_finish(a);
    qdq_plan_free(&a->plan);
    if (!a->base) {
        qdq_model_free(&a->smoothed);
        qdq_model_free(&a->equalized);
        qdq_model_free(&a->prepared);
    }
    qdqi_arena_free(&a->arena);
    free(a);
    *attempt = NULL;
}

/* --- warnings and progress --------------------------------------------------- */

enum qdq_code
qdqi_attempt_warn(const struct qdqi_attempt *a, struct qdq_error *err, const char *code,
                  const char *node, const char *fmt, ...)
{
    char text[512];
    const struct qdq_warning warning = {.code = code, .detail = text, .node = node};
    va_list args;
    va_start(args, fmt);
    qdq_text_vprint(text, sizeof text, fmt, args);
    va_end(args);
    return qdqi_stage_warnings_add(a->warnings, &warning, err);
}

enum qdq_code
qdqi_attempt_add_warnings(const struct qdqi_attempt *a, const struct qdq_warning *rows,
                          size_t n, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < n; i++)
        code = qdqi_stage_warnings_add(a->warnings, &rows[i], err);
    return code;
}

enum qdq_code
qdqi_warn_time_is_up(const struct qdqi_attempt *a, int64_t seconds, const char *pointer,
                     struct qdq_error *err)
{
    return qdqi_attempt_warn(
        a, err, "max_seconds_reached", NULL,
        "%s: this ended after %lld s with the best that was found so far", pointer,
        (long long)seconds);
}

enum qdq_code
qdqi_attempt_progress(const struct qdqi_attempt *a, enum qdq_stage stage, uint64_t done,
                      uint64_t total, struct qdq_error *err)
{
    return a->is_trial ? qdqi_context_still_wanted(a->context, err)
                       : qdqi_context_progress(a->context, stage, done, total, err);
}

/* --- models and plan --------------------------------------------------------- */

enum qdq_code
qdqi_attempt_equalize(struct qdqi_attempt *a, struct qdq_error *err)
{
    if (!a->spec->equalize)
        return QDQ_OK;
    enum qdq_code code = qdqi_equalize(a->model, a->arena, &a->rows.equalization,
                                       &a->rows.n_equalization, &a->equalized, err);
    if (code)
        return code;
    if (a->equalized) {
        a->model = a->equalized;
        return QDQ_OK;
    }
    return qdqi_attempt_warn(a, err, "nothing_equalized", NULL,
                             "no two layers of the model could be equalized with each "
                             "other");
}

enum qdq_code
qdqi_attempt_plan(struct qdqi_attempt *a, struct qdq_error *err)
{
    const bool has_data = a->context->work->dataset >= 0;
    enum qdq_code code =
        qdq_plan_make(a->context->engine->catalog, a->model, a->spec, &a->plan, err);
    for (size_t i = 0; !code && i < a->plan->view.n_warnings; i++) {
        const struct qdq_warning *w = &a->plan->view.warnings[i];
        /* One is about a job without data, which this may not be, and one about weights that later
           stages may leave in float (qdqi_report_stored_twice()). */
        if ((!has_data || strcmp(w->code, QDQI_NEEDS_DATA) != 0) &&
            strcmp(w->code, QDQI_STORED_TWICE) != 0)
            code = qdqi_stage_warnings_add(a->warnings, w, err);
    }
    return code ? code : qdqi_attempt_check_memory(a, err);
}

struct qdqi_map *
qdqi_attempt_index_observers(const struct qdqi_attempt *a)
{
    const struct qdqi_observers *o = a->calibrated.observers;
    struct qdqi_map *map = qdqi_map_new(a->scratch);
    bool ok = map;
    for (size_t i = 0; ok && o && i < o->n; i++)
        ok = qdqi_map_put(map, o->rows[i].tensor, &o->rows[i]);
    return ok ? map : NULL;
}

bool
qdqi_attempt_runs_fast(const struct qdqi_attempt *a)
{
    static const double fast = 0.002;
    return a->calibrated.run_seconds > 0 && a->calibrated.run_seconds < fast;
}

bool
qdqi_attempt_is_large(const struct qdqi_attempt *a)
{
    static const uint64_t large = (uint64_t)256 << 20;
    return !a->context->dev && qdqi_model_bytes(a->model) >= large;
}

bool
qdqi_moments_wanted(const struct qdqi_attempt *a)
{
    return qdqi_plan_has_moments(a->spec, a->plan);
}
