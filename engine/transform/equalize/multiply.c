/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/multiply.h"

#include <string.h>

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

const char *
qdqi_multiply(struct qdqi_edit *edit, const struct qdq_model *source,
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

bool
qdqi_multiply_note(struct qdq_model *copy, const char *const *names, size_t n)
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
