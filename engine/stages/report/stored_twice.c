/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/report/report.h"

#include "plan/placement/kept_weights.h"
#include "stages/attempt/attempt.h"

#include <stdint.h>

enum qdq_code
qdqi_report_stored_twice(struct qdqi_attempt *a, struct qdq_error *err)
{
    const struct qdq_plan_view *view = &a->plan->view;
    struct qdq_layer **by_node =
        qdqi_arena_array(a->arena, a->model->graph.n_nodes, sizeof(struct qdq_layer *));
    if (!by_node)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < view->n_layers; i++)
        by_node[view->layers[i].node] = (void *)(uintptr_t)&view->layers[i];
    const struct qdqi_layer_count count =
        qdqi_count_stored_twice(a->plan, &a->model->graph, by_node);
    const bool one = count.n == 1;
    return count.n == 0 ? QDQ_OK
                        : qdqi_attempt_warn(a, err, QDQI_STORED_TWICE, count.first,
                                            "%zu layer%s (%.128s%s): %s", count.n,
                                            one ? "" : "s", count.first,
                                            one ? "" : ", ...", QDQI_STORED_TWICE_TEXT);
}
