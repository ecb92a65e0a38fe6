/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "equalize/equalize.h"

#include "equalize/balance.h"
#include "data/file.h"
#include "model/write.h"
#include "edit/edit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A tensor with new elements, which are generated while the model is written. */
struct change {
    struct qdqi_made made; /* must be first: the writer's pointer points here */
    struct qdqi_weight w;  /* a bias is a weight with one element for each channel */
    const double *out, *in;
};

struct equalizing {
    const struct qdq_model *source;
    struct qdqi_arena *arena; /* freed at the end of the stage */
    struct qdqi_chain *chains;
    size_t n_chains;
    struct qdqi_balance balance;
    struct change *changes;
    size_t n_changes;
};

/* --- the changes --------------------------------------------------------- */

static const double no_scale[] = {1};

static enum qdq_code
write_change(const struct qdqi_made *made, struct qdqi_sink *sink,
             struct qdq_error *err)
{
    const struct change *change = (const struct change *)made;
    return qdqi_weight_write(&change->w, change->out, change->in, sink, err);
}

static void
add_weight(struct equalizing *e, size_t node, const struct qdqi_weight *w)
{
    struct qdqi_layer_scales *layer = &e->balance.layers[node];
    if (!layer->changed)
        return;
    e->changes[e->n_changes++] =
        (struct change){{write_change}, *w, layer->out, layer->in};
    layer->changed = false; /* count the layer once, although two chains meet here */
}

static void
add_biases(struct equalizing *e, const struct qdqi_chain *chain)
{
    for (size_t i = 0; i < chain->n_biases; i++) {
        const struct qdqi_weight w = {.tensor = chain->bias_tensors[i],
                                      .bytes = chain->biases[i].bytes,
                                      .n_major = chain->channels,
                                      .minor = 1,
                                      .inner = 1,
                                      .groups = 1,
                                      .major_is_out = true,
                                      .n_in = 1,
                                      .n_out = chain->channels};
        e->changes[e->n_changes++] = (struct change){
            {write_change}, w, e->balance.layers[chain->first].out, no_scale};
    }
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

/* --- the equalized model ------------------------------------------------- */

static size_t
size_of(const struct change *change)
{
    const struct qdqi_weight *w = &change->w;
    return w->n_major * w->minor * w->inner * sizeof(float);
}

static enum qdq_code
write_model(struct equalizing *e, int fd, struct qdq_error *err)
{
    struct qdqi_edit *edit = qdqi_edit_new(e->source, e->arena);
    struct qdqi_edited edited;
    uint64_t size;
    for (size_t i = 0; i < e->n_changes; i++) {
        const struct change *change = &e->changes[i];
        qdqi_edit_set_made(edit, change->w.tensor, size_of(change), &change->made);
    }
    enum qdq_code code = qdqi_edit_finish(edit, &edited.proto, err);
    if (code)
        return code;
    edited.bulks = qdqi_edit_bulks(edit);
    return qdqi_model_write(e->source, &edited, fd, &size, err);
}

static enum qdq_code
make_model(struct equalizing *e, struct qdq_model **ret, struct qdq_error *err)
{
    int fd = qdqi_file_open_buffer();
    if (fd < 0)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "opening a temporary file: %s", strerror(errno));
    enum qdq_code code = write_model(e, fd, err);
    if (!code)
        code = qdq_model_open(fd, ret, err);
    close(fd); /* the model has a duplicate of the descriptor */
    return code;
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
        code = make_model(&e, ret, err);
    if (*ret)
        (*ret)->warnings = source->warnings;
out:
    qdqi_arena_free(&e.arena);
    return code;
}
