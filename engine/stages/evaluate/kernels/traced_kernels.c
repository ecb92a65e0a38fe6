/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the kernels that ran for the result, by a runtime whose profile names them, or those that
   it plans. */
#include "config.h"
#include "stages/evaluate/kernels/traced_kernels.h"

#include "graph/layers/operators.h"
#include "stages/evaluate/deployed.h"

#include <stdlib.h>
#include <string.h>

int
qdqi_compare_ops(const void *a, const void *b)
{
    return strcmp(((const struct qdq_op_count *)a)->op,
                  ((const struct qdq_op_count *)b)->op);
}

static bool
add_op(struct qdq_kernels *to, const char *op, struct qdqi_arena *arena)
{
    struct qdq_op_count *ops = (struct qdq_op_count *)(uintptr_t)to->ops;
    size_t i = 0;
    while (i < to->n_ops && strcmp(ops[i].op, op) != 0)
        i++;
    if (i == to->n_ops)
        ops[to->n_ops++] = (struct qdq_op_count){qdqi_arena_strdup(arena, op), 0};
    ops[i].count++;
    return ops[i].op;
}

/* Returns whether a node has the name of a layer's node or of the tensor that it makes. */
static bool
is_named(const struct qdqi_kernel_names *names, const char *name, const char *wanted)
{
    const size_t n = strlen(wanted);
    return n > 0 && strncmp(name, wanted, n) == 0 &&
           (name[n] == '\0' || names->own_length(name) == n);
}

/* Returns whether a traced node computes a layer: alone, or a quantized one with others. */
static bool
computes(const struct qdqi_attempt *a, const struct qdqi_kernel_names *names,
         const struct qdqi_traced_node *one, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = &a->model->graph.nodes[layer->node];
    const struct qdqi_tensor *made = node->proto->n_output ? node->outputs[0] : NULL;
    const bool quantized = layer->n_inputs > 0 || layer->weight_input >= 0;
    for (size_t i = 0; quantized && i < one->n_names; i++)
        if (strcmp(one->names[i], layer->name) == 0)
            return true;
    return is_named(names, one->name, layer->name) ||
           (made && is_named(names, one->name, made->name));
}

/* Returns the node that is the layer, in a kernel of this kind, or NULL. */
static const struct qdqi_traced_node *
find_kernel(const struct qdqi_attempt *a, const struct qdqi_kernel_names *names,
            const struct qdq_layer *layer, const struct qdqi_trace *trace,
            enum qdq_node_kind kind)
{
    for (size_t i = 0; i < trace->n_nodes; i++)
        if (qdqi_node_is_of(names, &trace->nodes[i], kind) &&
            computes(a, names, &trace->nodes[i], layer))
            return &trace->nodes[i];
    return NULL;
}

/* Adds a row with the runtime's own reason. */
static bool
add_refused(struct qdq_kernels *to, struct qdq_float_kernel *rows,
            const struct qdqi_traced_node *node, const char *name,
            struct qdqi_arena *arena)
{
    const char *reason = qdqi_arena_strdup(arena, node->reason);
    rows[to->n_floats++] = (struct qdq_float_kernel){name, reason};
    return name && reason;
}

/* Returns whether a node is one of the plan's layers. */
static bool
is_layer(const struct qdqi_attempt *a, const struct qdqi_kernel_names *names,
         const struct qdqi_traced_node *node)
{
    for (size_t i = 0; i < a->plan->view.n_layers; i++)
        if (computes(a, names, node, &a->plan->view.layers[i]))
            return true;
    return false;
}

/* Adds the nodes that are no layers, and of which the runtime says why its device left them. */
static bool
add_refused_nodes(const struct qdqi_attempt *a, const struct qdqi_kernel_names *names,
                  const struct qdqi_trace *trace, struct qdq_kernels *to,
                  struct qdq_float_kernel *rows)
{
    bool ok = true;
    for (size_t i = 0; i < trace->n_nodes && ok; i++) {
        const struct qdqi_traced_node *node = &trace->nodes[i];
        if (node->reason && !is_layer(a, names, node))
            ok = add_refused(to, rows, node, qdqi_arena_strdup(a->arena, node->name),
                             a->arena);
    }
    return ok;
}

static enum qdq_code
list_floats(const struct qdqi_attempt *a, const struct qdqi_kernel_names *names,
            const struct qdqi_trace *trace, struct qdq_kernels *ret,
            struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    struct qdq_float_kernel *rows =
        qdqi_arena_array(a->arena, plan->n_layers + trace->n_nodes, sizeof *rows);
    bool ok = rows;
    for (size_t i = 0; i < plan->n_layers && ok; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        const struct qdqi_traced_node *node =
            find_kernel(a, names, layer, trace, QDQ_NODE_FLOAT_LAYER);
        if (node && node->reason)
            ok = add_refused(ret, rows, node, layer->name, a->arena);
        else if (node)
            rows[ret->n_floats++] = (struct qdq_float_kernel){
                layer->name, layer->n_inputs == 0 ? layer->reason : names->why_none};
    }
    ret->floats = rows;
    return ok && add_refused_nodes(a, names, trace, ret, rows) ? QDQ_OK
                                                               : qdqi_no_memory(err);
}

/* --- fused kernels ------------------------------------------------------------- */

/* Counts the layers that multiply what pairs make, and those of them that are integers. */
static void
count_layers(const struct qdqi_attempt *a, const struct qdqi_kernel_names *names,
             const struct qdqi_trace *trace, struct qdq_kernels *ret)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (!qdqi_is_product(layer->op) ||
            layer->n_inputs + (layer->weight_input >= 0) < 2)
            continue;
        ret->planned_layers++;
        ret->integer_layers +=
            find_kernel(a, names, layer, trace, QDQ_NODE_INTEGER) != NULL;
    }
}

static const char *
kind_name(enum qdq_node_kind kind)
{
    return kind == QDQ_NODE_INTEGER       ? "integer"
           : kind == QDQ_NODE_FLOAT_LAYER ? "float"
           : kind == QDQ_NODE_CONVERSION  ? "conversion"
                                          : "other";
}

/* Copies a kernel of several nodes. */
static bool
add_fused(struct qdq_fused_kernel *to, const struct qdqi_traced_node *from,
          struct qdqi_arena *arena)
{
    const char **nodes = qdqi_arena_array(arena, from->n_names, sizeof *nodes);
    *to = (struct qdq_fused_kernel){.op = qdqi_arena_strdup(arena, from->op),
                                    .computes = kind_name(from->kind),
                                    .nodes = nodes,
                                    .n_nodes = from->n_names};
    bool ok = to->op && nodes;
    for (size_t i = 0; ok && i < from->n_names; i++)
        ok = (nodes[i] = qdqi_arena_strdup(arena, from->names[i])) != NULL;
    return ok;
}

/* Lists the kernels of several nodes, where the runtime names all nodes. */
static enum qdq_code
list_fused(const struct qdqi_trace *trace, struct qdqi_arena *arena,
           struct qdq_kernels *ret, struct qdq_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < trace->n_nodes; i++) {
        ret->names_nodes = ret->names_nodes || trace->nodes[i].n_names > 0;
        n += trace->nodes[i].n_names > 1;
    }
    struct qdq_fused_kernel *rows = qdqi_arena_array(arena, n, sizeof *rows);
    if (!rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < trace->n_nodes; i++)
        if (trace->nodes[i].n_names > 1 &&
            !add_fused(&rows[ret->n_fused++], &trace->nodes[i], arena))
            return qdqi_no_memory(err);
    ret->fused = rows;
    return QDQ_OK;
}

/* --- the report ---------------------------------------------------------------- */

/* Names what chose the kernels of a result that it did not run. */
static enum qdq_code
name_planner(const struct qdqi_deploy *deploy, const struct qdq_runtime_about *about,
             struct qdqi_arena *arena, struct qdq_kernels *ret, struct qdq_error *err)
{
    struct qdq_planner *planner = qdqi_arena_alloc(arena, sizeof *planner);
    if (!planner)
        return qdqi_no_memory(err);
    planner->name = qdqi_arena_strdup(arena, about->name);
    planner->version = qdqi_arena_strdup(arena, deploy->ops->version(deploy->place));
    planner->device = qdqi_arena_strdup(arena, about->device);
    ret->planner = planner;
    return planner->name && planner->version && planner->device ? QDQ_OK
                                                                : qdqi_no_memory(err);
}

/* Names the operator's program that told the kernels, where there is one. */
static enum qdq_code
name_runner(const struct qdqi_context *c, struct qdqi_arena *arena,
            struct qdq_kernels *ret, struct qdq_error *err)
{
    struct qdqi_deploy deploy;
    struct qdq_error gone = {0};
    const struct qdq_runtime_about *about = NULL;
    if (!qdqi_engine_deploy(c->engine, c->asked->target->runtime, &deploy, &gone))
        about = qdqi_deploy_about(&deploy);
    if (!about)
        return QDQ_OK;
    ret->runner = qdqi_arena_strdup(arena, about->runner);
    if (!ret->runner)
        return qdqi_no_memory(err);
    return about->only_plans ? name_planner(&deploy, about, arena, ret, err) : QDQ_OK;
}

static enum qdq_code
count(const struct qdqi_attempt *a, struct qdqi_result *result,
      const struct qdqi_trace *trace, struct qdq_error *err)
{
    const struct qdqi_kernel_names *names =
        qdqi_engine_ops(a->context->engine, a->spec->target->runtime)->kernels;
    struct qdq_kernels *ret = qdqi_arena_alloc(result->arena, sizeof *ret);
    bool ok = ret && (ret->ops = qdqi_arena_array(result->arena, trace->n_nodes,
                                                  sizeof *ret->ops)) != NULL;
    for (size_t i = 0; ok && i < trace->n_nodes; i++) {
        const struct qdqi_traced_node *node = &trace->nodes[i];
        const bool integer = qdqi_node_is_of(names, node, QDQ_NODE_INTEGER);
        ret->conversions += qdqi_node_is_of(names, node, QDQ_NODE_CONVERSION);
        ret->integer += integer;
        ok = !integer || add_op(ret, node->op, result->arena);
    }
    if (!ok)
        return qdqi_no_memory(err);
    qsort((void *)(uintptr_t)ret->ops, ret->n_ops, sizeof *ret->ops, qdqi_compare_ops);
    enum qdq_code code = list_floats(a, names, trace, ret, err);
    if (!code)
        code = list_fused(trace, result->arena, ret, err);
    if (!code && ret->names_nodes)
        count_layers(a, names, trace, ret);
    if (!code)
        code = name_runner(a->context, result->arena, ret, err);
    if (!code)
        result->report->kernels = ret;
    return code;
}

enum qdq_code
qdqi_keep_nodes(struct qdqi_result *result, const struct qdqi_deployed_model *model,
                struct qdq_error *err)
{
    struct qdq_error why = {0};
    if (!model->ops || !model->ops->nodes)
        return QDQ_OK;
    enum qdq_code code =
        model->ops->nodes(model->model, result->scratch, &result->nodes, &why);
    if (!code)
        return QDQ_OK;
    result->nodes = (struct qdqi_trace){0};
    result->no_nodes = qdqi_arena_strdup(result->scratch, why.text);
    return code == QDQ_NO_MEMORY || !result->no_nodes ? qdqi_no_memory(err) : QDQ_OK;
}

enum qdq_code
qdqi_count_traced(const struct qdqi_attempt *a, struct qdqi_result *result,
                  struct qdq_error *err)
{
    if (!result->nodes.nodes)
        return qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL, "%s",
                             result->no_nodes ? result->no_nodes
                                              : "the runtime named no nodes");
    return count(a, result, &result->nodes, err);
}

/* Has the runtime load the result, which was written, and keeps the kernels of its plan. */
static enum qdq_code
plan_result(const struct qdqi_attempt *a, struct qdqi_result *result,
            struct qdq_error *err)
{
    const struct qdq_work *work = a->context->work;
    const struct qdq_external data = {work->output_data_name, work->output_data};
    const bool split = result->report->external_bytes > 0;
    struct qdq_model *model = NULL;
    struct qdqi_deployed_model planned = {0};
    enum qdq_code code = qdq_model_open_files(work->output, &data, split, &model, err);
    if (!code)
        code = qdqi_deployed_load(a, result, model, &planned, err);
    if (!code)
        code = planned.ops->nodes(planned.model, result->scratch, &result->nodes, err);
    qdqi_deployed_model_close(&planned);
    qdq_model_free(&model);
    return code;
}

enum qdq_code
qdqi_count_planned(const struct qdqi_attempt *a, struct qdqi_result *result,
                   struct qdq_error *err)
{
    struct qdq_error why = {0};
    enum qdq_code code = plan_result(a, result, &why);
    if (code && code != QDQ_RUN_FAILED && !qdqi_costs_figures(code))
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    if (!code)
        code = qdqi_count_traced(a, result, &why);
    if (code == QDQ_NO_MEMORY)
        return qdqi_no_memory(err);
    return !code ? QDQ_OK
                 : qdqi_attempt_warn(a, err, "kernels_not_counted", NULL,
                                     "integer kernels were not counted: %s", why.text);
}
