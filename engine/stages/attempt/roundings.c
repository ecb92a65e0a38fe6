/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/roundings.h"

#include <stdlib.h>
#include <string.h>

struct qdqi_kept_rounded {
    struct qdqi_rounded_key key;
    struct qdqi_rounded_weight rounding;
    struct qdqi_kept_rounded *next;
};

static const uint64_t most = (uint64_t)256 << 20; /* bytes that a job keeps */

void
qdqi_roundings_begin(struct qdqi_attempt *a)
{
    if (!a->moments || a->moments->keeps_roundings)
        return;
    a->moments->keeps_roundings = true;
    a->moments->roundings_left = most;
}

/* Returns a copy of n elements of that size, or NULL. */
static void *
copy(const void *from, size_t n, size_t size)
{
    void *to = malloc(n * size + 1);
    return to && n > 0 ? memcpy(to, from, n * size) : to;
}

static void
free_one(struct qdqi_kept_rounded *k)
{
    /* The const is cast away: these are copies that belong to the row. */
    free((void *)(uintptr_t)k->key.scales);
    free((void *)(uintptr_t)k->key.zero_points);
    free((void *)(uintptr_t)k->rounding.integers);
    free((void *)(uintptr_t)k->rounding.scales);
    free((void *)(uintptr_t)k->rounding.zero_points);
    free(k);
}

static bool
are_equal(const struct qdqi_rounded_key *a, const struct qdqi_rounded_key *b)
{
    return a->format == b->format && a->axis == b->axis && a->block == b->block &&
           a->is_reduced == b->is_reduced && a->is_centred == b->is_centred &&
           a->by_gptq == b->by_gptq && a->by_moments == b->by_moments &&
           a->is_signed == b->is_signed && a->shrunk == b->shrunk && a->n == b->n &&
           memcmp(a->scales, b->scales, a->n * sizeof *a->scales) == 0 &&
           !a->zero_points == !b->zero_points &&
           (!a->zero_points ||
            memcmp(a->zero_points, b->zero_points, a->n * sizeof *a->zero_points) == 0);
}

const struct qdqi_rounded_weight *
qdqi_roundings_find(const struct qdqi_layer_moments *m,
                    const struct qdqi_rounded_key *key)
{
    for (const struct qdqi_kept_rounded *k = m->roundings; k; k = k->next)
        if (are_equal(&k->key, key))
            return &k->rounding;
    return NULL;
}

void
qdqi_roundings_keep(struct qdqi_layer_moments *m, const struct qdqi_rounded_key *key,
                    const struct qdqi_rounded_weight *r, uint64_t *left)
{
    const uint64_t bytes = sizeof(struct qdqi_kept_rounded) +
                           r->n * sizeof *r->integers +
                           key->n * 2 * (sizeof *r->scales + sizeof *key->zero_points);
    struct qdqi_kept_rounded *k = bytes <= *left ? malloc(sizeof *k) : NULL;
    if (!k)
        return;
    *k = (struct qdqi_kept_rounded){*key, *r, m->roundings};
    k->key.scales = copy(key->scales, key->n, sizeof *key->scales);
    k->key.zero_points = key->zero_points
                             ? copy(key->zero_points, key->n, sizeof *key->zero_points)
                             : NULL;
    k->rounding.integers = copy(r->integers, r->n, sizeof *r->integers);
    k->rounding.scales = copy(r->scales, key->n, sizeof *r->scales);
    k->rounding.zero_points =
        r->zero_points ? copy(r->zero_points, key->n, sizeof *r->zero_points) : NULL;
    if (!k->key.scales || !k->key.zero_points != !key->zero_points ||
        !k->rounding.zero_points != !r->zero_points || !k->rounding.integers ||
        !k->rounding.scales) {
        free_one(k);
        return;
    }
    m->roundings = k;
    *left -= bytes;
}

void
qdqi_roundings_free(struct qdqi_layer_moments *m)
{
    for (struct qdqi_kept_rounded *k; (k = m->roundings);) {
        m->roundings = k->next;
        free_one(k);
    }
}
