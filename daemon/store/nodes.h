/* SPDX-License-Identifier: Apache-2.0 */
/* The daemons that share a record (store_is_shared()). Any thread may call. */
#ifndef QDQD_STORE_NODES_H
#define QDQD_STORE_NODES_H

#include "api/job.h"
#include "store/store.h"

/* Writes that the node `id` is there; it started `age_ms` ago. Rows of nodes that were not
   seen for `keep_ms` are removed. */
bool store_node_seen(struct store *store, const struct api_node *node, int64_t age_ms,
                     int64_t keep_ms, struct api_problem *p);
/* Removes a node's row. */
bool store_node_gone(struct store *store, const char *id, struct api_problem *p);
/* Lists the nodes, the oldest first. free() frees the list. */
bool store_nodes(struct store *store, struct api_node **ret, size_t *ret_n,
                 struct api_problem *p);

#define STORE_PLACE 256 /* bytes of a mark, with the NUL; a longer one is cut */

/* Keeps the mark of the place where the record's files are, unless another daemon has kept one that
   is not `earlier` (NULL: any other counts). Returns the one that holds. */
bool store_place_keep(struct store *store, const char *mark, const char *earlier,
                      char ret[STORE_PLACE], struct api_problem *p);

#endif
