/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/frontier/patterns.h"

#include <stdint.h>
#include <string.h>

#define NONE QDQI_NO_PATTERN

/* How exactly surroundings are seen: the edges that are followed, and whether the sizes of constants count. The first way
   counts that finds few enough patterns; with the last one the patterns beyond are one. */
static const struct way {
    int edges;
    bool sizes;
} ways[] = {{2, true}, {1, true}, {1, false}, {0, false}};

enum { N_WAYS = sizeof ways / sizeof *ways };

struct finding {
    const struct qdqi_graph *graph;
    const struct qdqi_placed_layers *layers;
    struct qdqi_arena *arena;
    uint64_t *labels, *next; /* by node */
    size_t *owner;           /* by node: the layer that it belongs to, or NONE */
    uint64_t *known;         /* by pattern: its label */
    struct qdqi_layer_patterns *to;
};

/* --- labels ---------------------------------------------------------------------- */

static uint64_t
mix(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * 0x9e3779b97f4a7c15U;
    return hash ^ hash >> 31;
}

static uint64_t
mix_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = mix(hash, p[i]);
    return mix(hash, n);
}

static uint64_t
mix_text(uint64_t hash, const char *text)
{
    return text ? mix_bytes(hash, text, strlen(text)) : mix(hash, 0);
}

/* Adds an attribute, in any order: its numbers and texts. */
static uint64_t
label_of_attribute(const Onnx__AttributeProto *a)
{
    uint64_t hash = mix_text(mix_text(1, a->name), NULL);
    hash = mix_bytes(mix(hash, (uint64_t)a->i), &a->f, sizeof a->f);
    hash = mix_bytes(hash, a->s.data, a->s.len);
    hash = mix_bytes(hash, a->ints, a->n_ints * sizeof *a->ints);
    return mix_bytes(hash, a->floats, a->n_floats * sizeof *a->floats);
}

static uint64_t
label_of(const struct qdqi_node *node, bool sizes)
{
    uint64_t hash = mix_text(mix_text(2, node->proto->domain), node->proto->op_type);
    uint64_t attributes = 0;
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        attributes += label_of_attribute(node->proto->attribute[i]);
    hash = mix(hash, attributes);
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        const bool fixed = t && t->constant;
        hash = mix(hash, fixed ? 2 : t != NULL);
        for (size_t k = 0; fixed && sizes && k < t->constant->n_dims; k++)
            hash = mix(hash, (uint64_t)t->constant->dims[k]);
    }
    return hash;
}

/* Adds the labels of a node's neighbours: of those before it by their inputs, of those behind it in any order. */
static uint64_t
label_with_neighbours(const struct finding *f, size_t i)
{
    const struct qdqi_node *node = &f->graph->nodes[i];
    uint64_t hash = mix(3, f->labels[i]);
    for (size_t k = 0; k < node->proto->n_input; k++) {
        const struct qdqi_tensor *t = node->inputs[k];
        hash = mix(hash, t && t->producer >= 0 ? f->labels[t->producer] : 0);
    }
    for (size_t k = 0; k < node->proto->n_output; k++) {
        uint64_t readers = 0;
        const struct qdqi_tensor *t = node->outputs[k];
        for (const struct qdqi_use *use = t ? t->uses : NULL; use; use = use->next)
            readers += mix(4, f->labels[use->node]);
        hash = mix(hash, readers);
    }
    return hash;
}

static void
label_nodes(struct finding *f, const struct way *way)
{
    const size_t n = f->graph->n_nodes;
    for (size_t i = 0; i < n; i++)
        f->labels[i] = label_of(&f->graph->nodes[i], way->sizes);
    for (int round = 0; round < way->edges; round++) {
        for (size_t i = 0; i < n; i++)
            f->next[i] = label_with_neighbours(f, i);
        memcpy(f->labels, f->next, n * sizeof *f->labels);
    }
}

/* --- patterns --------------------------------------------------------------------- */

/* Returns the pattern of a label, which may be a new one. */
static size_t
pattern_of(struct finding *f, uint64_t label, size_t layer)
{
    struct qdqi_layer_patterns *to = f->to;
    size_t i = 0;
    while (i < to->n && f->known[i] != label)
        i++;
    if (i < to->n)
        return i;
    if (to->n == QDQI_MOST_PATTERNS)
        return to->n - 1;
    f->known[to->n] = label;
    to->first[to->n] = layer;
    return to->n++;
}

/* Groups the layers by their labels. Returns whether there are few enough patterns. */
static bool
group(struct finding *f)
{
    const struct qdqi_placed_layers *layers = f->layers;
    struct qdqi_layer_patterns *to = f->to;
    double sum = 0;
    bool fits = true;
    to->n = 0;
    memset(to->sizes, 0, QDQI_MOST_PATTERNS * sizeof *to->sizes);
    memset(to->shares, 0, QDQI_MOST_PATTERNS * sizeof *to->shares);
    for (size_t i = 0; i < layers->n; i++) {
        const uint64_t label = f->labels[layers->nodes[i]];
        to->of[i] = layers->ignored[i] ? NONE : pattern_of(f, label, i);
        if (to->of[i] == NONE)
            continue;
        fits = fits && f->known[to->of[i]] == label;
        to->sizes[to->of[i]]++;
        to->shares[to->of[i]] += layers->costs[i];
        sum += layers->costs[i];
    }
    for (size_t i = 0; i < to->n; i++)
        to->shares[i] = sum > 0 ? to->shares[i] / sum : 1 / (double)to->n;
    return fits;
}

/* --- pairs ------------------------------------------------------------------------- */

/* Gives each node that is no layer to the layer before it. */
static void
find_owners(const struct finding *f)
{
    for (size_t i = 0; i < f->graph->n_nodes; i++)
        f->owner[i] = NONE;
    for (size_t i = 0; i < f->layers->n; i++)
        f->owner[f->layers->nodes[i]] = i;
    for (size_t i = 0; i < f->graph->n_nodes; i++) {
        const struct qdqi_node *node = &f->graph->nodes[i];
        for (size_t k = 0; k < node->proto->n_input && f->owner[i] == NONE; k++)
            if (node->inputs[k] && node->inputs[k]->producer >= 0)
                f->owner[i] = f->owner[node->inputs[k]->producer];
    }
}

static void
add_pair(struct qdqi_layer_patterns *to, size_t a, size_t b)
{
    if (a == NONE || b == NONE || a == b || to->n_pairs == QDQI_MOST_PATTERN_PAIRS)
        return;
    for (size_t i = 0; i < to->n_pairs; i++)
        if ((to->pairs[i].a == a && to->pairs[i].b == b) ||
            (to->pairs[i].a == b && to->pairs[i].b == a))
            return;
    to->pairs[to->n_pairs++] = (struct qdqi_pattern_pair){a, b};
}

static void
find_pairs(const struct finding *f)
{
    find_owners(f);
    for (size_t i = 0; i < f->graph->n_nodes; i++) {
        const struct qdqi_node *node = &f->graph->nodes[i];
        for (size_t k = 0; k < node->proto->n_input; k++) {
            if (!node->inputs[k] || node->inputs[k]->producer < 0)
                continue;
            const size_t before = f->owner[node->inputs[k]->producer];
            if (before != NONE && f->owner[i] != NONE)
                add_pair(f->to, f->to->of[before], f->to->of[f->owner[i]]);
        }
    }
}

static bool
allocate(struct finding *f)
{
    struct qdqi_layer_patterns *to = f->to;
    const size_t n = f->graph->n_nodes + 1, most = QDQI_MOST_PATTERNS;
    f->labels = qdqi_arena_array(f->arena, n, sizeof *f->labels);
    f->next = qdqi_arena_array(f->arena, n, sizeof *f->next);
    f->owner = qdqi_arena_array(f->arena, n, sizeof *f->owner);
    f->known = qdqi_arena_array(f->arena, most, sizeof *f->known);
    to->of = qdqi_arena_array(f->arena, f->layers->n + 1, sizeof *to->of);
    to->first = qdqi_arena_array(f->arena, most, sizeof *to->first);
    to->sizes = qdqi_arena_array(f->arena, most, sizeof *to->sizes);
    to->shares = qdqi_arena_array(f->arena, most, sizeof *to->shares);
    to->pairs = qdqi_arena_array(f->arena, QDQI_MOST_PATTERN_PAIRS, sizeof *to->pairs);
    return f->labels && f->next && f->owner && f->known && to->of && to->first &&
           to->sizes && to->shares && to->pairs;
}

enum qdq_code
qdqi_patterns_find(const struct qdqi_graph *graph,
                   const struct qdqi_placed_layers *layers, struct qdqi_arena *arena,
                   struct qdqi_layer_patterns *ret, struct qdq_error *err)
{
    struct finding f = {.graph = graph, .layers = layers, .arena = arena, .to = ret};
    *ret = (struct qdqi_layer_patterns){0};
    if (!allocate(&f))
        return qdqi_no_memory(err);
    bool fits = false;
    for (size_t i = 0; i < N_WAYS && !fits; i++) {
        label_nodes(&f, &ways[i]);
        fits = group(&f);
    }
    find_pairs(&f);
    return QDQ_OK;
}
