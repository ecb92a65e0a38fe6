/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the nodes that ONNX Runtime runs with integer kernels. They are read from
   the model that ONNX Runtime writes after it has optimized ours for this processor: the
   session that evaluates or profiles the result writes it, so that the result is not loaded
   once more. A result that nothing runs is loaded for its kernels alone if it is small. */
#include "config.h"
#include "stages/evaluate/kernels/counted_model.h"
#include "stages/evaluate/kernels/kernels.h"

#include "files/data/file.h"
#include "graph/layers/operators.h"
#include "stages/evaluate/deployed.h"
#include "stages/evaluate/dequantized.h"
#include "stages/evaluate/kernels/traced_kernels.h"
#include "plan/placement/target.h"
#include "qdq/targets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A result up to this size is loaded for its kernels alone. A larger one is not, because
   the runtime makes its own copy of the weights in another order. */
static const uint64_t MAX_UNASKED = UINT64_C(1) << 24;

/* --- the optimized model -------------------------------------------------- */

/* Loads the result for its kernels alone. *ret is the file that it becomes. */
static enum qdq_code
write_optimized(const struct qdqi_context *c, struct qdqi_result *result, int *ret,
                struct qdq_error *err)
{
    const struct qdq_external data = {c->work->output_data_name, c->work->output_data};
    const bool split = result->report->external_bytes > 0;
    struct qdqi_deploy_options options = {0};
    struct qdq_model *model = NULL;
    struct qdqi_deploy deploy;
    struct qdqi_deployed_model loaded = {0};
    enum qdq_code code = qdqi_deployed_runtime(c, &deploy, err);
    if (!code)
        code = qdq_model_open_files(c->work->output, &data, split, &model, err);
    if (!code)
        code = qdqi_deploy_to_file(result, &deploy, model, &options, &loaded, err);
    qdqi_deployed_model_close(&loaded);
    qdq_model_free(&model);
    *ret = result->optimized;
    return code;
}

static enum qdq_code
open_optimized(const struct qdqi_context *c, struct qdqi_result *result,
               struct qdq_model **ret, struct qdq_error *err)
{
    int fd = result->optimized;
    enum qdq_code code = fd < 0 ? write_optimized(c, result, &fd, err) : QDQ_OK;
    return code ? code : qdq_model_open(fd, ret, err);
}

/* --- counting ------------------------------------------------------------- */

struct counting {
    const struct qdqi_attempt *attempt;
    const struct qdq_model *optimized;
    const struct qdqi_kernel_names *names;
    struct qdqi_map *floats;   /* names of the nodes that compute in floating point */
    struct qdqi_map *integers; /* likewise, of those that compute with integers */
    struct qdqi_map *paired;   /* names of the tensors with a Q/DQ pair */
    struct qdqi_map *raw; /* names of the layers that read tensors without their pair */
    bool halves;          /* whether there are float16 tensors */
    struct qdq_kernels *ret;
    /* the layers whose weight is dequantized in each run, and the first of them */
    size_t n_dequantized;
    const struct qdq_float_kernel *first;
};

static enum qdq_code
count_ops(struct counting *c, struct qdq_error *err)
{
    const struct qdq_model_info *info = &c->optimized->info;
    struct qdqi_arena *arena = c->attempt->arena;
    struct qdq_op_count *ops = qdqi_arena_array(arena, info->n_ops, sizeof *ops);
    if (!ops)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < info->n_ops; i++) {
        const char *op = strrchr(info->ops[i].op, ':');
        op = op ? op + 1 : info->ops[i].op;
        const struct qdqi_traced_node node = {.name = "", .op = op, .provider = ""};
        if (c->names->is_conversion(&node))
            c->ret->conversions += info->ops[i].count;
        if (!c->names->is_integer(&node))
            continue;
        c->ret->integer += info->ops[i].count;
        ops[c->ret->n_ops] =
            (struct qdq_op_count){qdqi_arena_strdup(arena, op), info->ops[i].count};
        if (!ops[c->ret->n_ops++].op)
            return qdqi_no_memory(err);
    }
    qsort(ops, c->ret->n_ops, sizeof *ops, qdqi_compare_ops);
    c->ret->ops = ops;
    return QDQ_OK;
}

/* Notes the node's name as the runtime has it and as the model has it. */
static bool
note_name(const struct counting *c, struct qdqi_map *names, const char *given)
{
    char *name = qdqi_arena_strdup(c->attempt->scratch, given);
    char *own = qdqi_arena_strdup(c->attempt->scratch, given);
    if (!name || !own)
        return false;
    own[c->names->own_length(own)] = '\0';
    return qdqi_map_put(names, name, name) && qdqi_map_put(names, own, own);
}

/* Collects the names of the nodes that compute in floating point, and of those that compute with
   integers. */
static enum qdq_code
note_nodes(struct counting *c, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &c->optimized->graph;
    bool ok = true;
    for (size_t i = 0; ok && i < graph->n_nodes; i++) {
        const Onnx__NodeProto *proto = graph->nodes[i].proto;
        const struct qdqi_traced_node node = {
            .name = proto->name, .op = proto->op_type, .provider = ""};
        if (!node.name || !*node.name)
            continue;
        if (c->names->is_float_layer(&node))
            ok = note_name(c, c->floats, node.name);
        else if (c->names->is_integer(&node))
            ok = note_name(c, c->integers, node.name);
    }
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

static const char *
format_of(const struct qdqi_attempt *a, const struct qdq_layer *layer)
{
    bool bytes = true;
    for (size_t i = 0; i < layer->n_inputs + layer->n_outputs && bytes; i++) {
        const size_t row = i < layer->n_inputs
                               ? layer->input_rows[i]
                               : layer->output_rows[i - layer->n_inputs];
        const enum qdqi_format format = a->plan->activations[row].format;
        bytes = format == QDQI_TO_INT8 || format == QDQI_TO_UINT8;
    }
    return bytes ? NULL : "there are integer kernels of int8 and uint8 alone";
}

/* Returns whether the layer's output, or that of the Relu behind it, has a pair. All
   readers of that tensor read the pair. */
static bool
makes_integers(const struct counting *c, const struct qdqi_node *node)
{
    const struct qdqi_tensor *t = node->outputs[0];
    if (qdqi_map_get(c->paired, t->name))
        return true;
    const struct qdqi_node *next = t->uses && !t->uses->next && !t->is_output
                                       ? &c->attempt->model->graph.nodes[t->uses->node]
                                       : NULL;
    const struct qdqi_hooks *hooks = c->attempt->spec->target->hooks;
    return next && hooks->is_clipping && hooks->is_clipping(next->proto->op_type) &&
           next->outputs[0] && qdqi_map_get(c->paired, next->outputs[0]->name);
}

static bool
is_read_raw(const struct counting *c, const struct qdqi_tensor *t)
{
    for (const struct qdqi_use *use = t->uses; use; use = use->next)
        if (qdqi_map_get(c->raw, c->attempt->model->graph.nodes[use->node].name))
            return true;
    return false;
}

static const char *
why_float(const struct counting *c, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = &c->attempt->model->graph.nodes[layer->node];
    const char *format = format_of(c->attempt, layer);
    if (layer->n_inputs == 0)
        return layer->reason;
    if (format)
        return format;
    if (!makes_integers(c, node))
        return "what it makes has no pair";
    if (is_read_raw(c, node->outputs[0]))
        return "what it makes is read by a layer that is left in floating point";
    if (c->halves)
        return "there are integer kernels of float32 models alone";
    if (qdqi_node_is(node->proto, "Gemm") && !qdqi_gemm_is_unscaled(node->proto))
        return "alpha or beta is not 1";
    return c->names->why_none;
}

/* Returns whether the runtime dequantizes the layer's weight in each run: with weights alone, a
   layer with integers that no node with integers computes. */
static bool
is_dequantized(const struct counting *c, const struct qdq_layer *layer)
{
    return c->attempt->spec->weight_only && !c->attempt->spec->dynamic &&
           c->ret->conversions > 0 && layer->weight_input >= 0 &&
           qdqi_is_product(layer->op) && !qdqi_map_get(c->integers, layer->name);
}

/* Returns why the layer is listed among those that compute in floating point; NULL: it is not. */
static const char *
why_listed(const struct counting *c, const struct qdq_layer *layer)
{
    const struct qdqi_hooks *hooks = c->attempt->spec->target->hooks;
    if (is_dequantized(c, layer))
        return qdqi_why_dequantized(c->attempt, layer);
    if (c->attempt->spec->weight_only && !c->attempt->spec->dynamic &&
        !qdqi_is_product(layer->op))
        return NULL;
    return hooks->has_kernel && hooks->has_kernel(layer->op) &&
                   qdqi_map_get(c->floats, layer->name)
               ? why_float(c, layer)
               : NULL;
}

static enum qdq_code
list_floats(struct counting *c, struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &c->attempt->plan->view;
    struct qdq_float_kernel *rows =
        qdqi_arena_array(c->attempt->arena, plan->n_layers, sizeof *rows);
    if (!rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->n_layers; i++) {
        const char *why = why_listed(c, &plan->layers[i]);
        if (why)
            rows[c->ret->n_floats++] =
                (struct qdq_float_kernel){plan->layers[i].name, why};
        if (why && is_dequantized(c, &plan->layers[i]) && c->n_dequantized++ == 0)
            c->first = &rows[c->ret->n_floats - 1];
    }
    c->ret->floats = rows;
    return QDQ_OK;
}

static enum qdq_code
warn_dequantized(const struct counting *c, struct qdq_error *err)
{
    if (!c->first)
        return QDQ_OK;
    return qdqi_attempt_warn(c->attempt, err, "weight_dequantized", c->first->name,
                             "%zu layers, this one first, are slower than in floating "
                             "point: %s; kernels.floats "
                             "has the reason of each; leave them in float by entries "
                             "with \"quantize_weight\": "
                             "false where time matters more than size",
                             c->n_dequantized, c->first->reason);
}

static enum qdq_code
note_plan(struct counting *c, struct qdq_error *err)
{
    const struct qdq_plan *plan = c->attempt->plan;
    bool ok = true;
    for (size_t i = 0; ok && i < plan->view.n_tensors; i++) {
        ok = qdqi_map_put(c->paired, plan->view.tensors[i], c);
        c->halves = c->halves || plan->activations[i].dtype == QDQI_FLOAT16;
    }
    for (size_t i = 0; ok && plan->reads_raw && i < plan->view.n_layers; i++)
        ok = !plan->reads_raw[i] || qdqi_map_put(c->raw, plan->view.layers[i].name, c);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

static enum qdq_code
count(const struct qdqi_attempt *a, struct qdqi_result *result,
      const struct qdq_model *optimized, struct qdq_error *err)
{
    const struct qdqi_kernel_names *names =
        qdqi_engine_ops(a->context->engine, a->spec->target->runtime)->kernels;
    struct counting c = {.attempt = a,
                         .optimized = optimized,
                         .names = names,
                         .floats = qdqi_map_new(a->scratch),
                         .integers = qdqi_map_new(a->scratch),
                         .paired = qdqi_map_new(a->scratch),
                         .raw = qdqi_map_new(a->scratch),
                         .ret = qdqi_arena_alloc(a->arena, sizeof *c.ret)};
    if (!c.floats || !c.integers || !c.paired || !c.raw || !c.ret)
        return qdqi_no_memory(err);
    enum qdq_code code = note_plan(&c, err);
    if (code || (code = count_ops(&c, err)) || (code = note_nodes(&c, err)) ||
        (code = list_floats(&c, err)))
        return code;
    result->report->kernels = c.ret;
    return warn_dequantized(&c, err);
}

/* Returns whether the result is run anyway, to be judged. */
static bool
is_judged(const struct qdqi_attempt *a, const struct qdqi_result *result)
{
    return result->report->evaluated_samples > 0 || a->spec->profile.runs > 0;
}

/* Returns whether a runtime that has a profile, unlike ONNX Runtime, judged the result. */
static bool
is_traced(const struct qdqi_attempt *a, const struct qdqi_result *result)
{
    return !qdqi_kernels_are_written(a->context) && result->report->deployed &&
           a->context->dataset;
}

/* Counts the kernels. A failure is only a warning, because the result has already
   been written. */
enum qdq_code
qdqi_count_kernels(const struct qdqi_attempt *a, struct qdqi_result *result,
                   struct qdq_error *err)
{
    struct qdq_model *optimized = NULL;
    struct qdq_error why = {0};
    enum qdq_code code;
    if (a->spec->evaluate != QDQ_NO && qdqi_deployed_only_plans(a->context))
        return qdqi_count_planned(a, result, err);
    if (!qdqi_kernels_are_written(a->context) && !is_traced(a, result))
        return QDQ_OK;
    if (is_traced(a, result))
        code = qdqi_count_traced(a, result, &why);
    else if (result->report->size_after > QDQI_MOST_COUNTED)
        code = qdq_error_set(&why, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                             "the model is larger than 1 GiB");
    else if (result->report->size_after > MAX_UNASKED && !is_judged(a, result))
        code = qdq_error_set(&why, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                             "nothing in this job runs the result, and for this alone "
                             "it is not loaded; evaluate or profile has them counted");
    else
        code = open_optimized(a->context, result, &optimized, &why);
    if (!code && optimized)
        code = count(a, result, optimized, &why);
    qdq_model_free(&optimized);
    if (code == QDQ_NO_MEMORY)
        return qdqi_no_memory(err);
    return !code ? QDQ_OK
                 : qdqi_attempt_warn(a, err, "kernels_not_counted", NULL,
                                     "integer kernels were not counted: %s", why.text);
}
