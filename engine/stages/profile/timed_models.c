/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/profile/timed_models.h"

#include "stages/evaluate/deployed.h"
#include "stages/evaluate/kernels/counted_model.h"
#include "qdq/targets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Runs that the profiler sees, and nodes of each model that the report lists. */
enum { TRACED_RUNS = 10, SLOWEST = 20 };

/* --- the models ----------------------------------------------------------- */

static const struct qdq_model *
model_of(const struct qdqi_timed_models *s, int side)
{
    return side == QDQ_SIDE_QUANTIZED ? s->quantized : s->attempt->context->original;
}

static struct qdqi_deploy_options
options_of(const struct qdqi_timed_models *s, int side)
{
    return (struct qdqi_deploy_options){.dev = s->attempt->context->dev,
                                        .threads =
                                            (int)s->attempt->spec->profile.threads,
                                        .own_precision = side == QDQI_SIDE_DEFAULT};
}

static enum qdq_code
open_side(struct qdqi_timed_models *s, int side, struct qdq_error *err)
{
    const struct qdqi_deploy_options options = options_of(s, side);
    if (side == QDQ_SIDE_QUANTIZED && qdqi_kernels_wait(s->attempt->context, s->result))
        return qdqi_deploy_counted(s->attempt->context, s->result, &s->deploy,
                                   model_of(s, side), &options, &s->models[side], err);
    return qdqi_deploy_model(&s->deploy, model_of(s, side), &options, &s->models[side],
                             err);
}

enum qdq_code
qdqi_timing_runtime(const struct qdqi_context *c, struct qdqi_deploy *ret,
                    struct qdq_error *err)
{
    const struct qdq_target *target = c->asked->target;
    return qdqi_engine_ops(c->engine, target->runtime)
               ? qdqi_deployed_runtime(c, ret, err)
               : qdq_error_set(
                     err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                     "the runtime of target %s does not run here, and the time "
                     "of another one tells nothing",
                     target->name);
}

enum qdq_code
qdqi_timing_check_gate(const struct qdqi_context *c, struct qdq_error *err)
{
    struct qdqi_deploy deploy;
    struct qdq_error why = {0};
    if (isnan(c->asked->accept.max_latency_ratio))
        return QDQ_OK;
    enum qdq_code code = qdqi_timing_runtime(c, &deploy, &why);
    return code == QDQ_RUNTIME_MISSING
               ? qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER,
                               "/accept/max_latency_ratio",
                               "the latency cannot be measured: %s", why.text)
           : code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                  : QDQ_OK;
}

/* Opens the float model with the runtime's own precision, where that is another one. */
static enum qdq_code
open_default(struct qdqi_timed_models *s, struct qdq_error *err)
{
    struct qdqi_deployed_model *model = &s->models[QDQI_SIDE_DEFAULT];
    s->n = QDQI_SIDE_DEFAULT;
    enum qdq_code code = s->deploy.ops->chooses_precision
                             ? open_side(s, QDQI_SIDE_DEFAULT, err)
                             : QDQ_OK;
    if (code || !s->deploy.ops->chooses_precision)
        return code;
    if (strcmp(model->ops->precision(model->model), "f32") == 0)
        qdqi_deployed_model_close(model);
    else
        s->n = QDQI_MOST_SIDES;
    return QDQ_OK;
}

enum qdq_code
qdqi_timed_models_open(struct qdqi_timed_models *s, struct qdq_dataset *data,
                       struct qdq_error *err)
{
    const struct qdq_work *work = s->attempt->context->work;
    const struct qdq_external external = {work->output_data_name, work->output_data};
    const struct qdqi_feed_options options = {.batch = s->attempt->spec->profile.batch};
    const bool split = s->result->report->external_bytes > 0;
    enum qdq_code code = qdqi_timing_runtime(s->attempt->context, &s->deploy, err);
    if (code ||
        (code = qdqi_feed_open(&s->attempt->fixed, data, &options, &s->feed, err)) ||
        (code = qdqi_feed_next(s->feed, &s->inputs, &s->batch, err)) ||
        (code =
             qdq_model_open_files(work->output, &external, split, &s->quantized, err)))
        return code;
    for (int side = 0; !code && side < QDQ_N_SIDES; side++)
        code = open_side(s, side, err);
    return code ? code : open_default(s, err);
}

void
qdqi_timed_models_close(struct qdqi_timed_models *s)
{
    for (int side = 0; side < QDQI_MOST_SIDES; side++)
        qdqi_deployed_model_close(&s->models[side]);
    qdq_model_free(&s->quantized);
    qdqi_feed_close(&s->feed);
}

enum qdq_code
qdqi_timed_models_run(struct qdqi_timed_models *s, int side, double *ret_ms,
                      struct qdq_error *err)
{
    const struct qdqi_output *outputs;
    size_t n;
    return qdqi_deployed_model_run(&s->models[side], s->inputs,
                                   s->attempt->context->original->info.n_inputs,
                                   &outputs, &n, ret_ms, err);
}

/* --- the times of nodes --------------------------------------------------- */

static int
compare_times(const void *a, const void *b)
{
    double x = ((const struct qdqi_traced_node *)a)->ms;
    double y = ((const struct qdqi_traced_node *)b)->ms;
    return (y > x) - (y < x);
}

static bool
add_op(struct qdq_profile *ret, int side, const char *op, double ms,
       struct qdqi_arena *arena)
{
    struct qdq_op_time *ops = (struct qdq_op_time *)(uintptr_t)ret->ops;
    size_t i = 0;
    while (i < ret->n_ops && strcmp(ops[i].op, op) != 0)
        i++;
    if (i == ret->n_ops) {
        ops[i].op = qdqi_arena_strdup(arena, op);
        ret->n_ops++;
    }
    ops[i].ms[side] += ms;
    return ops[i].op != NULL;
}

static enum qdq_code
report_side(const struct qdqi_timed_models *s, int side, struct qdqi_trace *trace,
            struct qdq_profile *ret, struct qdq_error *err)
{
    struct qdqi_arena *arena = s->attempt->arena;
    struct qdq_node_time *nodes = (struct qdq_node_time *)(uintptr_t)ret->nodes;
    bool ok = true;
    qsort(trace->nodes, trace->n_nodes, sizeof *trace->nodes, compare_times);
    ret->sides[side].peak_bytes = trace->peak_bytes;
    for (size_t i = 0; ok && i < trace->n_nodes; i++) {
        const struct qdqi_traced_node *node = &trace->nodes[i];
        double ms = node->ms / TRACED_RUNS;
        ok = add_op(ret, side, node->op, ms, arena);
        if (!ok || i >= SLOWEST)
            continue;
        nodes[ret->n_nodes] =
            (struct qdq_node_time){.quantized = side == QDQ_SIDE_QUANTIZED,
                                   .name = qdqi_arena_strdup(arena, node->name),
                                   .op = qdqi_arena_strdup(arena, node->op),
                                   .provider = qdqi_arena_strdup(arena, node->provider),
                                   .ms = ms};
        ok = nodes[ret->n_nodes].name && nodes[ret->n_nodes].op &&
             nodes[ret->n_nodes].provider;
        ret->n_nodes++;
    }
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

static int
compare_ops(const void *a, const void *b)
{
    const struct qdq_op_time *x = a, *y = b;
    double left = fmax(x->ms[0], x->ms[1]), right = fmax(y->ms[0], y->ms[1]);
    return (right > left) - (right < left);
}

static enum qdq_code
report_all(struct qdqi_timed_models *s, struct qdqi_trace traces[QDQ_N_SIDES],
           struct qdq_profile *ret, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    size_t n = 0;
    for (int side = 0; side < QDQ_N_SIDES; side++)
        n += traces[side].n_nodes;
    ret->ops = qdqi_arena_array(s->attempt->arena, n, sizeof *ret->ops);
    ret->nodes = qdqi_arena_array(s->attempt->arena, (size_t)SLOWEST * QDQ_N_SIDES,
                                  sizeof *ret->nodes);
    if (!ret->ops || !ret->nodes)
        return qdqi_no_memory(err);
    for (int side = 0; !code && side < QDQ_N_SIDES; side++)
        code = report_side(s, side, &traces[side], ret, err);
    qsort((void *)(uintptr_t)ret->ops, ret->n_ops, sizeof *ret->ops, compare_ops);
    return code;
}

enum qdq_code
qdqi_timed_models_trace(struct qdqi_timed_models *s, struct qdq_profile *ret,
                        struct qdq_error *err)
{
    struct qdqi_trace traces[QDQ_N_SIDES];
    for (int side = 0; side < QDQ_N_SIDES; side++) {
        const struct qdqi_deploy_options options = options_of(s, side);
        enum qdq_code code =
            qdqi_deploy_trace(&s->deploy, model_of(s, side), &options, s->inputs,
                              s->attempt->context->original->info.n_inputs, TRACED_RUNS,
                              s->attempt->scratch, NULL, &traces[side], err);
        if (code)
            return code;
    }
    for (int side = 0; side < QDQ_N_SIDES; side++)
        if (!traces[side].nodes)
            return qdqi_attempt_warn(
                s->attempt, err, "profile_without_nodes", NULL,
                "memory and the times of operators were not measured: "
                "this process cannot write the profiler's file");
    return report_all(s, traces, ret, err);
}
