/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ground/base/map.h"

#include <string.h>
#include <sys/random.h>

/* Open addressing with linear probing; at most half full. */
struct slot {
    const char *key;
    uint64_t hash;
    void *value;
};

struct qdqi_map {
    struct qdqi_arena *arena;
    struct slot *slots;
    size_t size, capacity; /* capacity is a power of two */
    uint64_t seed;
};

/* Mixes the bits of a number (splitmix64's finalizer). */
static uint64_t
mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
    return h ^ (h >> 31);
}

/* Returns a random start for a map: names come from untrusted models, which could otherwise
   plan collisions. The system is asked once in a process. */
static uint64_t
next_seed(const struct qdqi_map *map)
{
    static _Atomic uint64_t secret, count;
    uint64_t seed = secret;
    if (!seed && getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed)
        secret = seed;
    return seed ? mix(seed + 0x9e3779b97f4a7c15ULL * ++count) : (uintptr_t)map;
}

/* FNV-1a over a random start, mixed at the end. */
static uint64_t
hash_key(const struct qdqi_map *map, const char *key)
{
    uint64_t h = map->seed;
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * 0x100000001b3ULL;
    return mix(h);
}

struct qdqi_map *
qdqi_map_new(struct qdqi_arena *arena)
{
    struct qdqi_map *map = qdqi_arena_alloc(arena, sizeof *map);
    if (!map)
        return NULL;
    map->arena = arena;
    map->seed = next_seed(map);
    return map;
}

static struct slot *
find_slot(struct slot *slots, size_t capacity, const char *key, uint64_t hash)
{
    size_t i = hash & (capacity - 1);
    while (slots[i].key && (slots[i].hash != hash || strcmp(slots[i].key, key) != 0))
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

void *
qdqi_map_get(const struct qdqi_map *map, const char *key)
{
    if (!map->size)
        return NULL;
    return find_slot(map->slots, map->capacity, key, hash_key(map, key))->value;
}

static bool
grow(struct qdqi_map *map)
{
    size_t capacity = map->capacity ? map->capacity * 2 : 64;
    struct slot *slots = qdqi_arena_array(map->arena, capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key)
            *find_slot(slots, capacity, map->slots[i].key, map->slots[i].hash) =
                map->slots[i];
    map->slots = slots;
    map->capacity = capacity;
    return true;
}

bool
qdqi_map_put(struct qdqi_map *map, const char *key, void *value)
{
    if (map->size * 2 >= map->capacity && !grow(map))
        return false;
    uint64_t hash = hash_key(map, key);
    struct slot *slot = find_slot(map->slots, map->capacity, key, hash);
    if (!slot->key)
        map->size++;
    *slot = (struct slot){key, hash, value};
    return true;
}

size_t
qdqi_map_size(const struct qdqi_map *map)
{
    return map->size;
}
