/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/onnxruntime/integer_paths.h"

#include "graph/layers/operators.h"
#include "plan/placement/rules.h"
#include "plan/targets/onnxruntime/kernels.h"

bool
qdqi_passes_integers(const char *op)
{
    const enum qdqi_role role = qdqi_kernel_role(op);
    return role == QDQI_MOVES || role == QDQI_CLIPS;
}

bool
qdqi_comes_from_integers(const struct planner *p, const struct qdqi_tensor *t)
{
    for (int i = 0; i < QDQI_MOST_MOVES; i++) {
        const struct qdqi_node *node = qdqi_maker_of(&p->model->graph, t);
        if (!node)
            return false;
        if (qdqi_has_kernel(node->proto->op_type)) {
            const struct qdq_layer *layer = p->by_node[t->producer];
            return layer && layer->n_inputs > 0;
        }
        if (!qdqi_passes_integers(node->proto->op_type) || node->proto->n_input == 0)
            return false;
        t = node->inputs[0];
    }
    return false;
}

/* Counts the readers of a tensor behind a number of layers that move data. */
static void
count_readers(const struct planner *p, const struct qdqi_tensor *t, int n_moves,
              struct qdqi_integer_readers *ret)
{
    ret->other += n_moves == QDQI_MOST_MOVES || t->is_output || t->is_captured;
    for (const struct qdqi_use *use = t->uses; use && n_moves < QDQI_MOST_MOVES;
         use = use->next) {
        const struct qdqi_node *node = &p->model->graph.nodes[use->node];
        const struct qdq_layer *layer = p->by_node[use->node];
        if (qdqi_passes_integers(node->proto->op_type) && use->input == 0) {
            for (size_t i = 0; i < node->proto->n_output; i++)
                if (node->outputs[i])
                    count_readers(p, node->outputs[i], n_moves + 1, ret);
        } else if (layer && qdqi_has_kernel(node->proto->op_type) &&
                   qdqi_layer_has_pair(layer, use->input)) {
            ret->integer++;
        } else {
            ret->other++;
        }
    }
}

struct qdqi_integer_readers
qdqi_integer_readers(const struct planner *p, const struct qdqi_tensor *t)
{
    const struct qdqi_integer_readers *kept =
        qdqi_marks_of(p)->readers ? qdqi_map_get(qdqi_marks_of(p)->readers, t->name)
                                  : NULL;
    struct qdqi_integer_readers readers = {0, 0};
    if (kept)
        return *kept;
    count_readers(p, t, 0, &readers);
    return readers;
}

/* Keeps the counts of a tensor, so that a tensor with many readers is counted once and not
   for each of them. Returns false when out of memory. */
static bool
keep_readers(struct planner *p, const struct qdqi_tensor *t)
{
    if (qdqi_map_get(qdqi_marks_of(p)->readers, t->name))
        return true;
    struct qdqi_integer_readers *readers =
        qdqi_arena_alloc(p->plan->arena, sizeof *readers);
    if (!readers)
        return false;
    count_readers(p, t, 0, readers);
    return qdqi_map_put(qdqi_marks_of(p)->readers, t->name, readers);
}

bool
qdqi_integer_readers_keep(struct planner *p)
{
    bool ok = (qdqi_marks_of(p)->readers = qdqi_map_new(p->plan->arena));
    for (size_t i = 0; ok && i < p->n_layers; i++) {
        const struct qdq_layer *layer = &p->layers[i];
        const struct qdqi_node *node = qdqi_node_of(p, layer);
        if (layer->n_inputs > 0)
            ok = keep_readers(p, node->inputs[layer->quantized_inputs[0]]) &&
                 keep_readers(p, node->outputs[0]);
    }
    return ok;
}

void
qdqi_integer_reader_leave(const struct planner *p, const struct qdqi_tensor *t)
{
    for (int n_moves = 0; t && n_moves < QDQI_MOST_MOVES; n_moves++) {
        struct qdqi_integer_readers *kept =
            qdqi_map_get(qdqi_marks_of(p)->readers, t->name);
        const struct qdqi_node *node = qdqi_maker_of(&p->model->graph, t);
        if (kept) {
            kept->integer--;
            kept->other++;
        }
        if (!node || node->proto->n_input == 0 ||
            !qdqi_passes_integers(node->proto->op_type))
            return;
        t = node->inputs[0];
    }
}

bool
qdqi_goes_to_integers(const struct planner *p, const struct qdqi_tensor *t)
{
    return qdqi_integer_readers(p, t).integer > 0;
}
