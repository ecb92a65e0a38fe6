/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "documents/report_graph.h"
#include "base/json.h"

/* Returns the bytes of the text of an edge, and of the comma behind it. */
static size_t
text_size(const json_t *edge)
{
    return json_dumpb(edge, NULL, 0, JSON_COMPACT) + 1;
}

json_t *
api_encode_edges(const struct qdq_report *report)
{
    json_t *list = json_array();
    size_t bytes = 0;
    for (size_t i = 0; list && i < report->n_edges; i++) {
        const struct qdq_edge *row = &report->edges[i];
        json_t *edge = json_pack("[o, o, o]", api_json_text(row->from),
                                 api_json_text(row->to), api_json_text(row->tensor));
        bytes += edge ? text_size(edge) : 0;
        if (json_array_append_new(list, edge) != 0)
            return api_json_if(false, list);
        if (bytes > API_MOST_EDGES_BYTES) {
            json_array_clear(list);
            break;
        }
    }
    return list;
}

static json_t *
encode_numbers(const void *items, size_t i)
{
    const struct qdq_graph_edge *edge = (const struct qdq_graph_edge *)items + i;
    return json_pack("[I, I, I]", (json_int_t)edge->from, (json_int_t)edge->to,
                     (json_int_t)edge->tensor);
}

static json_t *
encode_number(const void *items, size_t i)
{
    return json_integer(((const uint32_t *)items)[i]);
}

json_t *
api_encode_graph(const struct qdq_graph_report *graph)
{
    return api_pack("nodes:a tensors:a edges:a constants:a", graph->nodes,
                    graph->n_nodes, api_json_text_item, graph->tensors,
                    graph->n_tensors, api_json_text_item, graph->edges, graph->n_edges,
                    encode_numbers, graph->constants, graph->n_constants,
                    encode_number);
}
