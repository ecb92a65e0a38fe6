/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/equalize.h"

#include "transform/equalize/balance.h"
#include "transform/equalize/rescale.h"

struct equalizing {
    const struct qdq_model *source;
    struct qdqi_arena *arena; /* freed at the end of the stage */
    struct qdqi_pair *pairs;
    size_t n;
    struct qdqi_balance balance;
};

static enum qdq_code
rescale(struct equalizing *e, struct qdq_model **ret, struct qdq_error *err)
{
    struct qdqi_scaling *scalings = qdqi_arena_array(e->arena, e->n, sizeof *scalings);
    size_t n = 0;
    if (!scalings)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < e->n; i++)
        if (e->balance.moved[i] > 0)
            scalings[n++] =
                (struct qdqi_scaling){e->pairs[i].chain, e->balance.factors[i]};
    *ret = NULL;
    return n ? qdqi_rescale(e->source, scalings, n, e->arena, ret, err) : QDQ_OK;
}

static enum qdq_code
fill_rows(const struct equalizing *e, struct qdqi_arena *arena,
          const struct qdq_equalization **ret, struct qdq_error *err)
{
    struct qdq_equalization *rows = qdqi_arena_array(arena, e->n, sizeof *rows);
    const struct qdqi_graph *graph = &e->source->graph;
    if (!rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < e->n; i++) {
        const struct qdqi_pair *pair = &e->pairs[i];
        const char *reason = pair->reason;
        if (!reason)
            reason = e->balance.moved[i] ? "equalized" : "equal already";
        rows[i].first = graph->nodes[pair->first].name;
        rows[i].second =
            pair->second < graph->n_nodes ? graph->nodes[pair->second].name : NULL;
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
    if (!(code = qdqi_pairs_find(source, e.arena, &e.pairs, &e.n, err)) &&
        !(code = qdqi_balance(source, e.pairs, e.n, e.arena, &e.balance, err)) &&
        !(code = fill_rows(&e, arena, ret_rows, err)))
        code = rescale(&e, ret, err);
    *ret_n_rows = e.n;
    qdqi_arena_free(&e.arena);
    return code;
}
