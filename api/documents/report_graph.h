/* SPDX-License-Identifier: Apache-2.0 */
/* The graph in a report: by names, as long as those are short enough, and by numbers. */
#ifndef API_DOCUMENTS_REPORT_GRAPH_H
#define API_DOCUMENTS_REPORT_GRAPH_H

#include <jansson.h>

#include "qdq/report.h"

/* The largest text of the member `edges`, which repeats the names of both nodes for each edge. */
#define API_MOST_EDGES_BYTES (8u << 20)

/* Encodes the member `edges`; an empty list where its text would be too large. NULL when out of
   memory. */
json_t *api_encode_edges(const struct qdq_report *report);
/* Encodes the member `graph`; NULL when out of memory. */
json_t *api_encode_graph(const struct qdq_graph_report *graph);

#endif
