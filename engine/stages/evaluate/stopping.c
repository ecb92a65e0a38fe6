/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/stopping.h"

#include "plan/gates/judged.h"
#include "plan/gates/verdict.h"
#include "stages/evaluate/deployed_first.h"
#include "stages/evaluate/sample_choice.h"
#include "stages/evaluate/sequential.h"
#include "stages/slices/classes.h"

#include <math.h>
#include <string.h>

/* The rows of an output: what the last run added to its figures, and sums over runs. */
struct qdqi_watched_rows {
    bool counts; /* of an output with classes, or of integers */
    int64_t rows, agreeing, runs;
    int64_t bad; /* runs more than half of whose rows differ */
    double sum, squares;
};

static const double slice_margin_db = 3;

static const enum qdqi_verdict bounded[] = {QDQI_GOOD, QDQI_FAIR};

enum { N_BOUNDED = sizeof bounded / sizeof *bounded };

/* Returns whether the evaluation may end before its last sample: nothing asks for all of them. */
static bool
may_stop(const struct qdqi_attempt *a)
{
    const struct qdqi_context *c = a->context;
    const struct qdq_spec *spec = a->spec;
    return spec->evaluate == QDQ_DEFAULT && !qdqi_asks_for_figures(spec) &&
           spec->evaluate_samples == QDQ_EVALUATE_SAMPLES && !spec->task.asked &&
           !c->evaluation && !c->dev && !qdqi_compares_deployed_first(a);
}

/* --- the turns --------------------------------------------------------------- */

/* Returns the share of samples that may be below a percentile, or of rows that may differ, as a
   number of all samples. A single row of ten that differs is no evidence (plan/gates/verdict.c). */
static int64_t
most_of(double share, int64_t n, int64_t least)
{
    const int64_t most = (int64_t)floor(share * (double)n + 1e-9);
    return most > least ? most : least;
}

static int64_t
most_differing(enum qdqi_verdict v, int64_t n)
{
    return most_of(1 - qdqi_verdict_level(v)->top1_agreement, n, 1);
}

static int64_t
most_below_p5(int64_t n)
{
    return most_of(0.05, n, 0);
}

static bool
has_one_place(const struct qdq_value *output)
{
    return output->has_shape && output->rank > 0 &&
           output->dims[output->rank - 1].value == 1;
}

/* Returns whether the rows of the output decide. */
static bool
rows_count(const struct qdqi_attempt *a, size_t i)
{
    const struct qdq_value *output = &a->model->info.outputs[i];
    return strncmp(output->dtype, "float", 5) != 0 ||
           (qdqi_output_may_list_classes(a->model, i) && !has_one_place(output));
}

/* Divides the samples into turns. */
static enum qdq_code
make_turns(struct qdqi_stopping *s, struct qdq_error *err)
{
    enum { LOOKS = 8 }; /* about as many turns, at most */
    const struct qdqi_attempt *a = s->attempt;
    const size_t n_outputs = a->model->info.n_outputs;
    int64_t first = qdqi_sequential_first(s->n, most_below_p5(s->n));
    s->rows = qdqi_arena_array(a->scratch, n_outputs + 1, sizeof *s->rows);
    if (!s->rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n_outputs; i++) {
        s->rows[i].counts = rows_count(a, i);
        const int64_t own =
            s->rows[i].counts
                ? qdqi_sequential_first(s->n, most_differing(QDQI_GOOD, s->n))
                : 0;
        first = own > first ? own : first;
    }
    if (first >= s->n)
        return QDQ_OK;
    s->turn = qdqi_arena_array(a->scratch, (size_t)s->n, sizeof *s->turn);
    if (!s->turn)
        return qdqi_no_memory(err);
    s->turns = qdqi_sequential_draw(s->n, first, (s->n + LOOKS - 1) / LOOKS, s->turn);
    return QDQ_OK;
}

enum qdq_code
qdqi_stopping_init(struct qdqi_stopping *s, const struct qdqi_attempt *a,
                   const struct qdqi_feed_options *samples, struct qdqi_feed **feed,
                   struct qdq_error *err)
{
    *s = (struct qdqi_stopping){
        .attempt = a, .samples = samples, .feed = feed, .n = qdqi_feed_samples(*feed)};
    return may_stop(a) && qdqi_feed_run_samples(*feed) == 1 ? make_turns(s, err)
                                                            : QDQ_OK;
}

/* --- the figures -------------------------------------------------------------- */

/* Looks at the rows that the last run added. */
static void
watch_rows(struct qdqi_stopping *s, const struct qdqi_output_figures *figures)
{
    for (size_t i = 0; i < s->attempt->model->info.n_outputs; i++) {
        const struct qdqi_metrics *m = &figures->metrics[i];
        struct qdqi_watched_rows *w = &s->rows[i];
        const int64_t rows = m->rows - w->rows;
        const int64_t differing = rows - (m->agreeing - w->agreeing);
        const double share = rows > 0 ? (double)differing / (double)rows : 0;
        w->rows = m->rows;
        w->agreeing = m->agreeing;
        w->runs += rows > 0;
        w->bad += share > 0.5;
        w->sum += share;
        w->squares += share * share;
    }
}

static bool
contains(double middle, double half, double value)
{
    return value > middle - half && value < middle + half;
}

/* Returns whether the rows that differ are known well enough. */
static bool
are_rows_settled(const struct qdqi_watched_rows *w, int64_t of)
{
    if (!w->counts || w->rows == 0)
        return true;
    const double half = qdqi_share_half_width(w->sum, w->squares, w->runs, of);
    const double share = w->sum / (double)w->runs;
    if (!(half <= qdqi_settled_share))
        return false;
    for (size_t k = 0; k < N_BOUNDED; k++)
        if (contains(share, half, 1 - qdqi_verdict_level(bounded[k])->top1_agreement) ||
            !qdqi_side_is_settled(w->runs, w->bad, of, most_differing(bounded[k], of)))
            return false;
    return true;
}

/* Returns whether the noise of a floating output is known well enough. */
static bool
is_noise_settled(const struct qdqi_metrics *m, int64_t of)
{
    const struct qdqi_samples *samples = &m->by_sample;
    const int64_t n = (int64_t)samples->n;
    const double half = qdqi_pooled_half_width(samples->rows, samples->n, of);
    struct qdq_output_report o;
    qdqi_metrics_finish(m, "", &o);
    const double worst = qdqi_worst_slice(&o);
    if (samples->is_lost || n != m->samples || !(half <= qdqi_settled_db))
        return false;
    for (size_t k = 0; k < N_BOUNDED; k++) {
        const struct qdqi_verdict_level *level = qdqi_verdict_level(bounded[k]);
        if (contains(o.sqnr_db, half, level->sqnr_db) ||
            contains(worst, slice_margin_db, level->slice_db) ||
            !qdqi_side_is_settled(n, qdqi_samples_below(samples, level->p5_db), of,
                                  most_below_p5(of)))
            return false;
    }
    return true;
}

/* Returns whether an output has figures that decide: it is no cache beside others. */
static bool
decides(const struct qdqi_attempt *a, const struct qdqi_output_figures *figures,
        size_t i)
{
    const struct qdq_model_info *info = &a->model->info;
    bool others = false;
    for (size_t k = 0; k < info->n_outputs; k++)
        others |= !qdqi_output_is_cache(info, k);
    return figures->measured[i] && !figures->why[i] &&
           !(others && qdqi_output_is_cache(info, i));
}

/* Returns whether the figures stand for all samples. */
static bool
is_settled(const struct qdqi_stopping *s, const struct qdqi_output_figures *figures)
{
    bool any = false;
    for (size_t i = 0; i < s->attempt->model->info.n_outputs; i++) {
        const struct qdqi_metrics *m = &figures->metrics[i];
        if (!decides(s->attempt, figures, i))
            continue;
        any = true;
        if (m->language.is_logits || m->has_other_entries ||
            (s->rows[i].runs > 0 && s->rows[i].runs != s->done) ||
            !are_rows_settled(&s->rows[i], s->n) ||
            (!m->is_choice && !is_noise_settled(m, s->n)))
            return false;
    }
    return any;
}

/* --- the runs ------------------------------------------------------------------ */

static enum qdq_code
begin_turn(struct qdqi_stopping *s, struct qdq_error *err)
{
    const struct qdqi_attempt *a = s->attempt;
    s->now++;
    s->at = 0;
    qdqi_feed_close(s->feed);
    return qdqi_feed_open(&a->fixed, qdqi_context_judging_data(a->context), s->samples,
                          s->feed, err);
}

/* Moves to the next sample of the turns. *ret_any is false where there is none that is needed. */
static enum qdq_code
seek(struct qdqi_stopping *s, const struct qdqi_output_figures *figures, bool *ret_any,
     struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    *ret_any = true;
    while (!code) {
        int64_t skipped = 0;
        while (s->at + skipped < s->n && s->turn[s->at + skipped] != s->now)
            skipped++;
        s->at += skipped;
        if (s->at < s->n)
            return skipped > 0 ? qdqi_feed_skip(*s->feed, skipped, err) : QDQ_OK;
        s->is_settled = s->done < s->n && is_settled(s, figures);
        *ret_any = s->done < s->n && !s->is_settled;
        if (!*ret_any)
            return QDQ_OK;
        code = begin_turn(s, err);
    }
    return code;
}

enum qdq_code
qdqi_stopping_next(struct qdqi_stopping *s, const struct qdqi_output_figures *figures,
                   const struct qdqi_input **ret, int64_t *ret_samples,
                   struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    bool any = true;
    *ret_samples = 0;
    if (s->turn && s->done > 0)
        watch_rows(s, figures);
    if (s->turn)
        code = seek(s, figures, &any, err);
    if (!code && any)
        code = qdqi_feed_next(*s->feed, ret, ret_samples, err);
    s->at += *ret_samples;
    s->done += *ret_samples;
    return code;
}
