/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "equalize/equalize.h"

#include "equalize/balance.h"
#include "equalize/rescale.h"

struct equalizing {
    const struct qdq_model *source;
    struct qdqi_arena *arena; /* freed at the end of the stage */
    struct qdqi_chain *chains;
    size_t n_chains;
    struct qdqi_balance balance;
    struct qdqi_rescaled *changes;
    size_t n_changes;
};

/* --- the changes --------------------------------------------------------- */

static void
add_weight(struct equalizing *e, size_t node, const struct qdqi_weight *w)
{
    struct qdqi_layer_scales *layer = &e->balance.layers[node];
    if (!layer->changed)
        return;
    e->changes[e->n_changes++] = (struct qdqi_rescaled){*w, layer->out, layer->in};
    layer->changed = false; /* count the layer once, although two chains meet here */
}

static void
add_biases(struct equalizing *e, const struct qdqi_chain *chain)
{
    for (size_t i = 0; i < chain->n_biases; i++)
        e->changes[e->n_changes++] =
            qdqi_rescaled_bias(chain->bias_tensors[i], &chain->biases[i],
                               e->balance.layers[chain->first].out);
}

static enum qdq_code
list_changes(struct equalizing *e, struct qdq_error *err)
{
    e->changes = qdqi_arena_array(e->arena, e->n_chains * (2 + QDQI_MAX_BIASES),
                                  sizeof *e->changes);
    if (!e->changes)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < e->n_chains; i++) {
        const struct qdqi_chain *chain = &e->chains[i];
        if (chain->reason)
            continue;
        add_weight(e, chain->first, &chain->w1);
        add_weight(e, chain->second, &chain->w2);
        if (e->balance.moved[i])
            add_biases(e, chain);
    }
    return QDQ_OK;
}

/* --- the stage ------------------------------------------------------------ */

static enum qdq_code
fill_rows(const struct equalizing *e, struct qdqi_arena *arena,
          const struct qdq_equalization **ret, struct qdq_error *err)
{
    struct qdq_equalization *rows = qdqi_arena_array(arena, e->n_chains, sizeof *rows);
    const struct qdqi_graph *graph = &e->source->graph;
    if (!rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < e->n_chains; i++) {
        const struct qdqi_chain *chain = &e->chains[i];
        const char *reason = chain->reason;
        if (!reason)
            reason = e->balance.moved[i] ? "equalized" : "equal already";
        rows[i].first = graph->nodes[chain->first].name;
        rows[i].second =
            chain->second < graph->n_nodes ? graph->nodes[chain->second].name : NULL;
        rows[i].channels = e->balance.moved[i];
        rows[i].reason = qdqi_arena_strdup(arena, reason);
        if (!rows[i].reason)
            return qdqi_no_memory(err);
    }
    *ret = rows;
    return QDQ_OK;
}

enum qdq_code
qdqi_equalize(const struct qdq_model *source, struct qdqi_arena *arena,
              const struct qdq_equalization **ret_rows, size_t *ret_n_rows,
              struct qdq_model **ret, struct qdq_error *err)
{
    struct equalizing e = {.source = source, .arena = qdqi_arena_new()};
    enum qdq_code code;
    if (!e.arena)
        return qdqi_no_memory(err);
    if ((code = qdqi_chains_find(source, e.arena, &e.chains, &e.n_chains, err)) ||
        (code = qdqi_balance(source, e.chains, e.n_chains, e.arena, &e.balance, err)) ||
        (code = fill_rows(&e, arena, ret_rows, err)) || (code = list_changes(&e, err)))
        goto out;
    *ret_n_rows = e.n_chains;
    *ret = NULL;
    if (e.n_changes)
        code = qdqi_rescale(source, e.changes, e.n_changes, e.arena, ret, err);
out:
    qdqi_arena_free(&e.arena);
    return code;
}
