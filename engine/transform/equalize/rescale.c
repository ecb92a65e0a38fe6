/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/rescale.h"

#include "files/data/file.h"
#include "graph/edit/edit.h"
#include "files/model/write.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A tensor with new elements, which are computed while the copy is written. */
struct change {
    struct qdqi_made made;     /* must be first: the writer's pointer points here */
    struct qdqi_weight weight; /* a constant is a weight with one input channel */
    double *out, *in;          /* factors by output and by input channel */
};

struct changes {
    const struct qdq_model *source;
    struct qdqi_arena *arena;
    struct change *all;
    size_t n;
    struct change **of_layers; /* by node: the change of its weight, or NULL */
    const struct qdqi_scaling *scalings;
    size_t n_scalings;
    const char **muls; /* names of the Muls that are added */
    size_t n_muls;
};

/* --- what changes ----------------------------------------------------------- */

/* Returns the change of a layer's weight, which several chains may share; NULL when out of
   memory. */
static struct change *
change_of(struct changes *c, size_t node, const struct qdqi_weight *weight)
{
    struct change *change = c->of_layers[node];
    if (change)
        return change;
    c->of_layers[node] = change = &c->all[c->n++];
    change->weight = *weight;
    change->out = qdqi_weight_ones(c->arena, weight->n_out);
    change->in = qdqi_weight_ones(c->arena, weight->n_in);
    return change->out && change->in ? change : NULL;
}

static bool
scale_readers(struct changes *c, const struct qdqi_scaling *s)
{
    const struct qdqi_chain *chain = s->chain;
    for (size_t r = 0; r < chain->n_readers; r++) {
        const struct qdqi_reader *reader = &chain->readers[r];
        struct change *change = change_of(c, reader->node, &reader->weight);
        if (!change)
            return false;
        for (size_t i = 0; i < chain->channels * chain->block; i++)
            change->in[i] = 1 / s->factors[i / chain->block];
    }
    return true;
}

static bool
scale_maker(struct changes *c, const struct qdqi_scaling *s)
{
    static double no_factor[] = {1};
    const struct qdqi_chain *chain = s->chain;
    size_t n = chain->channels;
    bool has_maker = chain->maker.layer < c->source->graph.n_nodes;
    if (has_maker && !change_of(c, chain->maker.layer, &chain->maker.weight))
        return false;
    if (has_maker)
        n = chain->maker.weight.n_out;
    double *factors = has_maker ? c->of_layers[chain->maker.layer]->out
                                : qdqi_weight_ones(c->arena, n);
    if (!factors)
        return false;
    for (size_t i = 0; i < chain->channels; i++)
        factors[qdqi_chain_output(chain, i)] = s->factors[i];
    for (size_t i = 0; i < chain->maker.n_constants; i++)
        c->all[c->n++] =
            (struct change){.weight = {.tensor = chain->maker.tensors[i],
                                       .bytes = chain->maker.constants[i].bytes,
                                       .n_major = n,
                                       .minor = 1,
                                       .inner = 1,
                                       .groups = 1,
                                       .major_is_out = true,
                                       .n_in = 1,
                                       .n_out = n},
                            .out = factors,
                            .in = no_factor};
    return true;
}

static enum qdq_code
list_changes(struct changes *c, struct qdq_error *err)
{
    const struct qdqi_scaling *scalings = c->scalings;
    const size_t n_nodes = c->source->graph.n_nodes, n = c->n_scalings;
    c->all =
        qdqi_arena_array(c->arena, n_nodes + n * QDQI_MAX_ABSORBING, sizeof *c->all);
    c->of_layers = qdqi_arena_array(c->arena, n_nodes, sizeof(struct change *));
    if (!c->all || !c->of_layers)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        if ((!scalings[i].chain->is_multiplied && !scale_maker(c, &scalings[i])) ||
            !scale_readers(c, &scalings[i]))
            return qdqi_no_memory(err);
    return QDQ_OK;
}

/* --- Muls ------------------------------------------------------------------- */

/* A longer name of an activation does not begin other names: each pair behind the Mul would
   repeat it. */
enum { LONG_NAME = 32 };

/* Returns the beginning of the new names; NULL when out of memory. */
static const char *
stem_of(const struct qdqi_chain *chain, size_t i, struct qdqi_arena *arena)
{
    return strlen(chain->at->name) <= LONG_NAME
               ? qdqi_arena_printf(arena, "%s_", chain->at->name)
               : qdqi_arena_printf(arena, "smooth%zu_", i);
}

/* Adds the factors with as many axes as make them lie along the axis of the channels. */
static bool
add_factors(struct qdqi_edit *edit, const struct qdqi_chain *chain, const char *name,
            const double *factors, struct qdqi_arena *arena)
{
    float *data = qdqi_arena_array(arena, chain->channels, sizeof *data);
    int64_t *dims = qdqi_arena_array(arena, chain->from_end, sizeof *dims);
    if (!data || !dims || !name)
        return false;
    for (size_t c = 0; c < chain->channels; c++)
        data[c] = (float)factors[c];
    for (size_t a = 0; a < chain->from_end; a++)
        dims[a] = a == 0 ? (int64_t)chain->channels : 1;
    qdqi_edit_add_tensor(edit, name, QDQI_FLOAT32, chain->from_end, dims, data,
                         chain->channels * sizeof *data);
    return true;
}

/*
 * Adds a Mul behind the activation of a chain that `is_multiplied`, and makes the readers of
 * the chain read what it makes. New names begin with that of the activation; where it is
 * long they begin with "smooth" and `i`. Returns the name of the node; NULL when out of
 * memory.
 */
static const char *
multiply(struct qdqi_edit *edit, const struct qdq_model *source,
         const struct qdqi_chain *chain, const double *factors, size_t i,
         struct qdqi_arena *arena)
{
    const char *stem = stem_of(chain, i, arena);
    if (!stem)
        return NULL;
    const char *name = qdqi_edit_name(edit, stem, "Mul");
    const char *output = qdqi_edit_name(edit, stem, "smoothed");
    const char *inputs[] = {chain->at->name, qdqi_edit_name(edit, stem, "factors")};
    if (!name || !output || !add_factors(edit, chain, inputs[1], factors, arena) ||
        !qdqi_edit_add_node(edit, qdqi_edit_behind(source, chain->at), "Mul", name,
                            inputs, 2, output))
        return NULL;
    for (size_t r = 0; r < chain->n_readers; r++)
        qdqi_edit_set_input(edit, chain->readers[r].node, 0, output);
    return name;
}

/* Tells the copy of the model the names of the Muls. Returns false when out of memory. */
static bool
note_muls(struct qdq_model *copy, const char *const *names, size_t n)
{
    struct qdqi_map *map = qdqi_map_new(copy->arena);
    for (size_t i = 0; map && i < n; i++) {
        const char *name = qdqi_arena_strdup(copy->arena, names[i]);
        if (!name || !qdqi_map_put(map, name, copy))
            return false;
    }
    copy->smoothing = map;
    return map;
}

/* --- the copy ---------------------------------------------------------------- */

static enum qdq_code
write_change(const struct qdqi_made *made, struct qdqi_sink *sink,
             struct qdq_error *err)
{
    const struct change *c = (const struct change *)made;
    return qdqi_weight_write(&c->weight, c->out, c->in, sink, err);
}

static size_t
size_of(const struct qdqi_weight *w)
{
    return w->n_major * w->minor * w->inner * sizeof(float);
}

/* Adds the Muls. Returns false when out of memory. */
static bool
add_muls(struct changes *c, struct qdqi_edit *edit)
{
    c->muls = qdqi_arena_array(c->arena, c->n_scalings, sizeof *c->muls);
    for (size_t i = 0; c->muls && i < c->n_scalings; i++) {
        const struct qdqi_scaling *s = &c->scalings[i];
        if (!s->chain->is_multiplied)
            continue;
        const char *name =
            multiply(edit, c->source, s->chain, s->factors, c->n_muls, c->arena);
        if (!name)
            return false;
        c->muls[c->n_muls++] = name;
    }
    return c->muls;
}

static enum qdq_code
write_model(struct changes *c, int fd, struct qdq_error *err)
{
    struct qdqi_edit *edit = qdqi_edit_new(c->source, c->arena);
    struct qdqi_edited edited;
    uint64_t size;
    if (!edit || !add_muls(c, edit))
        return qdqi_no_memory(err);
    for (size_t i = 0; i < c->n; i++) {
        struct change *change = &c->all[i];
        change->made.write = write_change;
        qdqi_edit_set_made(edit, change->weight.tensor, size_of(&change->weight),
                           &change->made);
    }
    enum qdq_code code = qdqi_edit_result(edit, &edited, err);
    return code ? code : qdqi_model_write(c->source, &edited, fd, &size, err);
}

enum qdq_code
qdqi_rescale(const struct qdq_model *source, const struct qdqi_scaling *scalings,
             size_t n, struct qdqi_arena *arena, struct qdq_model **ret,
             struct qdq_error *err)
{
    struct changes c = {
        .source = source, .arena = arena, .scalings = scalings, .n_scalings = n};
    enum qdq_code code = list_changes(&c, err);
    if (code)
        return code;
    int fd = qdqi_file_open_buffer();
    if (fd < 0)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "opening a temporary file: %s", strerror(errno));
    code = write_model(&c, fd, err);
    if (!code)
        code = qdq_model_open(fd, ret, err);
    close(fd); /* the model has a duplicate of the descriptor */
    if (code)
        return code;
    (*ret)->warnings = source->warnings;
    if (c.n_muls == 0 || note_muls(*ret, c.muls, c.n_muls))
        return QDQ_OK;
    qdq_model_free(ret);
    return qdqi_no_memory(err);
}
