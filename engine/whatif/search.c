/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.search: what-ifs show which layers have to stay in float. Then the plan is made
 * again with one more entry that names them, exactly as it will be made when the frozen
 * spec is run.
 */
#include "config.h"
#include "whatif/search.h"

#include "replan/replan.h"
#include "scale/scale.h"
#include "whatif/whatif.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool
qdqi_search_asked(const struct qdq_spec *spec)
{
    return !isnan(spec->search.min_sqnr_db) || !isnan(spec->search.min_top1_agreement);
}

/* --- scores --------------------------------------------------------------- */

struct search {
    struct qdqi_job *job;
    struct qdqi_whatif *w;
    struct qdqi_trials *trials;
    int64_t samples;
};

static enum qdq_code
score(void *arg, const bool *is_float, struct qdqi_score *ret, struct qdq_error *err)
{
    struct search *s = arg;
    for (size_t i = 0; i < qdqi_whatif_layers(s->w); i++)
        qdqi_whatif_switch(s->w, i, !is_float[i]);
    enum qdq_code code = qdqi_whatif_run(s->w, s->trials, s->samples, false, ret, err);
    if (!code && isnan(ret->top1_agreement) &&
        !isnan(s->job->work->spec->search.min_top1_agreement))
        return qdq_error_set(
            err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/search/min_top1_agreement",
            "no floating output has rows of two or more, whose largest "
            "could agree");
    return code;
}

static void
expect(void *arg, size_t scores)
{
    const struct search *s = arg;
    qdqi_whatif_expect(s->w, scores * (uint64_t)s->samples);
}

/* --- the report ----------------------------------------------------------- */

static const char *
name_of(const struct search *s, size_t layer, bool *ok)
{
    if (layer == SIZE_MAX)
        return NULL;
    const char *name =
        qdqi_arena_strdup(s->job->arena, qdqi_whatif_layer(s->w, layer)->name);
    *ok = *ok && name;
    return name;
}

/* Fills in the report of the search. It copies the names of the layers because the
   plan that owns them is replaced. */
static enum qdq_code
report(const struct search *s, const struct qdqi_greedy_search *h,
       struct qdq_search_report **ret, struct qdq_error *err)
{
    struct qdqi_arena *arena = s->job->arena;
    struct qdq_search_report *r = qdqi_arena_alloc(arena, sizeof *r);
    const char **names = qdqi_arena_array(arena, h->n_float, sizeof *names);
    struct qdq_search_step *steps = qdqi_arena_array(arena, h->n_steps, sizeof *steps);
    bool ok = r && names && steps;
    size_t n = 0;
    for (size_t i = 0; ok && i < h->n; i++)
        if (h->is_float[i])
            names[n++] = name_of(s, i, &ok);
    for (size_t i = 0; ok && i < h->n_steps; i++)
        steps[i] = (struct qdq_search_step){
            h->steps[i].n_float, name_of(s, h->steps[i].layer, &ok),
            h->steps[i].score.sqnr_db, h->steps[i].score.top1_agreement};
    if (!ok)
        return qdqi_no_memory(err);
    *r = (struct qdq_search_report){.samples = s->samples,
                                    .met = h->met,
                                    .n_layers = n,
                                    .n_steps = h->n_steps,
                                    .layers = names,
                                    .steps = steps};
    s->job->report->view.search = *ret = r;
    return QDQ_OK;
}

static void
say_bound(char *text, size_t size, const char *name, double wanted, double is)
{
    size_t len = strlen(text);
    if (!isnan(wanted) && !(is >= wanted) && len < size)
        snprintf(text + len, size - len, "%s%s %.4g, not %.4g", *text ? ", " : "", name,
                 is, wanted);
}

static enum qdq_code
warn_missed(const struct search *s, const struct qdq_search_report *r,
            struct qdq_error *err)
{
    const struct qdq_search *goal = &s->job->work->spec->search;
    const struct qdq_search_step *last = &r->steps[r->n_steps - 1];
    char text[160] = "";
    if (r->met)
        return QDQ_OK;
    say_bound(text, sizeof text, "sqnr_db", goal->min_sqnr_db, last->sqnr_db);
    say_bound(text, sizeof text, "top1_agreement", goal->min_top1_agreement,
              last->top1_agreement);
    return qdqi_warn(&s->job->warnings, s->job->arena, err, "search_goal_missed", NULL,
                     "the goal of the search was not reached with %lld layers in "
                     "float: %s",
                     (long long)goal->max_float_layers, text);
}

enum qdq_code
qdqi_search(struct qdqi_job *job, struct qdqi_scales *scales, struct qdq_error *err)
{
    const struct qdq_spec *spec = job->work->spec;
    struct search s = {.job = job, .samples = spec->search.samples};
    struct qdq_search_report *found = NULL;
    enum qdq_code code;
    if (!qdqi_search_asked(spec))
        return QDQ_OK;
    if ((code = qdqi_whatif_get(job, scales, &s.w, err)))
        return code;
    qdqi_whatif_begin(s.w, QDQ_STAGE_SEARCH, (uint64_t)s.samples);
    if ((code = qdqi_trials_get(s.w, "/search", &s.trials, err)))
        return code;
    if (s.samples < 1 || s.samples > qdqi_trials_samples(s.trials))
        s.samples = qdqi_trials_samples(s.trials);
    struct qdqi_greedy_search greedy = {.n = qdqi_whatif_layers(s.w),
                                        .goal = &spec->search,
                                        .arena = job->scratch,
                                        .arg = &s,
                                        .score = score,
                                        .expect = expect};
    if ((code = qdqi_greedy_search(&greedy, err)) ||
        (code = report(&s, &greedy, &found, err)) ||
        (code = warn_missed(&s, found, err)) || found->n_layers == 0)
        return code;
    qdqi_whatif_close(job); /* the what-ifs refer to the plan that is now replaced */
    code = qdqi_plan_without(job, found->layers, found->n_layers, "search", err);
    return code ? code : qdqi_choose_scales(job, scales, err);
}
