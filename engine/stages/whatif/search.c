/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.search: what-ifs show which layers have to stay in float. Then the plan is made
 * again with one more entry that names them, exactly as it will be made when the frozen
 * spec is run.
 */
#include "config.h"
#include "stages/whatif/whatif.h"

#include "stages/evaluate/deployed.h"
#include "stages/attempt/roundings.h"
#include "stages/candidates/candidates.h"
#include "stages/attempt/leave.h"
#include "stages/scale/scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- scores --------------------------------------------------------------- */

struct search {
    struct qdqi_attempt *attempt;
    struct qdqi_result *result;
    struct qdqi_whatif *w;
    struct qdqi_replay *replay;
    int64_t samples;
    /* Judges choices as deployed; its comparer is NULL where the target's kernels do not run here
       and no task is a goal. */
    struct qdqi_candidates deployed;
    struct qdqi_score
        last;         /* of the choice that met the goal last, or was judged last */
    double task_drop; /* likewise */
    bool confirmed;   /* a choice met the goal */
    bool was_time_up; /* the time was up */
};

static enum qdq_code
score(void *arg, const bool *is_float, struct qdqi_score *ret, struct qdq_error *err)
{
    struct search *s = arg;
    enum qdq_code code = qdqi_whatif_choose(s->w, is_float, err);
    if (!code)
        code = qdqi_whatif_run(s->w, s->replay, s->samples, false, ret, err);
    if (!code && isnan(ret->top1_agreement) &&
        !isnan(s->attempt->spec->search.min_top1_agreement))
        return qdq_error_set(
            err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/search/min_top1_agreement",
            "no floating output has rows of two or more, whose largest "
            "could agree");
    return code;
}

/* Judges a choice that reaches the goal as it would be deployed. */
static enum qdq_code
confirm(void *arg, const bool *is_float, bool *ret, struct qdq_error *err)
{
    struct search *s = arg;
    const struct qdq_search *goal = &s->attempt->spec->search;
    struct qdqi_grade grade;
    enum qdq_code code = qdqi_candidates_score(&s->deployed, is_float, &grade, err);
    if (code)
        return code;
    const struct qdqi_score score = {grade.output_db,
                                     qdqi_comparer_agreement(s->deployed.comparer)};
    *ret = !(score.sqnr_db < goal->min_sqnr_db) &&
           !(score.top1_agreement < goal->min_top1_agreement) &&
           !(grade.task_drop > goal->max_task_drop);
    if (*ret || !s->confirmed)
        s->task_drop = grade.task_drop;
    if (*ret || !s->confirmed)
        s->last = score;
    s->confirmed = s->confirmed || *ret;
    return QDQ_OK;
}

/* Opens the comparer of choices as deployed, by the samples of the search. */
static enum qdq_code
open_comparer(struct search *s, struct qdq_error *err)
{
    struct qdqi_feed_options options = qdqi_replay_options(s->replay);
    struct qdqi_candidates *d = &s->deployed;
    options.max_samples = s->samples;
    *d = (struct qdqi_candidates){.attempt = s->attempt,
                                  .result = s->result,
                                  .reason = "search",
                                  .goal_db = -INFINITY,
                                  .min_top1 = NAN,
                                  .max_drop = s->attempt->spec->search.max_task_drop,
                                  .max_size = NAN,
                                  .max_latency = NAN};
    s->last = (struct qdqi_score){NAN, NAN};
    s->task_drop = NAN;
    if (!isnan(d->max_drop))
        d->task = s->result->task;
    if (!d->task && !qdqi_deployed_runs(s->attempt->context))
        return QDQ_OK;
    d->n = qdqi_whatif_layers(s->w);
    d->names = qdqi_arena_array(s->attempt->scratch, d->n + 1, sizeof *d->names);
    if (!d->names)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < d->n; i++)
        d->names[i] = qdqi_whatif_layer(s->w, i)->name;
    qdqi_roundings_begin(s->attempt);
    return qdqi_comparer_open(s->attempt, &options, QDQ_N_STAGES, &d->comparer, err);
}

static bool
is_time_up(void *arg)
{
    struct search *s = arg;
    s->was_time_up =
        s->was_time_up ||
        qdqi_time_is_up(s->attempt->context, s->attempt->spec->search.max_seconds);
    return s->was_time_up;
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
        qdqi_arena_strdup(s->result->arena, qdqi_whatif_layer(s->w, layer)->name);
    *ok = *ok && name;
    return name;
}

/* Fills in the report of the search. It copies the names of the layers because the
   plan that owns them is replaced. */
static enum qdq_code
report(const struct search *s, const struct qdqi_greedy_search *h,
       struct qdq_search_report **ret, struct qdq_error *err)
{
    struct qdqi_arena *arena = s->result->arena;
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
                                    .deployed_sqnr_db = s->last.sqnr_db,
                                    .deployed_top1 = s->last.top1_agreement,
                                    .task_drop = s->task_drop,
                                    .n_layers = n,
                                    .n_steps = h->n_steps,
                                    .layers = names,
                                    .steps = steps};
    s->result->report->search = *ret = r;
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
    const struct qdq_search *goal = &s->attempt->spec->search;
    const struct qdq_search_step *last = &r->steps[r->n_steps - 1];
    char text[160] = "";
    if (r->met)
        return QDQ_OK;
    say_bound(text, sizeof text, "sqnr_db", goal->min_sqnr_db, last->sqnr_db);
    say_bound(text, sizeof text, "top1_agreement", goal->min_top1_agreement,
              last->top1_agreement);
    if (!*text && !isnan(s->last.sqnr_db)) {
        say_bound(text, sizeof text, "sqnr_db as deployed", goal->min_sqnr_db,
                  s->last.sqnr_db);
        say_bound(text, sizeof text, "top1_agreement as deployed",
                  goal->min_top1_agreement, s->last.top1_agreement);
    }
    say_bound(text, sizeof text, "the drop of the task", -goal->max_task_drop,
              -s->task_drop);
    return qdqi_attempt_warn(
        s->attempt, err, "search_goal_missed", NULL,
        "the goal of the search was not reached with %lld layers in "
        "float: %s",
        (long long)r->n_layers, text);
}

enum qdq_code
qdqi_search(struct qdqi_attempt *a, struct qdqi_whatif **whatif,
            struct qdqi_result *result, struct qdq_error *err)
{
    const struct qdq_spec *spec = a->spec;
    struct search s = {.attempt = a, .result = result, .samples = spec->search.samples};
    struct qdq_search_report *found = NULL;
    enum qdq_code code;
    if (!qdq_spec_searches(spec))
        return QDQ_OK;
    if ((code = qdqi_whatif_get(whatif, a, err)))
        return code;
    s.w = *whatif;
    qdqi_whatif_begin(s.w, QDQ_STAGE_SEARCH, 0);
    if ((code = qdqi_replay_get(s.w, "/search", &s.replay, err)))
        return code;
    if (s.samples < 1 || s.samples > qdqi_replay_samples(s.replay))
        s.samples = qdqi_replay_samples(s.replay);
    if ((code = open_comparer(&s, err)))
        return code;
    struct qdqi_greedy_search greedy = {.n = qdqi_whatif_layers(s.w),
                                        .goal = &spec->search,
                                        .arena = a->scratch,
                                        .arg = &s,
                                        .score = score,
                                        .confirm = s.deployed.comparer ? confirm : NULL,
                                        .is_time_up = is_time_up,
                                        .expect = expect};
    code = qdqi_greedy_search(&greedy, err);
    if (!code && s.deployed.comparer)
        code = qdqi_comparer_conclude(s.deployed.comparer, a, err);
    qdqi_comparer_close(&s.deployed.comparer);
    if (!code && s.was_time_up)
        code = qdqi_warn_time_is_up(a, spec->search.max_seconds, "/search/max_seconds",
                                    err);
    if (code || (code = report(&s, &greedy, &found, err)) ||
        (code = warn_missed(&s, found, err)) || found->n_layers == 0)
        return code;
    qdqi_whatif_close(whatif, result); /* they refer to the plan that is now replaced */
    const struct qdqi_left left = {found->layers, found->n_layers, "search", true};
    code = qdqi_attempt_leave(a, &left, err);
    return code ? code : qdqi_choose_scales(a, err);
}
