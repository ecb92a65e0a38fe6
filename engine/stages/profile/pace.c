/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/profile/pace.h"

#include "ground/base/seconds.h"
#include "stages/evaluate/deployed.h"

#include <math.h>
#include <stdlib.h>

enum {
    WARM_UP = 1,
    LEAST_TURNS = 3,
    MOST_TURNS = 201,
    LEAST_TRACED = 3,
    MOST_TRACED = 40
};

/* More turns than the least are taken until they took so long. */
static const double enough_ms = 80;

/* Likewise, for runs with the profiler. */
static const double enough_traced_seconds = 0.05;

struct qdqi_pace {
    struct qdqi_deploy deploy;
    struct qdqi_deploy_options options;
    const struct qdq_model *original;
    struct qdqi_kept_times *kept;
    struct qdqi_deployed_model f; /* the float model, from the first measurement on */
    struct qdqi_feed *feed;
    const struct qdqi_input *inputs; /* of the first run; the feed owns them */
    size_t n_inputs;
    int traced_runs;
};

/* Returns how many runs the profiler sees: more where they are short. */
static int
count_traced(const struct qdqi_attempt *a)
{
    const double each = a->calibrated.run_seconds;
    const double n = each > 0 ? enough_traced_seconds / each : LEAST_TRACED;
    return n < LEAST_TRACED ? LEAST_TRACED : n > MOST_TRACED ? MOST_TRACED : (int)n;
}

static enum qdq_code
open_pace(struct qdqi_pace *p, const struct qdqi_attempt *a, struct qdqi_arena *arena,
          struct qdqi_kept_times **kept, struct qdq_error *err)
{
    const struct qdq_profile_spec *profile = &a->spec->profile;
    /* the values of a profile that is asked for without any, where none is asked for */
    const bool asked = profile->runs > 0;
    const struct qdqi_feed_options options = {.batch = asked ? profile->batch
                                                             : QDQ_PROFILE_BATCH};
    int64_t samples;
    enum qdq_code code;
    p->options = (struct qdqi_deploy_options){.dev = a->context->dev,
                                              .threads = asked ? (int)profile->threads
                                                               : QDQ_PROFILE_THREADS};
    p->original = a->context->original;
    p->n_inputs = p->original->info.n_inputs;
    p->traced_runs = count_traced(a);
    if ((code = qdqi_deployed_runtime(a->context, &p->deploy, err)) ||
        (code =
             qdqi_feed_open(&a->fixed, a->context->dataset, &options, &p->feed, err)) ||
        (code = qdqi_feed_next(p->feed, &p->inputs, &samples, err)))
        return code;
    if (!*kept)
        code = qdqi_kept_times_read(a, p->options.threads, options.batch, arena, kept,
                                    err);
    p->kept = *kept;
    return code;
}

enum qdq_code
qdqi_pace_open(const struct qdqi_attempt *a, struct qdqi_arena *arena,
               struct qdqi_kept_times **kept, struct qdqi_pace **ret,
               struct qdq_error *err)
{
    struct qdqi_pace *p = calloc(1, sizeof *p);
    if (!p)
        return qdqi_no_memory(err);
    enum qdq_code code = open_pace(p, a, arena, kept, err);
    if (code)
        qdqi_pace_close(&p);
    else
        *ret = p;
    return code;
}

void
qdqi_pace_close(struct qdqi_pace **pace)
{
    struct qdqi_pace *p = *pace;
    if (!p)
        return;
    qdqi_deployed_model_close(&p->f);
    qdqi_feed_close(&p->feed);
    free(p);
    *pace = NULL;
}

/* Returns whether the thread that runs a model does all of its work, so that its own processor time
   is what the run takes, however busy the machine is. */
static bool
works_alone(const struct qdqi_pace *p)
{
    return p->deploy.ops->calibrates && !p->options.dev && p->options.threads == 1;
}

static enum qdq_code
run(const struct qdqi_pace *p, const struct qdqi_deployed_model *model, double *ret_ms,
    struct qdq_error *err)
{
    const struct qdqi_output *outputs;
    size_t n;
    const double start = qdqi_seconds_of_thread();
    enum qdq_code code = qdqi_deployed_model_run(model, p->inputs, p->n_inputs,
                                                 &outputs, &n, ret_ms, err);
    if (works_alone(p))
        *ret_ms = (qdqi_seconds_of_thread() - start) * 1e3;
    return code;
}

/* Runs both once. Which one is first changes with each turn, so neither gains by its
   place. */
static enum qdq_code
take_turn(const struct qdqi_pace *p, const struct qdqi_deployed_model *q, int turn,
          double *ret_ratio, double *ret_ms, struct qdq_error *err)
{
    const struct qdqi_deployed_model *const models[] = {&p->f, q};
    double ms[2];
    enum qdq_code code = QDQ_OK;
    for (int k = 0; k < 2 && !code; k++) {
        int i = (turn + k) % 2;
        code = run(p, models[i], &ms[i], err);
    }
    if (!code)
        *ret_ratio = ms[1] / ms[0];
    *ret_ms += code ? 0 : ms[0] + ms[1];
    return code;
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static enum qdq_code
measure(struct qdqi_pace *p, const struct qdq_model *candidate, double *ret,
        struct qdq_error *err)
{
    struct qdqi_deployed_model q = {0};
    double ratios[MOST_TURNS], ignored, ms = 0;
    int n = 0;
    enum qdq_code code = QDQ_OK;
    if (!p->f.ops)
        code = qdqi_deploy_model(&p->deploy, p->original, &p->options, &p->f, err);
    if (!code)
        code = qdqi_deploy_model(&p->deploy, candidate, &p->options, &q, err);
    for (int i = 0; !code && i < WARM_UP; i++)
        code = take_turn(p, &q, i, &ignored, &ignored, err);
    while (!code && n < MOST_TURNS && (n < LEAST_TURNS || ms < enough_ms)) {
        code = take_turn(p, &q, n, &ratios[n], &ms, err);
        n++;
    }
    qdqi_deployed_model_close(&q);
    if (code)
        return code;
    qsort(ratios, (size_t)n, sizeof *ratios, compare_doubles);
    *ret = ratios[n / 2];
    return QDQ_OK;
}

enum qdq_code
qdqi_pace_measure(struct qdqi_pace *p, const struct qdq_model *candidate, double *ret,
                  struct qdq_error *err)
{
    const uint64_t key = qdqi_kept_times_key(candidate, p->inputs, p->n_inputs);
    *ret = qdqi_kept_times_take_ratio(p->kept, key);
    if (!isnan(*ret))
        return QDQ_OK;
    enum qdq_code code = measure(p, candidate, ret, err);
    return code ? code : qdqi_kept_times_add_ratio(p->kept, key, *ret, err);
}

enum qdq_code
qdqi_pace_trace(struct qdqi_pace *p, const struct qdq_model *model,
                struct qdqi_arena *arena, struct qdqi_trace *ret, struct qdq_error *err)
{
    const uint64_t key = qdqi_kept_times_key(model, p->inputs, p->n_inputs);
    if (qdqi_kept_times_take_trace(p->kept, key, ret))
        return QDQ_OK;
    enum qdq_code code =
        qdqi_deploy_trace(&p->deploy, model, &p->options, p->inputs, p->n_inputs,
                          p->traced_runs, arena, ret, err);
    return code ? code : qdqi_kept_times_add_trace(p->kept, key, ret, err);
}
