/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/moment_memory.h"

#include "graph/layers/moment_form.h"
#include "files/model/constant.h"
#include "ground/base/map.h"
#include "numbers/arithmetic/moment.h"
#include "numbers/arithmetic/packed.h"

enum {
    MAX_MIB = 1024, /* that all moments of a job may take, or half the weights' size */
    SAID_MIB = 1024 /* from which on the need is said */
};

bool
qdqi_plan_has_moments(const struct qdq_spec *spec, const struct qdq_plan *plan)
{
    bool wanted = qdq_spec_rounds(spec) || spec->smooth_awq ||
                  spec->bias_correction != QDQ_BIASES_NONE;
    for (size_t i = 0; i < plan->view.n_weights && !wanted; i++)
        wanted = plan->weights[i].rounding != QDQ_ROUND_NEAREST ||
                 plan->weights[i].scales == QDQ_SCALES_MOMENTS; /* as a case asks */
    return wanted;
}

uint64_t
qdqi_most_moments(const struct qdq_plan *plan)
{
    uint64_t weights = 0;
    for (size_t i = 0; i < plan->view.n_weights; i++) {
        const struct qdqi_view *view = &plan->weights[i].tensor->view;
        size_t n;
        if (qdqi_count_elements(view->dims, view->rank, &n))
            weights += n * (sizeof(float) / 2);
    }
    return weights > (uint64_t)MAX_MIB << 20 ? weights : (uint64_t)MAX_MIB << 20;
}

struct need {
    struct planner *p;
    struct qdqi_map *sources; /* that were counted */
    uint64_t moments, integers, largest;
    size_t left; /* layers whose moments are too many */
};

/* Counts the moments of what a layer reads, once. */
static bool
add_layer(struct need *n, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = &n->p->model->graph.nodes[layer->node];
    const struct qdqi_moment_form form = qdqi_moment_form_of(node, layer);
    if (form.why)
        return true;
    const char *source = qdqi_moment_source(n->p->plan->arena, node->inputs[0], &form);
    const uint64_t bytes = qdqi_moment_form_bytes(&form);
    if (!source)
        return false;
    if (qdqi_map_get(n->sources, source))
        return true;
    if (bytes > qdqi_most_moments(n->p->plan) - n->moments) {
        n->left++;
        return true;
    }
    n->moments += bytes;
    return qdqi_map_put(n->sources, source, n);
}

/* Counts what stays of a weight until the result is written, its scales and their copies, and what is
   needed while it is rounded: its integers by two bytes, which scale each element has, and the moment of
   its rows in double and in single precision. */
static void
add_weight(struct need *n, const struct qdqi_planned_weight *w)
{
    const struct qdqi_view *view = &w->tensor->view;
    size_t elements;
    if (!qdqi_count_elements(view->dims, view->rank, &elements) || view->rank < 2)
        return;
    const uint64_t scales = w->block > 0 ? elements / (size_t)w->block : 0;
    const uint64_t work = elements * (sizeof(int16_t) + sizeof(uint32_t));
    n->integers += qdqi_packed_size(qdqi_format_row((int)w->format), elements) +
                   scales * (sizeof(float) + sizeof(int32_t)) * 2;
    n->largest = work > n->largest ? work : n->largest;
}

static enum qdq_code
say(const struct need *n, struct qdq_error *err)
{
    const uint64_t mib = n->p->plan->moment_bytes >> 20;
    if (mib < SAID_MIB)
        return QDQ_OK;
    if (n->left > 0)
        return qdqi_warn(
            &n->p->warnings, n->p->plan->arena, err, "much_memory", NULL,
            "second moments and the integers that go by them take about %llu MiB "
            "beside "
            "what the runtime takes; there is no room for the moments of %zu layers, "
            "which are rounded to nearest",
            (unsigned long long)mib, n->left);
    return qdqi_warn(&n->p->warnings, n->p->plan->arena, err, "much_memory", NULL,
                     "second moments and the integers that go by them take about %llu "
                     "MiB beside what the runtime takes",
                     (unsigned long long)mib);
}

enum qdq_code
qdqi_plan_moment_memory(struct planner *p, struct qdq_error *err)
{
    const struct qdq_plan *plan = p->plan;
    struct need n = {.p = p, .sources = qdqi_map_new(plan->arena)};
    bool ok = n.sources;
    if (!qdqi_plan_has_moments(p->spec, plan))
        return QDQ_OK;
    for (size_t i = 0; ok && i < plan->view.n_layers; i++)
        if (plan->view.layers[i].weight_input >= 0)
            ok = add_layer(&n, &plan->view.layers[i]);
    if (!ok)
        return qdqi_no_memory(err);
    for (size_t i = 0; n.moments > 0 && i < plan->view.n_weights; i++)
        add_weight(&n, &plan->weights[i]);
    p->plan->moment_bytes = n.moments + n.integers + n.largest;
    return say(&n, err);
}
