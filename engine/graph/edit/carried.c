/* SPDX-License-Identifier: Apache-2.0 */
/* Removes what a Loop or Scan carries from step to step. */
#include "config.h"
#include "graph/edit/state.h"

#include <string.h>

void
qdqi_edit_drop_node(struct qdqi_edit *e, size_t node)
{
    if (!e || e->dropped[node])
        return;
    e->dropped[node] = true;
    e->n_dropped++;
}

void
qdqi_edit_drop_carried(struct qdqi_edit *e, size_t node, size_t i)
{
    struct qdqi_carried *row = e ? qdqi_edit_array(e, 1, sizeof *row) : NULL;
    if (!row)
        return;
    *row = (struct qdqi_carried){node, i};
    qdqi_edit_append(e, &e->carried, row);
}

/* Returns the rows without row i, of which there are *n; the rows themselves where there is no row i. */
static void *
without(struct qdqi_edit *e, void *rows, size_t *n, size_t i)
{
    void **from = rows;
    void **ret = i < *n ? qdqi_edit_array(e, *n, sizeof *ret) : NULL;
    if (!ret)
        return rows;
    memcpy(ret, from, i * sizeof *ret);
    memcpy(ret + i, from + i + 1, (*n - i - 1) * sizeof *ret);
    --*n;
    return ret;
}

static Onnx__GraphProto *
body_of(const struct qdqi_edit *e, size_t node)
{
    const struct qdqi_scope *scope =
        &e->source->graph.scopes[e->source->graph.nodes[node].body];
    return e->changed[node]->attribute[scope->attribute]->g;
}

void
qdqi_edit_leave_out_carried(struct qdqi_edit *e)
{
    for (size_t k = e->carried.n; k-- > 0 && !e->out_of_memory;) {
        const struct qdqi_carried *row = e->carried.rows[k];
        Onnx__NodeProto *node = e->changed[row->node];
        Onnx__GraphProto *body = body_of(e, row->node);
        const bool loop = strcmp(node->op_type, "Loop") == 0;
        const size_t i = row->input;
        node->input = without(e, node->input, &node->n_input, i);
        node->output = without(e, node->output, &node->n_output, loop ? i - 2 : i);
        body->input = without(e, body->input, &body->n_input, i);
        body->output = without(e, body->output, &body->n_output, loop ? i - 1 : i);
    }
}
