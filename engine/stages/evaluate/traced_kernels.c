/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the kernels that ran for the result, by a runtime whose profile names them. */
#include "config.h"
#include "stages/evaluate/traced_kernels.h"

#include "stages/evaluate/deployed.h"
#include "qdq/targets.h"

#include <stdlib.h>
#include <string.h>

static int
compare_ops(const void *a, const void *b)
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

/* Returns whether one of the nodes is the layer in floating point. */
static bool
runs_in_float(const struct qdqi_attempt *a, const struct qdqi_kernel_names *names,
              const struct qdq_layer *layer, const struct qdqi_trace *trace)
{
    const struct qdqi_node *node = &a->model->graph.nodes[layer->node];
    const struct qdqi_tensor *made = node->proto->n_output ? node->outputs[0] : NULL;
    for (size_t i = 0; i < trace->n_nodes; i++) {
        const struct qdqi_traced_node *one = &trace->nodes[i];
        if (qdqi_node_is_of(names, one, QDQ_NODE_FLOAT_LAYER) &&
            (is_named(names, one->name, layer->name) ||
             (made && is_named(names, one->name, made->name))))
            return true;
    }
    return false;
}

static enum qdq_code
list_floats(const struct qdqi_attempt *a, const struct qdqi_kernel_names *names,
            const struct qdqi_trace *trace, struct qdq_kernels *ret,
            struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    struct qdq_float_kernel *rows =
        qdqi_arena_array(a->arena, plan->n_layers, sizeof *rows);
    if (!rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (runs_in_float(a, names, layer, trace))
            rows[ret->n_floats++] = (struct qdq_float_kernel){
                layer->name, layer->n_inputs == 0 ? layer->reason : names->why_none};
    }
    ret->floats = rows;
    return QDQ_OK;
}

/* Names the operator's program that ran the kernels, where there is one. */
static enum qdq_code
name_runner(const struct qdqi_context *c, struct qdqi_arena *arena,
            struct qdq_kernels *ret, struct qdq_error *err)
{
    struct qdqi_deploy deploy;
    struct qdq_error gone = {0};
    const struct qdq_runtime_about *about = NULL;
    if (!qdqi_deployed_runtime(c, &deploy, &gone))
        about = qdqi_deploy_about(&deploy);
    if (about)
        ret->runner = qdqi_arena_strdup(arena, about->runner);
    return about && !ret->runner ? qdqi_no_memory(err) : QDQ_OK;
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
    qsort((void *)(uintptr_t)ret->ops, ret->n_ops, sizeof *ret->ops, compare_ops);
    enum qdq_code code = list_floats(a, names, trace, ret, err);
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
