/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/profile/pace.h"

#include "ground/base/order.h"
#include "ground/base/seconds.h"
#include "stages/evaluate/deployed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WARM_UP = 1,
    LEAST_TURNS = 3,
    MOST_TURNS = 201,
    LEAST_TRACED = 3,
    MOST_TRACED = 40
};

/* More turns than the least are taken until they took so long. */
static const double enough_ms = 80;

/* A turn of that length tells whether a candidate is slower than another one by so much. */
static const double telling_ms = 20, far_slower = 1.15;

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
    bool traces; /* the float model is going to be traced */
    struct qdqi_arena *arena;
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
open_pace(struct qdqi_pace *p, const struct qdqi_attempt *a, struct qdq_error *err)
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
    if ((code = qdqi_deployed_runtime(a->context, &p->deploy, err)) ||
        (code =
             qdqi_feed_open(&a->fixed, a->context->dataset, &options, &p->feed, err)) ||
        (code = qdqi_feed_next(p->feed, &p->inputs, &samples, err)))
        return code;
    p->traced_runs = count_traced(a);
    /* Those that judge are traced: see qdqi_pace_shares(). */
    p->options.traced = p->deploy.ops->has_one_thread;
    return qdqi_kept_times_get(a, &p->kept, err);
}

enum qdq_code
qdqi_pace_open(const struct qdqi_attempt *a, struct qdqi_arena *arena,
               struct qdqi_pace **ret, struct qdq_error *err)
{
    struct qdqi_pace *p = calloc(1, sizeof *p);
    if (!p)
        return qdqi_no_memory(err);
    p->arena = arena;
    enum qdq_code code = open_pace(p, a, err);
    if (code)
        qdqi_pace_close(&p);
    else
        *ret = p;
    return code;
}

void
qdqi_pace_expect_traces(struct qdqi_pace *p)
{
    p->traces = true;
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
    else if (!code && model->ops->processor_ms &&
             model->ops->processor_ms(model->model) > 0)
        *ret_ms = model->ops->processor_ms(model->model);
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

bool
qdqi_pace_shares(const struct qdqi_pace *p, int threads)
{
    const struct qdqi_deploy_ops *ops = p->deploy.ops;
    return (ops->calibrates || ops->has_one_thread) && !p->options.dev &&
           p->options.threads == threads;
}

/* Adds what a run of the float model, which is open, takes outside of its kernels as a node of its
   own: without it a small model's kernels look like all that the model takes. */
static enum qdq_code
add_outside(const struct qdqi_pace *p, struct qdqi_arena *arena, struct qdqi_trace *to,
            struct qdq_error *err)
{
    double least = INFINITY, ms, inside = 0;
    struct qdqi_traced_node *nodes =
        qdqi_arena_array(arena, to->n_nodes + 1, sizeof *nodes);
    if (!nodes)
        return qdqi_no_memory(err);
    for (int i = 0; i < p->traced_runs; i++) {
        enum qdq_code code = run(p, &p->f, &ms, err);
        if (code)
            return code;
        least = fmin(least, ms);
    }
    for (size_t i = 0; i < to->n_nodes; i++)
        inside += to->nodes[i].least_ms;
    memcpy(nodes, to->nodes, to->n_nodes * sizeof *nodes);
    nodes[to->n_nodes++] =
        (struct qdqi_traced_node){.name = "(outside)",
                                  .op = "(outside)",
                                  .provider = "",
                                  .kind = QDQ_NODE_OTHER,
                                  .least_ms = fmax(least - inside, 0)};
    to->nodes = nodes;
    return QDQ_OK;
}

enum qdq_code
qdqi_pace_trace(struct qdqi_pace *p, const struct qdq_model *model,
                struct qdqi_arena *arena, struct qdqi_trace *ret, struct qdq_error *err)
{
    const uint64_t key = qdqi_kept_times_key(model, p->inputs, p->n_inputs);
    struct qdqi_deployed_model *stays =
        model == p->original && !p->f.ops ? &p->f : NULL;
    if (qdqi_kept_times_take_trace(p->kept, key, ret))
        return QDQ_OK;
    enum qdq_code code =
        qdqi_deploy_trace(&p->deploy, model, &p->options, p->inputs, p->n_inputs,
                          p->traced_runs, arena, stays, ret, err);
    if (!code && stays && p->deploy.ops->processor_ms && ret->n_nodes > 0)
        code = add_outside(p, arena, ret, err);
    return code ? code : qdqi_kept_times_add_trace(p->kept, key, ret, err);
}

/* Opens the float model, and has both models behind them what only first runs do. */
static enum qdq_code
warm_up(struct qdqi_pace *p, const struct qdqi_deployed_model *q, bool q_has_run,
        struct qdq_error *err)
{
    struct qdqi_trace trace;
    double ignored = 0;
    enum qdq_code code = QDQ_OK;
    if (!p->f.ops && p->traces)
        code = qdqi_pace_trace(p, p->original, p->arena, &trace, err);
    const bool f_has_run = p->f.ops != NULL;
    if (!code && !f_has_run)
        code = qdqi_deploy_model(&p->deploy, p->original, &p->options, &p->f, err);
    for (int i = 0; !code && i < WARM_UP && !f_has_run; i++)
        code = run(p, &p->f, &ignored, err);
    for (int i = 0; !code && i < WARM_UP && !q_has_run; i++)
        code = run(p, q, &ignored, err);
    return code;
}

/* Takes turns until the ratio is known. */
static enum qdq_code
take_turns(struct qdqi_pace *p, const struct qdqi_deployed_model *q, double least,
           double *ret, struct qdq_error *err)
{
    double ratios[MOST_TURNS], ms = 0;
    int n = 0;
    bool is_far = false;
    enum qdq_code code = QDQ_OK;
    while (!code && !is_far && n < MOST_TURNS && (n < LEAST_TURNS || ms < enough_ms)) {
        code = take_turn(p, q, n, &ratios[n], &ms, err);
        is_far = !code && n == 0 && ms > telling_ms && ratios[0] > least * far_slower;
        n++;
    }
    if (code)
        return code;
    qsort(ratios, (size_t)n, sizeof *ratios, qdqi_compare_doubles);
    *ret = ratios[n / 2];
    return QDQ_OK;
}

/* Keeps that a candidate was not measured. A program that failed may have run the float model, which is opened again
   then. */
static enum qdq_code
keep_failure(struct qdqi_pace *p, uint64_t key, enum qdq_code code,
             struct qdq_error *err)
{
    struct qdq_error full = {0};
    if (code != QDQ_RUN_FAILED && code != QDQ_RUNNER_FAILED)
        return code;
    if (code == QDQ_RUNNER_FAILED)
        qdqi_deployed_model_close(&p->f);
    return qdqi_kept_times_add_failure(p->kept, key, &full) ? qdqi_no_memory(err)
                                                            : code;
}

enum qdq_code
qdqi_pace_measure(struct qdqi_pace *p, const struct qdq_model *candidate,
                  const struct qdqi_deployed_model *open, double least, double *ret,
                  struct qdq_error *err)
{
    const uint64_t key = qdqi_kept_times_key(candidate, p->inputs, p->n_inputs);
    struct qdqi_deployed_model own = {0};
    const struct qdqi_deployed_model *q = open ? open : &own;
    enum qdq_code code = QDQ_OK;
    *ret = qdqi_kept_times_take_ratio(p->kept, key);
    if (*ret == 0)
        return qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL,
                             "it failed before the job was begun again");
    if (!isnan(*ret))
        return QDQ_OK;
    if (!open)
        code = qdqi_deploy_model(&p->deploy, candidate, &p->options, &own, err);
    if (!code)
        code = warm_up(p, q, open != NULL, err);
    if (!code)
        code = take_turns(p, q, least, ret, err);
    qdqi_deployed_model_close(&own);
    return code ? keep_failure(p, key, code, err)
                : qdqi_kept_times_add_ratio(p->kept, key, *ret, err);
}
