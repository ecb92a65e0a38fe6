/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of a graph some of its tensors need, so that the others may be left out. */
#ifndef QDQI_TRANSFORM_REWRITE_NEEDED_NODES_H
#define QDQI_TRANSFORM_REWRITE_NEEDED_NODES_H

#include "files/model/model.h"
#include "ground/base/map.h"

#include <stdbool.h>

/* Returns whether a node has a graph of its own, whose needs are not followed. */
bool qdqi_has_nested_graphs(const Onnx__GraphProto *graph);

/* Marks the nodes that make the tensors of the map, by way of any number of nodes, and adds what these read
   to the map; `marks` is by node, and nodes with a mark are passed over. Returns false when out of
   memory. */
bool qdqi_mark_needed(const Onnx__GraphProto *graph, struct qdqi_map *needed,
                      bool *marks);

#endif
