/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread reads the inputs of some runs for each worker, because a dataset has
 * one reader at a time. Then all workers make their runs. The averages of extremes are updated
 * after each such round, in the order of the samples; everything else is merged at the end.
 */
#include "config.h"
#include "stages/calibrate/parallel.h"

#include "ground/base/tasks.h"
#include "stages/attempt/float_outputs.h"
#include "transform/rewrite/insert.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_WORKERS = 4,
    LEAST_RUNS = 4,         /* of a worker: fewer are not worth another session */
    MOST_RUNS = 64,         /* of a worker in a round */
    MOST_READ = 1 << 20,    /* bytes of the inputs of a worker in a round */
    MOST_MODEL = 2 << 20,   /* bytes of the model, which each worker loads */
    MOST_INPUT = 128 << 10, /* bytes of the inputs of a run; activations take more */
    MOST_OUTPUT = 64 << 10, /* bytes of the outputs of a run that are kept */
    MOST_TENSORS = 512      /* each has a histogram for each worker */
};

/* The inputs of a run, in one block of memory. */
struct run {
    struct qdqi_input *inputs;
    int64_t first, samples;
    struct qdqi_float_run made;
};

struct worker {
    struct qdqi_observers observers;
    struct qdqi_session *session;
    struct run runs[MOST_RUNS]; /* of this round */
    size_t n_runs;
    enum qdq_code failure; /* a worker that failed does nothing any more */
};

struct work {
    const struct qdqi_parallel *asked;
    const Onnx__ModelProto *observed; /* the model with Observe nodes */
    struct qdqi_runtime *runtime;
    struct qdqi_arena *arena;
    size_t n, n_at_once; /* workers, and runs of each in a round */
    int64_t samples, runs;
    struct worker workers[MOST_WORKERS];
};

/* --- whether it pays --------------------------------------------------------- */

static size_t
number_of_workers(const struct qdqi_parallel *asked)
{
    const size_t threads = (size_t)asked->attempt->context->engine->threads;
    const size_t n = (size_t)qdqi_feed_runs(asked->feed) / LEAST_RUNS;
    const size_t most = threads < MOST_WORKERS ? threads : MOST_WORKERS;
    return n < most ? n : most;
}

/* Returns whether a tensor of a nested graph is observed, which a run may reach several
   times. */
static bool
observes_nested(const struct qdqi_parallel *asked)
{
    const struct qdq_plan *plan = asked->attempt->plan;
    for (size_t i = 0; i < plan->view.n_tensors; i++)
        if (asked->wanted[i] && plan->activations[i].tensor->scope != 0)
            return true;
    return false;
}

bool
qdqi_parallel_pays(const struct qdqi_parallel *asked)
{
    const struct qdqi_attempt *a = asked->attempt;
    return !a->context->dev && a->context->engine->executor &&
           number_of_workers(asked) > 1 && qdqi_model_bytes(a->model) <= MOST_MODEL &&
           qdqi_feed_run_bytes(asked->feed) <= MOST_INPUT &&
           asked->observers->n <= MOST_TENSORS && !observes_nested(asked) &&
           !qdqi_model_keeps_state(a->model);
}

/* --- opening ------------------------------------------------------------------ */

static enum qdq_code
init_observers(struct work *w, struct qdqi_observers *to, struct qdq_error *err)
{
    const struct qdqi_observers *from = w->asked->observers;
    const size_t samples = w->n_at_once * (size_t)qdqi_feed_run_samples(w->asked->feed);
    if (!qdqi_observers_init(to, w->asked->attempt->plan->view.tensors, from->n,
                             from->needs, 1, w->arena) ||
        !qdqi_observers_postpone(to, samples))
        return qdqi_no_memory(err);
    to->dtypes = from->dtypes;
    to->channels = from->channels;
    return QDQ_OK;
}

static enum qdq_code
open_worker(void *arg, size_t i, struct qdq_error *err)
{
    struct work *w = arg;
    struct worker *worker = &w->workers[i];
    const struct qdqi_session_options options = {
        .observers = &worker->observers, .one_thread = true, .is_copy = i > 0};
    if (!worker->failure)
        worker->failure =
            qdqi_session_open(w->runtime, w->asked->attempt->model, w->observed,
                              &options, &worker->session, err);
    return worker->failure;
}

/* Returns the runs of a worker in a round: all rounds have as many, so that no worker waits
   while another one makes the last runs. */
static size_t
number_at_once(const struct work *w)
{
    const struct qdqi_feed *feed = w->asked->feed;
    const size_t read = MOST_READ / (qdqi_feed_run_bytes(feed) + 1);
    const size_t most = w->n * (read < MOST_RUNS ? read : MOST_RUNS);
    const size_t runs = (size_t)qdqi_feed_runs(feed);
    const size_t rounds = (runs + most - 1) / most;
    return (runs + w->n * rounds - 1) / (w->n * rounds);
}

static enum qdq_code
prepare(struct work *w, struct qdq_error *err)
{
    const struct qdqi_parallel *asked = w->asked;
    w->n = number_of_workers(asked);
    w->n_at_once = number_at_once(w);
    if (!(w->arena = qdqi_arena_new()))
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_insert_observers(
        asked->attempt->model, asked->attempt->plan, asked->wanted,
        asked->observers->channels, NULL, 0, w->arena, &w->observed, err);
    for (size_t i = 0; !code && i < w->n; i++)
        code = init_observers(w, &w->workers[i].observers, err);
    return code;
}

/* --- a round ------------------------------------------------------------------- */

static void
free_runs(struct worker *worker)
{
    while (worker->n_runs > 0) {
        struct run *run = &worker->runs[--worker->n_runs];
        free(run->inputs);
        free(run->made.outputs);
    }
}

/* Copies what the feed keeps until its next run only. */
static enum qdq_code
copy_inputs(const struct qdqi_input *from, size_t n, struct qdqi_input **ret,
            struct qdq_error *err)
{
    size_t size = n * sizeof *from;
    for (size_t i = 0; i < n; i++)
        size += from[i].rank * sizeof(int64_t) + (from[i].size + 7) / 8 * 8;
    struct qdqi_input *to = malloc(size + 1);
    if (!to)
        return qdqi_no_memory(err);
    char *at = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        const size_t shape = from[i].rank * sizeof(int64_t);
        to[i] = from[i];
        to[i].shape = memcpy(at, from[i].shape, shape);
        to[i].data = at + shape;
        if (from[i].size > 0)
            memcpy(at + shape, from[i].data, from[i].size);
        at += shape + (from[i].size + 7) / 8 * 8;
    }
    *ret = to;
    return QDQ_OK;
}

/* Reads the inputs of a worker's runs: fewer than asked for at the end of the data. */
static enum qdq_code
read_runs(struct work *w, struct worker *worker, struct qdq_error *err)
{
    const size_t n = w->asked->attempt->model->info.n_inputs;
    while (worker->n_runs < w->n_at_once) {
        struct run *run = &worker->runs[worker->n_runs];
        const struct qdqi_input *inputs;
        enum qdq_code code =
            qdqi_feed_next(w->asked->feed, &inputs, &run->samples, err);
        if (code || run->samples == 0)
            return code;
        if ((code = copy_inputs(inputs, n, &run->inputs, err)))
            return code;
        run->first = w->samples;
        run->made.outputs = NULL;
        worker->n_runs++;
        w->samples += run->samples;
    }
    return QDQ_OK;
}

static enum qdq_code
make_runs(void *arg, size_t i, struct qdq_error *err)
{
    struct work *w = arg;
    struct worker *worker = &w->workers[i];
    const struct qdqi_output *outputs;
    size_t n_outputs;
    for (size_t k = 0; k < worker->n_runs && !worker->failure; k++) {
        struct run *run = &worker->runs[k];
        worker->failure =
            qdqi_observers_begin(&worker->observers, run->samples)
                ? qdqi_session_run(worker->session, run->inputs,
                                   w->asked->attempt->model->info.n_inputs, &outputs,
                                   &n_outputs, err)
                : qdqi_no_memory(err);
        if (!worker->failure)
            run->made = qdqi_float_run_copy(run->first, run->samples, outputs,
                                            n_outputs, MOST_OUTPUT);
    }
    return worker->failure;
}

/* Keeps the outputs of a worker's runs, which follow those of the worker before it. */
static void
keep_outputs(const struct work *w, struct worker *worker)
{
    const struct qdqi_attempt *a = w->asked->attempt;
    for (size_t k = 0; k < worker->n_runs; k++)
        if (worker->runs[k].made.outputs &&
            a->model->proto == a->context->original->proto)
            qdqi_float_outputs_put(a->context->float_outputs, &worker->runs[k].made);
}

/* Ends a round. Returns whether the observations can be used. */
static bool
end_round(struct work *w)
{
    bool can = true;
    for (size_t i = 0; i < w->n; i++) {
        struct worker *worker = &w->workers[i];
        can = can && qdqi_observers_can_merge(&worker->observers);
        if (can)
            qdqi_observers_average(w->asked->observers, &worker->observers);
        w->runs += (int64_t)worker->n_runs;
        keep_outputs(w, worker);
        free_runs(worker);
    }
    return can;
}

/* --- all rounds ----------------------------------------------------------------- */

/* *ret_done is whether all runs were made. */
static enum qdq_code
make_rounds(struct work *w, const struct qdqi_tasks *tasks, bool *ret_done,
            struct qdq_error *err)
{
    const int64_t total = qdqi_feed_samples(w->asked->feed);
    struct qdq_error ignored = {0};
    bool works = !qdqi_tasks_run(tasks, w->n, open_worker, w, &ignored);
    enum qdq_code code = QDQ_OK;
    double seconds = 0;
    while (!code && works && w->samples < total) {
        code = qdqi_attempt_progress(w->asked->attempt, QDQ_STAGE_CALIBRATE,
                                     (uint64_t)w->samples, (uint64_t)total, err);
        for (size_t i = 0; !code && works && i < w->n; i++)
            works = !read_runs(w, &w->workers[i], &ignored);
        const double began = qdqi_seconds_now();
        works = !code && works && !qdqi_tasks_run(tasks, w->n, make_runs, w, &ignored);
        seconds += qdqi_seconds_now() - began;
        works = end_round(w) && works;
    }
    *ret_done = !code && works;
    if (*ret_done)
        w->asked->attempt->calibrated.run_seconds =
            seconds * (double)w->n / (double)w->runs;
    return code ? code
                : qdqi_attempt_progress(w->asked->attempt, QDQ_STAGE_CALIBRATE,
                                        (uint64_t)w->samples, (uint64_t)total, err);
}

static void
close_workers(struct work *w)
{
    for (size_t i = 0; i < w->n; i++) {
        free_runs(&w->workers[i]);
        qdqi_session_close(&w->workers[i].session);
    }
    qdqi_arena_free(&w->arena);
}

enum qdq_code
qdqi_parallel_run(const struct qdqi_parallel *asked, struct qdqi_runtime *runtime,
                  bool *ret_done, struct qdq_error *err)
{
    struct work *w = calloc(1, sizeof *w);
    *ret_done = false;
    if (!w)
        return qdqi_no_memory(err);
    *w = (struct work){.asked = asked, .runtime = runtime};
    enum qdq_code code = prepare(w, err);
    const struct qdqi_tasks tasks = {
        .executor = asked->attempt->context->engine->executor, .threads = (int)w->n};
    if (!code)
        code = make_rounds(w, &tasks, ret_done, err);
    for (size_t i = 0; *ret_done && i < w->n; i++)
        qdqi_observers_merge(asked->observers, &w->workers[i].observers);
    asked->attempt->calibrated.inferences += *ret_done ? w->runs : 0;
    asked->attempt->effort.threads = (int)w->n;
    close_workers(w);
    free(w);
    return code;
}
