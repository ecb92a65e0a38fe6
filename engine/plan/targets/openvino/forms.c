/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of nodes that compute the same, of which OpenVINO computes right numbers (faults.h):
 * a reduction keeps its axes, and a Squeeze behind it drops them (V14); a Conv without biases
 * whose Relu stands in front of a factor below zero, or with V22 any, has some that change nothing (V13).
 */
#include "config.h"
#include "plan/targets/openvino/openvino.h"

#include "files/model/constant.h"
#include "graph/edit/edit.h"
#include "plan/targets/shared/kept_axes.h"

#include <string.h>

enum { BIAS = 2 };

/* Added to a float32 sum it is lost. OpenVINO leaves out biases of zero. */
static const float least_bias = 1e-30F;

struct reforming {
    const struct qdq_model *model;
    struct qdqi_edit *edit;
    struct qdqi_arena *arena;
    bool any;
};

/* --- biases ---------------------------------------------------------------------- */

/* Returns the number of a Conv's or ConvTranspose's outputs; 0 where its weight is no float32
   constant. */
static size_t
count_outputs(const struct qdq_model *model, const struct qdqi_node *node)
{
    struct qdqi_constant w;
    const bool turned = qdqi_node_is(node->proto, "ConvTranspose");
    if ((!turned && !qdqi_node_is(node->proto, "Conv")) || node->proto->n_input < 2 ||
        !node->inputs[1] || !node->inputs[1]->is_fixed ||
        qdqi_constant_read(model, node->inputs[1], &w, NULL) ||
        w.dtype != QDQI_FLOAT32 || w.rank < 3)
        return 0;
    return (size_t)(turned ? w.dims[1] * qdqi_node_int(node->proto, "group", 1)
                           : w.dims[0]);
}

static bool
give_bias(struct reforming *r, size_t i)
{
    const struct qdqi_node *node = &r->model->graph.nodes[i];
    const size_t n = count_outputs(r->model, node);
    if (n == 0)
        return true;
    const char *name = qdqi_edit_name(r->edit, node->inputs[1]->name, "_bias");
    float *bias = qdqi_arena_array(r->arena, n, sizeof *bias);
    if (!name || !bias)
        return false;
    for (size_t c = 0; c < n; c++)
        bias[c] = least_bias;
    qdqi_edit_add_initializer(r->edit, name, QDQI_FLOAT32, n, false, bias);
    if (node->proto->n_input > BIAS)
        qdqi_edit_set_input(r->edit, i, BIAS, name);
    else
        qdqi_edit_put_input(r->edit, i, BIAS, name);
    r->any = true;
    return true;
}

/* Returns whether a marked node reads an output of the node. */
static bool
is_read_by(const struct qdqi_node *node, const bool *marked)
{
    for (size_t i = 0; i < node->proto->n_output; i++)
        for (const struct qdqi_use *use = node->outputs[i] ? node->outputs[i]->uses
                                                           : NULL;
             use; use = use->next)
            if (marked[use->node])
                return true;
    return false;
}

/* Gives biases to the Convs without any: with `all` to each, and else to those that lead to a function
   that falls. */
static bool
give_biases(struct reforming *r, bool all)
{
    const struct qdqi_graph *graph = &r->model->graph;
    const bool *unbiased = qdqi_mark_unbiased(r->model, r->arena);
    bool *leads = qdqi_mark_turned(r->model, r->arena), ok = unbiased && leads;
    for (size_t i = graph->n_nodes; ok && i-- > 0;) {
        leads[i] = unbiased[i] && (leads[i] || is_read_by(&graph->nodes[i], leads));
        ok = !(leads[i] || (all && unbiased[i])) || give_bias(r, i);
    }
    return ok;
}

static bool
drops_axes(const struct qdqi_node *node)
{
    return qdqi_drops_axes(node, "ReduceMean") || qdqi_drops_axes(node, "ReduceSum");
}

enum qdq_code
qdqi_openvino_reform(const struct qdq_spec *spec, const struct qdq_model *model,
                     struct qdqi_edit *edit, struct qdqi_arena *arena, bool *ret_any,
                     struct qdq_error *err)
{
    struct reforming r = {.model = model, .edit = edit, .arena = arena};
    if (qdq_spec_has_rule(spec, V14) &&
        qdqi_model_opset(model->proto) >= QDQI_OPSET_AXES_INPUT)
        for (size_t i = 0; i < model->graph.n_nodes; i++)
            if (drops_axes(&model->graph.nodes[i]) && qdqi_keep_axes(model, edit, i))
                r.any = true;
    const bool all = qdq_spec_has_rule(spec, V22);
    if ((all || qdq_spec_has_rule(spec, V13)) && !give_biases(&r, all))
        return qdqi_no_memory(err);
    *ret_any = r.any;
    return QDQ_OK;
}
