/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/named.h"

struct qdqi_map *
qdqi_named_by_spec(const struct qdq_spec *spec, struct qdqi_arena *arena)
{
    const struct qdq_calibration_spec *c = &spec->calibration;
    struct qdqi_map *named = qdqi_map_new(arena);
    bool ok = named;
    for (size_t i = 0; ok && i < c->n_ranges; i++)
        ok = qdqi_map_put(named, c->ranges[i].tensor, named);
    for (size_t i = 0; ok && i < spec->n_layers; i++) {
        const struct qdq_layer_entry *entry = &spec->layers[i];
        for (size_t k = 0; ok && k < entry->n_names; k++)
            ok = qdqi_map_put(named, entry->names[k], named);
    }
    return ok ? named : NULL;
}
