/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/candidates/comparer.h"

#include "files/data/file.h"
#include "plan/gates/judged.h"
#include "stages/candidates/candidate_file.h"
#include "stages/candidates/judged_files.h"
#include "stages/evaluate/deployed_first.h"
#include "stages/evaluate/choices.h"
#include "stages/slices/classes.h"
#include "stages/evaluate/deployed.h"
#include "stages/evaluate/last_candidate.h"
#include "stages/evaluate/metrics.h"
#include "stages/evaluate/reference.h"
#include "stages/profile/pace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Samples by which the figures of a candidate may be trusted, by which they may where all of
   them are far better than is asked for, and by which they may where they are far worse. */
enum { TRUSTED_SAMPLES = 32, CLEAR_SAMPLES = 8, HOPELESS_SAMPLES = 4 };

/* The numbers that are kept of the runs of the float model: the comparer's own runs, all, and its samples. */
enum { COUNT_OWN, COUNT_ALL, COUNT_SAMPLES, N_COUNTS };

/* The numbers that are kept of a candidate. */
enum { GRADE_DB, GRADE_TOP1, GRADE_AGREEMENT, GRADE_SAMPLES, N_GRADE };

struct qdqi_comparer {
    const struct qdqi_context *context;
    struct qdqi_arena *arena;
    struct qdqi_feed_options options;
    struct qdqi_feed *feed;
    enum qdq_stage stage;
    bool plain;             /* it judges as deployed; else by the literal arithmetic */
    const char *lost;       /* why it does not any more; NULL: it does, or never did */
    double top1, agreement; /* as last judged */
    struct qdqi_candidate_cost cost;
    struct qdqi_pace *pace;           /* NULL: latencies are not asked for */
    struct qdqi_kept_times *kept;     /* NULL: nothing is kept */
    struct qdqi_judging judging;      /* see qdqi_comparer_judging() */
    struct qdqi_judged_files judged;  /* candidates, by their bytes */
    uint64_t kept_key;                /* of figures: of data and samples */
    size_t n_all_runs;                /* of the reference, which may be opened later */
    bool judges_samples;              /* the 5th percentile counts */
    int fd;                           /* the candidate's file */
    struct qdqi_reference *reference; /* the comparer's runs are among its own, */
    size_t first_run;                 /* from this one on */
    bool is_wide;                     /* all of its runs judge now */
    size_t n_outputs, n_runs;
    struct qdqi_metrics *metrics;
    bool *differs; /* by output: its size differs in a run of this candidate */
    bool *skips; /* by output: it did in that of another one, judged by other outputs */
    int64_t samples;
    uint64_t done, total;
};

/* --- the float model ------------------------------------------------------- */

static enum qdq_code
report_progress(struct qdqi_comparer *c, int64_t samples, struct qdq_error *err)
{
    c->done += (uint64_t)samples;
    if (c->stage == QDQ_N_STAGES)
        return QDQ_OK;
    return qdqi_context_progress(c->context, c->stage, c->done,
                                 c->total > c->done ? c->total : c->done, err);
}

static enum qdq_code
rewind_feed(struct qdqi_comparer *c, const struct qdqi_attempt *a,
            struct qdq_error *err)
{
    const struct qdqi_feed_options *options =
        c->is_wide && c->reference ? &c->reference->options : &c->options;
    qdqi_feed_close(&c->feed);
    return qdqi_feed_open(&a->fixed, c->context->dataset, options, &c->feed, err);
}

static enum qdq_code
on_run(void *arg, int64_t samples, struct qdq_error *err)
{
    return report_progress(arg, samples, err);
}

/* Adds samples before the comparer's, where it has fewer than may be trusted. */
static void
widen_few(const struct qdqi_comparer *c, struct qdqi_reference_runs *runs)
{
    const int64_t lacking = TRUSTED_SAMPLES - runs->needed;
    const int64_t more = lacking < c->options.first ? lacking : c->options.first;
    if (runs->samples.first != c->options.first || more <= 0)
        return;
    runs->samples.first -= more;
    runs->samples.max_samples = runs->needed + more;
    runs->needed += more;
}

/* Returns the runs of the float model: those of the samples of the comparer, and for a recipe of all
   samples of the evaluation, if the comparer's are among them. */
static struct qdqi_reference_runs
runs_of(struct qdqi_comparer *c, const struct qdqi_attempt *a)
{
    struct qdqi_reference_runs runs = {.samples = c->options,
                                       .needed = qdqi_feed_samples(c->feed),
                                       .most = SIZE_MAX,
                                       .ran = on_run,
                                       .arg = c};
    if (c->stage == QDQ_STAGE_RECIPE && runs.needed == qdqi_feed_runs(c->feed)) {
        qdqi_deployed_first_widen(a, qdqi_feed_available(c->feed), &runs);
        widen_few(c, &runs);
    }
    return runs;
}

/* Runs the float model, unless it has run. */
static enum qdq_code
need_float(struct qdqi_comparer *c, const struct qdqi_attempt *a, struct qdq_error *err)
{
    if (c->reference)
        return QDQ_OK;
    enum qdq_code code = rewind_feed(c, a, err);
    if (code)
        return code;
    const struct qdqi_reference_runs runs = runs_of(c, a);
    return qdqi_reference_open(a, &runs, &c->reference, err);
}

/* Sets the key of the figures of these runs. */
static void
set_key(struct qdqi_comparer *c, const struct qdqi_attempt *a,
        const struct qdqi_reference_runs *runs)
{
    const int64_t parts[] = {
        c->stage,         c->options.first,    c->options.max_samples,
        c->options.batch, runs->samples.first, runs->samples.max_samples,
        runs->needed};
    c->kept_key = qdqi_kept_key_of_data(a);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        c->kept_key = qdqi_kept_key_add(c->kept_key, parts[i]);
}

/* Runs the float model, unless an earlier job tells how many runs there are: then only where a
   candidate has to run. */
static enum qdq_code
count_runs(struct qdqi_comparer *c, const struct qdqi_attempt *a, struct qdq_error *err)
{
    const struct qdqi_reference_runs runs = runs_of(c, a);
    const size_t own = (size_t)qdqi_feed_runs(c->feed);
    const double *known;
    size_t n_known;
    enum qdq_code code = QDQ_OK;
    c->first_run = (size_t)(c->options.first - runs.samples.first);
    set_key(c, a, &runs);
    if (qdqi_keeps_grades(a) && (code = qdqi_kept_times_get(a, &c->kept, err)))
        return code;
    if (c->kept &&
        qdqi_kept_times_take_numbers(c->kept, c->kept_key, &known, &n_known) &&
        n_known == N_COUNTS && known[COUNT_OWN] == (double)own) {
        c->n_all_runs = (size_t)known[COUNT_ALL];
        c->n_runs = own;
        c->samples = (int64_t)known[COUNT_SAMPLES];
        return QDQ_OK;
    }
    if ((code = need_float(c, a, err)))
        return code;
    c->n_all_runs = c->reference->n_runs;
    const size_t left = c->n_all_runs - c->first_run;
    c->n_runs = own < left ? own : left;
    for (size_t i = 0; i < c->n_runs; i++)
        c->samples += c->reference->run_samples[c->first_run + i];
    const double counts[N_COUNTS] = {[COUNT_OWN] = (double)c->n_runs,
                                     [COUNT_ALL] = (double)c->n_all_runs,
                                     [COUNT_SAMPLES] = (double)c->samples};
    return c->kept && c->n_runs == own
               ? qdqi_kept_times_add_numbers(c->kept, c->kept_key, counts, N_COUNTS,
                                             err)
               : QDQ_OK;
}

static enum qdq_code
open_comparer(struct qdqi_comparer *c, const struct qdqi_attempt *a,
              struct qdq_error *err)
{
    enum qdq_code code = rewind_feed(c, a, err);
    if (code)
        return code;
    c->n_outputs = a->model->info.n_outputs;
    if ((code = qdqi_metrics_init(a->model, false, c->arena, &c->metrics, err)))
        return code;
    c->differs = qdqi_arena_array(c->arena, c->n_outputs + 1, sizeof *c->differs);
    c->skips = qdqi_arena_array(c->arena, c->n_outputs + 1, sizeof *c->skips);
    if (!c->differs || !c->skips)
        return qdqi_no_memory(err);
    c->fd = qdqi_file_open_temporary();
    if (c->fd < 0)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "opening a temporary file: %s", strerror(errno));
    return count_runs(c, a, err);
}

enum qdq_code
qdqi_comparer_open(const struct qdqi_attempt *a,
                   const struct qdqi_feed_options *options, enum qdq_stage stage,
                   struct qdqi_comparer **ret, struct qdq_error *err)
{
    struct qdqi_comparer *c = calloc(1, sizeof *c);
    if (!c)
        return qdqi_no_memory(err);
    *c = (struct qdqi_comparer){.context = a->context,
                                .arena = qdqi_arena_new(),
                                .options = *options,
                                .stage = stage,
                                .plain = qdqi_deployed_runs(a->context),
                                .judging = {NAN, INFINITY, -INFINITY, false, false},
                                .fd = -1};
    enum qdq_code code = c->arena ? open_comparer(c, a, err) : qdqi_no_memory(err);
    if (code)
        qdqi_comparer_close(&c);
    else
        *ret = c;
    return code;
}

void
qdqi_comparer_close(struct qdqi_comparer **comparer)
{
    struct qdqi_comparer *c = *comparer;
    if (!c)
        return;
    if (c->stage == QDQ_STAGE_RECIPE && c->reference)
        qdqi_last_candidate_keep_reference(c->context, &c->reference);
    qdqi_reference_close(&c->reference);
    if (c->fd >= 0)
        close(c->fd);
    qdqi_pace_close(&c->pace);
    qdqi_feed_close(&c->feed);
    qdqi_arena_free(&c->arena);
    free(c);
    *comparer = NULL;
}

double
qdqi_comparer_top1(const struct qdqi_comparer *c)
{
    return c->top1;
}

double
qdqi_comparer_agreement(const struct qdqi_comparer *c)
{
    return c->agreement;
}

int64_t
qdqi_comparer_samples(const struct qdqi_comparer *c)
{
    return c->samples;
}

enum qdq_code
qdqi_comparer_measure_latency(struct qdqi_comparer *c, const struct qdqi_attempt *a,
                              struct qdq_error *err)
{
    struct qdq_error why = {0};
    if (c->pace)
        return QDQ_OK;
    enum qdq_code code = qdqi_pace_open(a, c->arena, &c->pace, &why);
    if (code == QDQ_JUDGE_GONE)
        return qdqi_pace_open(a, c->arena, &c->pace, err);
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                : QDQ_OK;
}

void
qdqi_comparer_expect_profile(struct qdqi_comparer *c)
{
    if (c->pace)
        qdqi_pace_expect_traces(c->pace);
}

struct qdqi_judging *
qdqi_comparer_judging(struct qdqi_comparer *c)
{
    return &c->judging;
}

bool
qdqi_comparer_widen(struct qdqi_comparer *c, bool is_wide)
{
    c->is_wide = is_wide && c->n_all_runs > c->n_runs;
    return c->is_wide;
}

bool
qdqi_comparer_measures(const struct qdqi_comparer *c)
{
    return c->pace != NULL;
}

bool
qdqi_comparer_has_measured(const struct qdqi_comparer *c)
{
    const struct qdqi_kept_times *kept = *c->context->kept;
    return kept && qdqi_kept_times_has_new(kept);
}

void
qdqi_comparer_judge_samples(struct qdqi_comparer *c)
{
    c->judges_samples = true;
    for (size_t i = 0; i < c->n_outputs; i++)
        c->metrics[i].by_sample.arena = c->arena;
}

struct qdqi_candidate_cost
qdqi_comparer_cost(const struct qdqi_comparer *c)
{
    return c->cost;
}

void
qdqi_comparer_expect(struct qdqi_comparer *c, uint64_t samples)
{
    c->total = c->done + samples;
}

enum qdq_code
qdqi_comparer_advance(struct qdqi_comparer *c, int64_t samples, struct qdq_error *err)
{
    return report_progress(c, samples, err);
}

enum qdq_code
qdqi_comparer_conclude(const struct qdqi_comparer *c, const struct qdqi_attempt *a,
                       struct qdq_error *err)
{
    enum qdq_code code = c->kept ? qdqi_kept_times_write(c->kept, a, err) : QDQ_OK;
    return code || !c->lost
               ? code
               : qdqi_attempt_warn(a, err, "judged_literally", NULL,
                                   "some candidates were compared by the literal "
                                   "arithmetic, and not as deployed: %s",
                                   c->lost);
}

/* --- a candidate ----------------------------------------------------------- */

static bool
is_plain(const struct qdqi_comparer *c)
{
    return c->plain && !c->judging.is_literal;
}

/* Returns whether the session that judges the candidates also measures them: both have one thread. */
static bool
shares_session(const struct qdqi_comparer *c)
{
    struct qdq_engine *engine = c->context->engine;
    const struct qdqi_deploy_ops *ops =
        qdqi_engine_ops(engine, c->context->asked->target->runtime);
    return is_plain(c) && c->pace && ops &&
           (engine->threads == 1 || ops->has_one_thread) &&
           qdqi_pace_shares(c->pace, 1);
}

/* Opens a candidate as it would be deployed, or with the literal arithmetic. */
static enum qdq_code
open_candidate(struct qdqi_comparer *c, const struct qdq_model *model,
               struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    struct qdqi_deploy deploy;
    const struct qdqi_deploy_options options = {
        .literal = !is_plain(c), .traced = true, .threads = shares_session(c) ? 1 : 0};
    enum qdq_code code =
        is_plain(c) ? qdqi_deployed_runtime(c->context, &deploy, err)
                    : qdqi_engine_deploy_literal(c->context->engine, &deploy, err);
    return code ? code : qdqi_deploy_model(&deploy, model, &options, ret, err);
}

static void
compare(struct qdqi_comparer *c, size_t run, const struct qdqi_output *outputs,
        size_t n, int64_t samples)
{
    const struct qdqi_kept_output *f =
        qdqi_reference_run(c->reference, run + (c->is_wide ? 0 : c->first_run));
    for (size_t i = 0; i < n && i < c->n_outputs; i++) {
        const struct qdqi_output kept = {f[i].dtype, f[i].rank, f[i].shape, f[i].n,
                                         f[i].data};
        if (!f[i].data || qdqi_choices_add(&c->metrics[i], &kept, &outputs[i], samples))
            continue;
        if (outputs[i].dtype != QDQI_FLOAT32 || f[i].dtype != QDQI_FLOAT32)
            continue;
        const struct qdqi_output_shape shape = {f[i].shape, f[i].rank};
        if (outputs[i].n == f[i].n)
            qdqi_metrics_update(&c->metrics[i], f[i].data, outputs[i].data, f[i].n,
                                samples, &shape);
        else
            c->differs[i] = true;
    }
}

/* Leaves the outputs whose sizes differ out, of this candidate and of later ones, so that
   the same outputs judge all. Returns false if none is left to judge by. */
static bool
leave_out_differing(struct qdqi_comparer *c)
{
    bool any = false, differs = false;
    for (size_t i = 0; i < c->n_outputs; i++) {
        differs = differs || c->differs[i];
        any = any || (c->metrics[i].samples > 0 && !c->differs[i] && !c->skips[i]);
    }
    for (size_t i = 0; any && i < c->n_outputs; i++)
        c->skips[i] = c->skips[i] || c->differs[i];
    return any || !differs;
}

static double
worst_output(struct qdqi_comparer *c, const struct qdqi_attempt *a)
{
    double worst = INFINITY;
    struct qdq_output_report figures;
    c->top1 = c->agreement = NAN;
    if (!leave_out_differing(c))
        return -INFINITY;
    for (size_t i = 0; i < c->n_outputs; i++) {
        if (c->metrics[i].samples == 0 || c->skips[i])
            continue;
        qdqi_metrics_finish(&c->metrics[i], NULL, &figures);
        if (isnan(figures.sqnr_db))
            return -INFINITY;
        worst = fmin(worst, qdqi_judged_sqnr(&figures));
        if (c->judges_samples && !isnan(figures.samples.p5_db))
            worst = fmin(worst, figures.samples.p5_db);
        c->agreement = fmin(c->agreement, figures.top1_agreement);
        if (figures.is_choice || qdqi_output_may_list_classes(a->model, i))
            c->top1 = fmin(c->top1, figures.top1_agreement);
    }
    return worst;
}

/* Returns whether the candidate is so far better or worse than is asked for, after some of the samples,
   that the others would not change that. */
static bool
is_clear(struct qdqi_comparer *c, const struct qdqi_attempt *a, size_t runs)
{
    const struct qdqi_judging *by = &c->judging;
    if (c->is_wide && runs == CLEAR_SAMPLES && worst_output(c, a) >= by->clear_db)
        return true;
    return isfinite(by->hopeless_db) && c->cost.samples >= HOPELESS_SAMPLES &&
           worst_output(c, a) < by->hopeless_db;
}

static enum qdq_code
run_candidate(struct qdqi_comparer *c, const struct qdqi_attempt *a,
              const struct qdqi_deployed_model *candidate, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    const struct qdqi_output *outputs;
    int64_t samples;
    size_t n;
    enum qdq_code code = need_float(c, a, err);
    const size_t n_runs = c->is_wide ? c->n_all_runs : c->n_runs;
    if (!code)
        code = rewind_feed(c, a, err);
    for (size_t run = 0; !code && run < n_runs && !is_clear(c, a, run); run++) {
        if ((code = qdqi_feed_next(c->feed, &inputs, &samples, err)) ||
            (code = qdqi_deployed_model_run(candidate, inputs, a->model->info.n_inputs,
                                            &outputs, &n, NULL, err)))
            break;
        compare(c, run, outputs, n, samples);
        c->cost.samples += samples;
        code = report_progress(c, samples, err);
    }
    return code;
}

/* Judges the candidate that was written, which may stay open. */
static enum qdq_code
compare_once(struct qdqi_comparer *c, const struct qdqi_attempt *a,
             struct qdq_model **model, struct qdq_error *err)
{
    struct qdqi_deployed_model candidate = {0};
    for (size_t i = 0; i < c->n_outputs; i++)
        qdqi_metrics_clear(&c->metrics[i]);
    memset(c->differs, 0, c->n_outputs * sizeof *c->differs);
    c->cost.samples = 0;
    enum qdq_code code = open_candidate(c, *model, &candidate, err);
    if (!code)
        code = run_candidate(c, a, &candidate, err);
    if (!code && c->pace && !c->judging.is_resting && isnan(c->cost.latency_ratio))
        code = qdqi_pace_measure(c->pace, *model, shares_session(c) ? &candidate : NULL,
                                 c->judging.least_latency, &c->cost.latency_ratio, err);
    if (!code)
        qdqi_last_candidate_keep(c->context, model, &candidate);
    qdqi_deployed_model_close(&candidate);
    return code;
}

/* Has another process measure latencies in the place of one that is gone. */
static enum qdq_code
renew_pace(struct qdqi_comparer *c, const struct qdqi_attempt *a, struct qdq_error *err)
{
    const bool paced = c->pace != NULL;
    qdqi_pace_close(&c->pace);
    return paced ? qdqi_pace_open(a, c->arena, &c->pace, err) : QDQ_OK;
}

/* Judges the candidate as deployed, or else by the literal arithmetic from now on. */
static enum qdq_code
compare_anyhow(struct qdqi_comparer *c, const struct qdqi_attempt *a,
               struct qdq_model **model, struct qdq_error *err)
{
    struct qdq_error first = {0}, second = {0};
    enum qdq_code code = compare_once(c, a, model, &first);
    if (code == QDQ_RUNNER_FAILED && qdq_spec_keeps_journal(c->context->asked)) {
        code = compare_once(c, a, model, &second);
        code = code == QDQ_RUNNER_FAILED ? QDQ_RUN_FAILED : code;
    }
    if (code == QDQ_JUDGE_GONE && !(code = renew_pace(c, a, &second)))
        code = compare_once(c, a, model, &second);
    const struct qdq_error *why = second.code ? &second : &first;
    if (code == QDQ_JUDGE_GONE || (code == QDQ_RUNTIME_MISSING && is_plain(c))) {
        c->plain = false;
        qdqi_pace_close(&c->pace);
        c->lost = qdqi_arena_strdup(c->arena, why->text);
        return c->lost ? compare_once(c, a, model, err) : qdqi_no_memory(err);
    }
    return code ? qdq_error_set(err, code, why->kind, why->where, "%s", why->text)
                : QDQ_OK;
}

/* Writes a candidate into the file, in the place of the one before. */
static enum qdq_code
write_next(struct qdqi_comparer *c, const struct qdqi_attempt *a,
           struct qdq_model **ret, struct qdq_error *err)
{
    qdqi_last_candidate_drop(c->context);
    enum qdq_code code = qdqi_candidate_write(a, c->fd, &c->cost.bytes, err);
    return code ? code : qdq_model_open(c->fd, ret, err);
}

enum qdq_code
qdqi_comparer_open_last(const struct qdqi_comparer *c, struct qdq_model **ret,
                        struct qdq_error *err)
{
    return qdq_model_open(c->fd, ret, err);
}

enum qdq_code
qdqi_comparer_profile(struct qdqi_comparer *c, const struct qdqi_attempt *a,
                      struct qdqi_arena *arena, struct qdq_model **ret,
                      struct qdqi_trace *ret_floats, struct qdqi_trace *ret_trace,
                      struct qdq_error *err)
{
    if (!c->pace)
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                             "nothing measures latencies");
    enum qdq_code code = write_next(c, a, ret, err);
    if (!code)
        code = qdqi_pace_trace(c->pace, c->context->original, arena, ret_floats, err);
    return code ? code : qdqi_pace_trace(c->pace, *ret, arena, ret_trace, err);
}

static int64_t
thousandths(double db)
{
    return isfinite(db) ? (int64_t)(db * 1000) : 0;
}

/* Returns the key of what is kept of a candidate. */
static uint64_t
key_of_grade(const struct qdqi_comparer *c, const struct qdqi_judged_file *now)
{
    const uint64_t key = qdqi_kept_key_add(c->kept_key, (int64_t)now->key);
    const int64_t clear = c->is_wide ? thousandths(c->judging.clear_db) : 0;
    return qdqi_kept_key_add(qdqi_kept_key_add(key, c->is_wide * 2 + c->judges_samples),
                             clear + thousandths(c->judging.hopeless_db));
}

/* Returns whether the figures of a candidate are known, by another one of the same bytes in this job
   or in an earlier one, and fills them in. The latency may be missing. Its samples count as if they had
   run, so that bounds end the job as they would without what is known. */
static bool
find_figures(struct qdqi_comparer *c, struct qdqi_judged_file *now)
{
    const struct qdqi_judged_file *known = qdqi_judged_files_find(&c->judged, now);
    const double *kept;
    size_t n;
    if (known) {
        *now = *known;
        c->cost.samples = known->samples;
        return true;
    }
    if (!c->kept || !is_plain(c) ||
        !qdqi_kept_times_take_numbers(c->kept, key_of_grade(c, now), &kept, &n) ||
        n != N_GRADE)
        return false;
    now->db = kept[GRADE_DB];
    now->top1 = kept[GRADE_TOP1];
    now->agreement = kept[GRADE_AGREEMENT];
    c->cost.samples = now->samples = (int64_t)kept[GRADE_SAMPLES];
    return true;
}

/* Keeps what was found about a candidate, unless outputs were left out, or the literal arithmetic has
   taken over. */
static enum qdq_code
keep_figures(struct qdqi_comparer *c, struct qdqi_judged_file *now, bool is_new,
             const struct qdqi_attempt *a, struct qdq_error *err)
{
    const double grade[N_GRADE] = {now->db, now->top1, now->agreement,
                                   (double)c->cost.samples};
    bool skips = false;
    for (size_t i = 0; i < c->n_outputs; i++)
        skips = skips || c->skips[i] || c->differs[i];
    if (skips || c->lost)
        return QDQ_OK;
    if (!qdqi_judged_files_keep(&c->judged, now, c->arena))
        return qdqi_no_memory(err);
    return is_new && c->kept && is_plain(c) && qdqi_keeps_grades(a)
               ? qdqi_kept_times_add_numbers(c->kept, key_of_grade(c, now), grade,
                                             N_GRADE, err)
               : QDQ_OK;
}

/* Judges the candidate that was written, by what is known of it where that is enough. */
static enum qdq_code
judge_written(struct qdqi_comparer *c, const struct qdqi_attempt *a,
              struct qdq_model **model, double *ret, struct qdq_error *err)
{
    struct qdqi_judged_file now = {.key = qdqi_kept_key_add_model(0, *model),
                                   .is_wide = c->is_wide,
                                   .is_literal = !is_plain(c),
                                   .latency_ratio = NAN};
    const bool timed = c->pace && !c->judging.is_resting;
    const bool known = find_figures(c, &now);
    enum qdq_code code = QDQ_OK;
    struct qdq_error why = {0};
    if (known && timed && isnan(now.latency_ratio))
        code = qdqi_pace_measure(c->pace, *model, NULL, c->judging.least_latency,
                                 &now.latency_ratio, &why);
    if (known && !code) {
        c->cost.latency_ratio = now.latency_ratio;
        c->top1 = now.top1;
        c->agreement = now.agreement;
        *ret = now.db;
        return keep_figures(c, &now, false, a, err);
    }
    if ((code = compare_anyhow(c, a, model, err)))
        return code;
    *ret = now.db = worst_output(c, a);
    now.top1 = c->top1;
    now.agreement = c->agreement;
    now.samples = c->cost.samples;
    now.latency_ratio = c->cost.latency_ratio;
    return keep_figures(c, &now, true, a, err);
}

enum qdq_code
qdqi_comparer_run(struct qdqi_comparer *c, const struct qdqi_attempt *a, double *ret_db,
                  struct qdq_error *err)
{
    struct qdq_model *model = NULL;
    struct qdq_error why = {0};
    c->cost = (struct qdqi_candidate_cost){.latency_ratio = NAN};
    *ret_db = -INFINITY;
    enum qdq_code code = write_next(c, a, &model, &why);
    if (!code)
        code = judge_written(c, a, &model, ret_db, &why);
    qdq_model_free(&model);
    if (code == QDQ_RUN_FAILED && is_plain(c))
        return qdqi_deployed_check_given(c->context, err);
    return code && code != QDQ_RUN_FAILED
               ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
               : QDQ_OK;
}

enum qdq_code
qdqi_comparer_time_again(struct qdqi_comparer *c, const struct qdqi_attempt *a,
                         double *ret, struct qdq_error *err)
{
    struct qdq_model *model = NULL;
    struct qdq_error why = {0};
    enum qdq_code code = write_next(c, a, &model, &why);
    if (!code)
        code = qdqi_pace_measure(c->pace, model, NULL, NAN, ret, &why);
    if (code == QDQ_JUDGE_GONE && !(code = renew_pace(c, a, &why)))
        code = qdqi_pace_measure(c->pace, model, NULL, NAN, ret, &why);
    qdq_model_free(&model);
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text) : code;
}
