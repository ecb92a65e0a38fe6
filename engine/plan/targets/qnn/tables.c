/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant tables that a Gather reads (rule Q21). The HTP moves integers where the table and what is
 * gathered have one scale; a table of floats is float16, and a model with one does not load on v68.
 */
#include "config.h"
#include "plan/targets/qnn/qnn.h"

#include "plan/placement/outputs.h"

bool
qdqi_qnn_reads_table(const struct planner *p, const struct qdq_layer *layer)
{
    return p->graph->classes[layer->node]->is_table && layer->weight_input >= 0;
}

bool
qdqi_decide_table(struct planner *p, struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (qdqi_output_can_have_pair(p, node, 0, QDQI_FLOAT32) &&
        !qdqi_all_read_raw(p, node->outputs[0])) {
        qdqi_rule_cite(layer, Q21);
        return qdqi_output_add(p, layer, 0);
    }
    layer->weight_input = layer->weight_axis = -1;
    layer->weight = NULL;
    return true;
}

/* Returns the weight of a layer; one that other layers read gets a row of its own. */
static struct qdqi_planned_weight *
own_weight(struct planner *p, struct qdq_layer *layer)
{
    struct qdq_plan *plan = p->plan;
    size_t n = 0;
    for (size_t i = 0; i < p->n_layers; i++)
        n += p->layers[i].weight_input >= 0 &&
             p->layers[i].weight_row == layer->weight_row;
    if (n > 1) {
        plan->weights[plan->view.n_weights] = plan->weights[layer->weight_row];
        layer->weight_row = plan->view.n_weights++;
        plan->weights[layer->weight_row].layer = layer->name;
    }
    return &plan->weights[layer->weight_row];
}

void
qdqi_settle_tables(struct planner *p)
{
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (!qdqi_qnn_reads_table(p, layer))
            continue;
        struct qdqi_planned_weight *w = own_weight(p, layer);
        w->is_table = false;
        w->is_moved = true;
        w->moved_to = layer->output_rows[0];
        w->format = p->plan->activations[w->moved_to].format;
        w->rounding = QDQ_ROUND_NEAREST;
    }
}
