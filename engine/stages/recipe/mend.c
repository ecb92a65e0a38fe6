/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/mend.h"

#include "stages/evaluate/sample_choice.h"

#include <math.h>
#include <stdio.h>

enum { ROOM = 512 }; /* bytes of the spec */

/* Returns the members that were changed, as JSON. NULL when out of memory. */
static const char *
print_changes(const struct qdqi_variants *v, struct qdqi_arena *arena)
{
    char method[96];
    snprintf(method, sizeof method, "\"calibration\": {\"method\": \"%s\"}",
             v->spec->calibration.method);
    const struct {
        unsigned choice;
        const char *text;
    } rows[] = {
        {QDQ_CHOICE_EQUALIZE, "\"equalize\": true"},
        {QDQ_CHOICE_SMOOTH, "\"smooth\": true"},
        {QDQ_CHOICE_METHOD, method},
        {QDQ_CHOICE_BIASES, "\"bias_correction\": true"},
        {QDQ_CHOICE_ROUNDING, "\"weights\": {\"rounding\": \"gptq\"}"},
    };
    char text[ROOM] = "{";
    size_t n = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (v->changed & rows[i].choice)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n > 1 ? ", " : "",
                                  rows[i].text);
    snprintf(text + n, sizeof text - n, "}");
    return qdqi_arena_strdup(arena, text);
}

enum qdq_code
qdqi_compare_with_all(struct qdqi_candidates *c, bool *ret_none, struct qdq_error *err)
{
    struct qdqi_feed_options options = {.batch = qdqi_attempt_batch(c->attempt)};
    struct qdq_error why = {0};
    struct qdqi_feed *feed = NULL;
    c->comparer = NULL;
    enum qdq_code code = qdqi_feed_open(
        &c->attempt->fixed, c->attempt->context->dataset, &options, &feed, err);
    if (code)
        return code;
    qdqi_choose_samples(c->attempt, qdqi_feed_available(feed), &options);
    qdqi_feed_close(&feed);
    code =
        qdqi_comparer_open(c->attempt, &options, QDQ_STAGE_ADVISE, &c->comparer, &why);
    *ret_none = code == QDQ_RUNTIME_MISSING || code == QDQ_RUN_FAILED;
    if (!code && !isnan(c->max_latency))
        code = qdqi_comparer_measure_latency(c->comparer, c->attempt, &why);
    return code && !*ret_none
               ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
               : QDQ_OK;
}

/* Judges the changes on the samples of the evaluation. */
static enum qdq_code
confirm(struct qdqi_variants *v, bool *ret_good, struct qdq_error *err)
{
    struct qdqi_candidates *c = v->candidates;
    struct qdqi_comparer *few = c->comparer;
    bool none;
    *ret_good = false;
    enum qdq_code code = qdqi_compare_with_all(c, &none, err);
    if (!code && !none && !(code = qdqi_variants_judge(v, v->spec, &v->best, err)))
        *ret_good = qdqi_grade_fits(&v->best) && v->best.sqnr_db >= c->goal_db &&
                    !(qdqi_comparer_top1(c->comparer) < c->min_top1);
    qdqi_comparer_close(&c->comparer);
    c->comparer = few;
    return code;
}

enum qdq_code
qdqi_mend(struct qdqi_candidates *c, int64_t bound, bool (*is_time_up)(void *arg),
          void *arg, struct qdqi_mending *ret, struct qdq_error *err)
{
    struct qdqi_variants v = {.candidates = c,
                              .bound = bound,
                              .only_tries = true,
                              .is_time_up = is_time_up,
                              .arg = arg,
                              .spec = c->attempt->spec};
    bool is_good = false;
    *ret = (struct qdqi_mending){.sqnr_db = NAN};
    if (c->attempt->context->asked->recipe == QDQ_RECIPE_BEST)
        return QDQ_OK;
    enum qdq_code code = qdqi_variants_try(&v, err);
    if (code || v.changed == 0 || !qdqi_grade_fits(&v.best) ||
        !(v.best.sqnr_db >= c->goal_db) || (code = confirm(&v, &is_good, err)) ||
        !is_good)
        return code;
    ret->sqnr_db = v.best.sqnr_db;
    ret->spec = print_changes(&v, c->result->scratch);
    return ret->spec ? QDQ_OK : qdqi_no_memory(err);
}
