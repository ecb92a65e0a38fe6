/* SPDX-License-Identifier: Apache-2.0 */
/* A map from names to pointers, in an arena. Keys are borrowed and must outlive the
   map. */
#ifndef QDQI_GROUND_BASE_MAP_H
#define QDQI_GROUND_BASE_MAP_H

#include "ground/base/arena.h"

struct qdqi_map;

/* returns NULL when out of memory */
struct qdqi_map *qdqi_map_new(struct qdqi_arena *arena);
/* Returns the value of a key, or NULL. */
void *qdqi_map_get(const struct qdqi_map *map, const char *key);
/* Adds or replaces a value, which must not be NULL. Returns false when out of
   memory. */
bool qdqi_map_put(struct qdqi_map *map, const char *key, void *value);
size_t qdqi_map_size(const struct qdqi_map *map);

#endif
