/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/advise.h"

#include "plan/gates/gates.h"
#include "plan/gates/judged.h"
#include "plan/gates/verdict.h"
#include "stages/evaluate/deployed.h"
#include "stages/candidates/candidates.h"
#include "stages/recipe/likely_causes.h"
#include "stages/recipe/groups.h"
#include "stages/recipe/mend.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    TOLD = 8,    /* layers that the warning explains */
    ROOM = 4096, /* bytes of the warning without the spec's names */
    ROUNDS = 3,
    MENDING =
        2, /* so many times the samples of the search calibrate and judge for a change */
    A_NAME = 6, /* bytes of a character in JSON, at most */
};

/* The advice ends after so much of the time that the rest of the job took. Short jobs get so many
   seconds, or as many times these as other work makes them last. A third of the time is for what
   costs nothing when the model runs. */
static const double time_share = 0.8, least_seconds = 2, most_load = 15;

/* The least figures of the verdict `fair`, and what a few samples may differ by from all. */
static const double fair_db = 15, fair_top1 = 0.95, margin_db = 0.5;

/* A round that failed on all samples is followed by one that asks for so much more. */
static const double more_db = 4;

/* --- time ------------------------------------------------------------------ */

/* The trials of the advice. Each of them asks before it whether there is time. */
struct trials {
    struct qdqi_candidates *candidates;
    double end;     /* by qdqi_seconds_now() */
    double asked;   /* when a trial asked last, or the advice began */
    double first;   /* seconds until the second one: one choice was judged */
    double longest; /* seconds between two of these */
    bool are_late;  /* one more would not have ended in time */
};

/* Returns whether there is no time for one more trial, which may take as long as the longest. */
static bool
is_time_up(void *arg)
{
    struct trials *t = arg;
    const double now = qdqi_seconds_now();
    t->longest = fmax(t->longest, now - t->asked);
    t->first = t->first > 0 ? t->first : now - t->asked;
    t->asked = now;
    t->are_late = t->are_late || now + t->longest > t->end;
    return t->are_late;
}

static struct trials
start_trials(struct qdqi_candidates *c)
{
    const struct qdqi_account *account = c->attempt->context->account;
    const double rest = account->began - account->job_began;
    const double used = qdqi_seconds_of_process() - account->processor_then;
    /* Other work of the machine makes short jobs last, too. */
    const double load = fmin(fmax(1, rest / fmax(used, 1e-3)), most_load);
    const double least = least_seconds * load;
    const double seconds = fmax(time_share * rest, least);
    return (struct trials){
        .candidates = c, .end = account->began + seconds, .asked = qdqi_seconds_now()};
}

static enum qdq_code
score(void *arg, const bool *is_float, struct qdqi_grade *ret, struct qdq_error *err)
{
    struct trials *t = arg;
    return qdqi_candidates_score(t->candidates, is_float, ret, err);
}

/* --- text ------------------------------------------------------------------ */

struct text {
    char *to;
    size_t n, size;
};

QDQ_PRINTF(2, 3)
static void
add(struct text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->to + t->n, t->size - t->n, fmt, args);
    va_end(args);
    t->n += n < 0 ? 0 : (size_t)n < t->size - t->n ? (size_t)n : t->size - t->n - 1;
}

/* Adds an SQNR. */
static void
add_db(struct text *t, double db)
{
    if (isnan(db))
        add(t, "an element that is not finite, and is finite in float");
    else if (isinf(db))
        add(t, db > 0 ? "no error" : "no figure");
    else
        add(t, "%.1f dB", db);
}

/* Adds a name as JSON writes it. */
static void
add_quoted(struct text *t, const char *name)
{
    add(t, "\"");
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ')
            add(t, "\\u%04x", (unsigned)*c);
        else
            add(t, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    add(t, "\"");
}

/* Adds the spec that leaves the layers in float, ready to paste. */
static void
add_spec(struct text *t, const char *const *names, size_t n)
{
    add(t, "{\"layers\": [{\"name\": [");
    for (size_t i = 0; i < n; i++) {
        add(t, i ? ", " : "");
        add_quoted(t, names[i]);
    }
    add(t, "], \"quantize_input\": false, \"quantize_weight\": false}]}");
}

static void
add_faults(const struct qdqi_candidates *c, struct text *t, const char *const *names,
           size_t n)
{
    char why[160];
    for (size_t i = 0; i < n && i < TOLD; i++)
        add(t, "%s'%.60s' (%s)", i ? ", " : "", names[i],
            qdqi_likely_cause(c->attempt, c->result->report, names[i], why,
                              sizeof why));
    if (n > TOLD)
        add(t, " and %zu more", n - TOLD);
}

/* --- the goal -------------------------------------------------------------- */

/* Chooses the least figures that mend the result: those of `fair`, and of all bounds of
   outputs. Cosine and largest error are turned into the SQNR that goes with them. */
static void
choose_goal(const struct qdq_report *r, double now_db, struct qdqi_candidates *c)
{
    c->goal_db = fair_db;
    c->min_top1 = fair_top1;
    for (size_t i = 0; i < r->n_gates; i++) {
        const struct qdq_gate_report *g = &r->gates[i];
        double db = NAN;
        if (g->kind == QDQ_FIGURE_SQNR_DB)
            db = g->bound;
        else if (g->kind == QDQ_FIGURE_TOP1_AGREEMENT)
            c->min_top1 = fmax(c->min_top1, g->bound);
        else if (g->output && !g->met && g->kind == QDQ_FIGURE_COSINE)
            db = now_db + 10 * log10((1 - g->value) / (1 - g->bound));
        else if (g->output && !g->met)
            db = now_db + 20 * log10(g->value / g->bound);
        if (isfinite(db))
            c->goal_db = fmax(c->goal_db, db);
    }
}

/* --- the advice ------------------------------------------------------------ */

/* Finds the layers that do the harm. Without a bound that allows a trial there are
   none. */
static enum qdq_code
search(struct trials *trials, int64_t bound, struct qdqi_group_search *h,
       struct qdq_error *err)
{
    struct qdqi_candidates *c = trials->candidates;
    int64_t samples = qdqi_comparer_samples(c->comparer);
    int64_t most = samples > 0 ? bound / 2 / samples - 1 : 0;
    const double in_time =
        (trials->end - qdqi_seconds_now()) / fmax(trials->longest, 1e-3);
    most = in_time < (double)most ? (int64_t)in_time : most;
    *h = (struct qdqi_group_search){.n = c->n,
                                    .costs = c->costs,
                                    .noise = c->noise,
                                    .goal_db = c->goal_db,
                                    .enough_db = c->goal_db,
                                    .max_scores = most > QDQI_CANDIDATES
                                                      ? QDQI_CANDIDATES
                                                      : (size_t)(most < 0 ? 0 : most),
                                    .arena = c->result->scratch,
                                    .arg = trials,
                                    .score = score,
                                    .is_time_up = is_time_up};
    if (most < 1)
        return QDQ_OK;
    qdqi_comparer_expect(c->comparer, h->max_scores * (uint64_t)samples);
    return qdqi_group_search(h, err);
}

/* Adds the figures of a choice that have a bound. */
static void
add_costs(const struct qdqi_candidates *c, const struct qdqi_grade *score,
          struct text *t)
{
    if (!isnan(c->max_size))
        add(t, ", %.3f of the size", score->size_ratio);
    if (!isnan(c->max_latency))
        add(t, ", %.3f of the time", score->latency_ratio);
}

/* Adds what the trials showed. `all` is the score of the choice on the samples of the
   evaluation; if its SQNR is NAN, it does not mend the result there. */
static enum qdq_code
add_outcome(const struct trials *trials, const struct qdqi_group_search *h,
            const struct qdqi_grade *all, struct text *t, struct qdq_error *err)
{
    struct qdqi_candidates *c = trials->candidates;
    const char *const *names = NULL;
    size_t n = 0;
    enum qdq_code code =
        h->is_float
            ? qdqi_candidates_list(c, h->is_float, c->result->scratch, &names, &n, err)
            : QDQ_OK;
    if (code || n == 0) {
        add(t, "; leaving layers in float did not help within the %s",
            trials->are_late ? "time that the rest of the job took"
                             : "samples that there are");
        return code;
    }
    add(t, "; at fault: ");
    add_faults(c, t, names, n);
    const bool enough = !isnan(all->sqnr_db);
    const struct qdqi_grade *score = enough ? all : &h->best;
    add(t, "; with %s in float it has ", n > 1 ? "these" : "that");
    add_db(t, score->sqnr_db);
    add_costs(c, score, t);
    if (!enough) {
        add(t, " on %lld samples, and nothing that was tried is enough",
            (long long)qdqi_comparer_samples(c->comparer));
        return QDQ_OK;
    }
    add(t, ": ");
    add_spec(t, names, n);
    return QDQ_OK;
}

static enum qdq_code
open_comparer(struct qdqi_candidates *c, const struct qdqi_feed_options *options,
              bool *ret_none, struct qdq_error *err)
{
    struct qdq_error why = {0};
    enum qdq_code code =
        qdqi_comparer_open(c->attempt, options, QDQ_STAGE_ADVISE, &c->comparer, &why);
    *ret_none = code == QDQ_RUNTIME_MISSING || code == QDQ_RUN_FAILED;
    if (!code && !isnan(c->max_latency))
        code = qdqi_comparer_measure_latency(c->comparer, c->attempt, &why);
    return code && !*ret_none
               ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
               : QDQ_OK;
}

/* Judges a choice on the samples of the evaluation. The SQNR of *ret is NAN if it does not
   mend the result there. */
static enum qdq_code
confirm(struct qdqi_candidates *c, const bool *is_float, double goal_db,
        struct qdqi_grade *ret, struct qdq_error *err)
{
    struct qdqi_comparer *few = c->comparer;
    struct qdqi_grade score;
    bool none;
    ret->sqnr_db = NAN;
    enum qdq_code code = qdqi_compare_with_all(c, &none, err);
    if (!code && !none && !(code = qdqi_candidates_score(c, is_float, &score, err)) &&
        qdqi_grade_fits(&score) && score.sqnr_db >= goal_db &&
        !(qdqi_comparer_top1(c->comparer) < c->min_top1))
        *ret = score;
    qdqi_comparer_close(&c->comparer);
    c->comparer = few;
    return code;
}

/* Searches for a choice that mends the result on all samples of the evaluation. A choice
   that does so on a few samples only makes the next round ask for more. */
static enum qdq_code
search_and_confirm(struct trials *trials, int64_t bound, struct text *t,
                   struct qdq_error *err)
{
    struct qdqi_candidates *c = trials->candidates;
    struct qdqi_group_search h = {0};
    const double goal_db = c->goal_db;
    struct qdqi_grade all = {.sqnr_db = NAN};
    enum qdq_code code = QDQ_OK;
    c->goal_db += margin_db;
    for (int round = 0; !code && round < ROUNDS && isnan(all.sqnr_db); round++) {
        if ((code = search(trials, bound, &h, err)) || !h.is_float ||
            !qdqi_grade_fits(&h.best) || !(h.best.sqnr_db >= h.goal_db))
            break;
        code = confirm(c, h.is_float, goal_db, &all, err);
        c->goal_db = h.best.sqnr_db + more_db;
    }
    return code ? code : add_outcome(trials, &h, &all, t, err);
}

/* Judges the model without any layer in integers, where another runtime than that of the float
   figures has the result: it may compute the float model otherwise. Sets *ret_differs, and adds
   that to the text, where the model itself misses the goal there. */
static enum qdq_code
check_float(struct qdqi_candidates *c, bool *ret_differs, struct text *t,
            struct qdq_error *err)
{
    const struct qdqi_context *context = c->attempt->context;
    const struct qdqi_deploy_ops *ops =
        qdqi_engine_ops(context->engine, context->asked->target->runtime);
    struct qdqi_grade grade;
    bool *is_float = qdqi_arena_array(c->result->scratch, c->n, sizeof *is_float);
    *ret_differs = false;
    if (!is_float)
        return qdqi_no_memory(err);
    if (!ops || ops->calibrates || c->n == 0 || !qdqi_deployed_runs(context))
        return QDQ_OK;
    for (size_t i = 0; i < c->n; i++)
        is_float[i] = true;
    enum qdq_code code = qdqi_candidates_score(c, is_float, &grade, err);
    /* A grade of -inf: it cannot be run there, which says nothing. */
    if (code || grade.sqnr_db >= c->goal_db || isinf(grade.sqnr_db))
        return code;
    *ret_differs = true;
    add(t,
        "; no layer is at fault: %s computes the model otherwise without any in "
        "integers, which has ",
        ops->row->title);
    add_db(t, grade.sqnr_db);
    add(t, " there against the float model in ONNX Runtime");
    return QDQ_OK;
}

/* Returns until when layers may be searched for, so that the samples of the evaluation can judge
   the outcome in time: half of the time is theirs at most. */
static double
end_of_search(const struct trials *trials, double end)
{
    const struct qdqi_candidates *c = trials->candidates;
    const double few = (double)qdqi_comparer_samples(c->comparer);
    const double all = (double)c->result->report->evaluated_samples;
    const double now = qdqi_seconds_now();
    return fmax(end - trials->first * all / fmax(few, 1), (now + end) / 2);
}

/* Tries what costs nothing when the model runs, then layers in float, and adds what that shows. */
static enum qdq_code
mend_or_search(struct qdqi_candidates *c, int64_t bound, struct text *t,
               struct qdq_error *err)
{
    struct trials trials = start_trials(c);
    const double end = trials.end;
    struct qdqi_mending mending;
    bool differs;
    enum qdq_code code = check_float(c, &differs, t, err);
    if (code || differs)
        return code;
    trials.end = trials.asked + (end - trials.asked) / 3;
    code = qdqi_mend(c, MENDING * bound, is_time_up, &trials, &mending, err);
    if (code)
        return code;
    if (!mending.spec) {
        trials.end = end_of_search(&trials, end);
        trials.longest = trials.first;
        trials.asked = qdqi_seconds_now();
        trials.are_late = false;
        return search_and_confirm(&trials, bound, t, err);
    }
    add(t, "; without a layer in float it has ");
    add_db(t, mending.sqnr_db);
    add(t, " with %s", mending.spec);
    return QDQ_OK;
}

/* Tries to mend the result, and adds what that shows to the text. */
static enum qdq_code
explain(struct qdqi_candidates *c, struct text *t, struct qdq_error *err)
{
    struct qdqi_feed_options options = {.batch = qdqi_attempt_batch(c->attempt)};
    int64_t bound = 0;
    bool none;
    enum qdq_code code = qdqi_candidates_samples(c->attempt, 1, &options, &bound, err);
    if (code || (code = open_comparer(c, &options, &none, err)) || none)
        return code;
    code = mend_or_search(c, bound, t, err);
    if (!code)
        code = qdqi_comparer_conclude(c->comparer, c->attempt, err);
    qdqi_comparer_close(&c->comparer);
    return code;
}

/* Adds how bad the result is. Returns the SQNR of the worst output. */
static double
add_worst(const struct qdq_report *r, struct text *t)
{
    size_t n, worst = 0;
    const struct qdq_output_report *outputs = qdqi_deciding_outputs(r, &n);
    for (size_t i = 0; i < r->n_gates; i++)
        if (!r->gates[i].met)
            add(t, "%s%s is missed", t->n ? ", " : "", r->gates[i].gate);
    if (r->recipe_missed)
        add(t, "%sa goal of the recipe is missed", t->n ? ", " : "");
    for (size_t i = 1; i < n; i++)
        if (qdqi_output_decides(outputs, n, i) &&
            (!qdqi_output_decides(outputs, n, worst) ||
             !(qdqi_judged_sqnr(&outputs[i]) >= qdqi_judged_sqnr(&outputs[worst]))))
            worst = i;
    if (n == 0)
        return NAN;
    if (outputs[worst].is_choice) {
        add(t,
            "%sthe output '%.60s' is that of the float model in %.3f of its elements",
            t->n ? ", " : "", outputs[worst].name, outputs[worst].top1_agreement);
        return qdqi_judged_sqnr(&outputs[worst]);
    }
    add(t, "%sthe output '%.60s' has ", t->n ? ", " : "", outputs[worst].name);
    add_db(t, outputs[worst].sqnr_db);
    if (!outputs[worst].lacks_classes && !isnan(outputs[worst].top1_agreement))
        add(t, " and a top-1 agreement of %.3f", outputs[worst].top1_agreement);
    if (qdqi_judged_sqnr(&outputs[worst]) < outputs[worst].sqnr_db) {
        add(t, ", and its worst slice ");
        add_db(t, qdqi_worst_slice(&outputs[worst]));
    }
    return qdqi_judged_sqnr(&outputs[worst]);
}

/* Returns whether layers in float may mend the result, and the job can try that, which would take
   longer than the rest of it in a slow runtime: it is poor by its outputs, or misses a bound of accept that the comparer of candidates can measure. */
static bool
can_help(const struct qdqi_candidates *c)
{
    const struct qdqi_attempt *a = c->attempt;
    const struct qdq_report *r = c->result->report;
    struct qdq_report alone = *r;
    bool missed = false;
    alone.n_gates = 0;
    alone.recipe_missed = false;
    for (size_t i = 0; i < r->n_gates; i++)
        missed = missed ||
                 (!r->gates[i].met && (r->gates[i].kind != QDQ_FIGURE_LATENCY_RATIO ||
                                       !isnan(c->max_latency)));
    const bool is_slow =
        a->spec->target->judged_samples > 0 && qdqi_deployed_runs(a->context);
    return !is_slow && a->context->dataset && a->context->work->dataset >= 0 &&
           r->evaluated_samples > 0 && a->spec->float_type == QDQ_FLOAT_KEEP &&
           (missed || qdqi_verdict(&alone) == QDQI_POOR);
}

static size_t
room_for(const struct qdqi_candidates *c)
{
    size_t room = ROOM;
    for (size_t i = 0; i < c->n; i++)
        room += A_NAME * strlen(c->names[i]) + sizeof "\"\", ";
    return room;
}

enum qdq_code
qdqi_advise(struct qdqi_attempt *a, struct qdqi_result *result, struct qdq_error *err)
{
    struct qdqi_candidates c = {.attempt = a,
                                .result = result,
                                .reason = "advice",
                                .selected = true,
                                .max_size = a->spec->accept.max_size_ratio,
                                .max_latency = NAN};
    struct qdq_report *r = result->report;
    r->size_before = qdqi_model_bytes(a->context->original);
    r->plan = &a->plan->view;
    enum qdq_code code = qdqi_gates_judge(&a->spec->accept, &a->model->info,
                                          result->not_float, r, result->arena, err);
    if (code || qdqi_verdict(r) != QDQI_POOR)
        return code;
    if (qdqi_deployed_runs(a->context))
        c.max_latency = a->spec->accept.max_latency_ratio;
    if ((code = qdqi_candidates_find(&c, err)))
        return code;
    struct text t = {.size = room_for(&c)};
    if (!(t.to = qdqi_arena_array(result->scratch, t.size, 1)))
        return qdqi_no_memory(err);
    choose_goal(r, add_worst(r, &t), &c);
    if (can_help(&c) && c.n > 0)
        code = explain(&c, &t, err);
    const struct qdq_warning poor = {.code = "poor", .detail = t.to};
    return code ? code : qdqi_attempt_add_warnings(a, &poor, 1, err);
}
