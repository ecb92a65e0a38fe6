/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/split.h"

#include "ground/base/map.h"
#include "transform/rewrite/insert.h"

#include <string.h>

/* A tensor of the graph, found by its name. */
struct value {
    Onnx__TensorProto *initializer; /* NULL when it is not an initializer */
    Onnx__ValueInfoProto *input;    /* NULL when it is not an input of the model */
    /* the node that makes it and the last node that reads it; SIZE_MAX for none */
    size_t made, last;
    /* the Constant node that makes it; each part that reads it gets a copy */
    Onnx__NodeProto *copied;
    bool is_result;
    /* number (from 1) of the last part that has it as an input, initializer or
       Constant */
    size_t listed;
    struct qdqi_split_value at; /* the output of a part that has it */
};

struct splitting {
    const Onnx__GraphProto *graph;
    struct qdqi_arena *arena;
    struct qdqi_map *values; /* by name */
    struct qdqi_split *split;
    size_t *fakes; /* by node: the number of FakeQuant nodes in front of it */
    /* by node: the number of tensors that are made in front of it and read at or
       behind it */
    int64_t *passed;
    size_t *first; /* by part: its first node; then the number of nodes */
};

/* Allocates an array in the arena. Callers need not check every allocation: the
   arena remembers a failure, and qdqi_split_model() checks it after each step. */
static void *
alloc(struct splitting *c, size_t n, size_t size)
{
    return qdqi_arena_array(c->arena, n, size);
}

static struct value *
find(const struct splitting *c, const char *name)
{
    return name && *name ? qdqi_map_get(c->values, name) : NULL;
}

static struct value *
find_or_add(struct splitting *c, const char *name)
{
    struct value *v = find(c, name);
    if (v || !name || !*name)
        return v;
    v = alloc(c, 1, sizeof *v);
    if (!v || !qdqi_map_put(c->values, name, v))
        return NULL;
    v->made = v->last = SIZE_MAX;
    v->at = (struct qdqi_split_value){name, QDQI_NO_PART, 0};
    return v;
}

/* --- visiting readers ---------------------------------------------------- */

struct visitor {
    void (*read)(struct splitting *c, struct value *value, size_t at);
    void (*fake)(struct splitting *c, int64_t slot, size_t at);
};

static void visit_node(struct splitting *c, const Onnx__NodeProto *node, size_t at,
                       const struct visitor *visitor);

static void
visit_name(struct splitting *c, const char *name, size_t at,
           const struct visitor *visitor)
{
    struct value *v = find(c, name);
    if (v && visitor->read)
        visitor->read(c, v, at);
}

/* Visits the names that a nested graph reads, which include those that it captures. */
static void
visit_body(struct splitting *c, const Onnx__GraphProto *g, size_t at,
           const struct visitor *visitor)
{
    for (size_t i = 0; i < g->n_node; i++)
        visit_node(c, g->node[i], at, visitor);
    for (size_t i = 0; i < g->n_output; i++)
        visit_name(c, g->output[i]->name, at, visitor);
}

static void
visit_node(struct splitting *c, const Onnx__NodeProto *node, size_t at,
           const struct visitor *visitor)
{
    bool is_fake = node->domain && strcmp(node->domain, QDQI_DOMAIN) == 0 &&
                   strcmp(node->op_type, QDQI_FAKE_QUANT) == 0;
    for (size_t i = 0; i < node->n_input; i++)
        visit_name(c, node->input[i], at, visitor);
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        if (is_fake && visitor->fake && a->name && strcmp(a->name, "slot") == 0)
            visitor->fake(c, a->i, at);
        if (a->g)
            visit_body(c, a->g, at, visitor);
        for (size_t k = 0; k < a->n_graphs; k++)
            visit_body(c, a->graphs[k], at, visitor);
    }
}

/* --- the graph ------------------------------------------------------------ */

static bool
is_constant(const Onnx__NodeProto *node)
{
    return qdqi_node_is(node, "Constant") && node->n_output == 1;
}

static void
list_values(struct splitting *c)
{
    const Onnx__GraphProto *g = c->graph;
    struct value *v;
    for (size_t i = 0; i < g->n_input; i++)
        if ((v = find_or_add(c, g->input[i]->name)))
            v->input = g->input[i];
    for (size_t i = 0; i < g->n_initializer; i++)
        if ((v = find_or_add(c, g->initializer[i]->name)))
            v->initializer = g->initializer[i];
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if ((v = find_or_add(c, g->node[i]->output[k]))) {
                v->made = i;
                v->copied = is_constant(g->node[i]) ? g->node[i] : NULL;
            }
    }
    for (size_t i = 0; i < g->n_output; i++)
        if ((v = find_or_add(c, g->output[i]->name))) {
            v->is_result = true;
            v->copied = NULL;
        }
}

static bool
is_made(const struct value *v)
{
    return v->made != SIZE_MAX && !v->copied;
}

static void
record_use(struct splitting *c, struct value *v, size_t at)
{
    (void)c;
    v->last = at;
}

static void
count_fake(struct splitting *c, int64_t slot, size_t at)
{
    (void)slot;
    c->fakes[at + 1]++;
}

static void
measure(struct splitting *c)
{
    const Onnx__GraphProto *g = c->graph;
    const struct visitor visitor = {record_use, count_fake};
    for (size_t i = 0; i < g->n_node; i++)
        visit_node(c, g->node[i], i, &visitor);
    for (size_t i = 0; i < g->n_node; i++) {
        c->fakes[i + 1] += c->fakes[i];
        for (size_t k = 0; k < g->node[i]->n_output; k++) {
            const struct value *v = find(c, g->node[i]->output[k]);
            if (!v || !is_made(v) || v->last == SIZE_MAX || v->last <= i)
                continue;
            c->passed[i + 1]++;
            c->passed[v->last + 1]--;
        }
    }
    for (size_t i = 0; i < g->n_node; i++)
        c->passed[i + 1] += c->passed[i];
}

/* --- choosing the places ------------------------------------------------- */

static size_t
distance(size_t a, size_t b)
{
    return a < b ? b - a : a - b;
}

/*
 * Returns the first node of part k of n: among the places near to the k-th of n equal
 * shares of FakeQuant nodes, the one that the fewest tensors cross. Returns the first
 * node of the part before, `before`, when there is no such place.
 */
static size_t
find_place(const struct splitting *c, size_t k, size_t n, size_t before)
{
    size_t all = c->fakes[c->graph->n_node], target = k * all / n, half = all / (2 * n);
    size_t best = before;
    for (size_t i = before + 1; i < c->graph->n_node; i++) {
        if (c->fakes[i + 1] == c->fakes[i] || c->fakes[i] == c->fakes[before] ||
            distance(c->fakes[i], target) > half)
            continue;
        if (best == before || c->passed[i] < c->passed[best] ||
            (c->passed[i] == c->passed[best] &&
             distance(c->fakes[i], target) < distance(c->fakes[best], target)))
            best = i;
    }
    return best;
}

static void
find_places(struct splitting *c, size_t most)
{
    size_t n = 1;
    for (size_t k = 1; k < most; k++) {
        size_t place = find_place(c, k, most, c->first[n - 1]);
        if (place > c->first[n - 1])
            c->first[n++] = place;
    }
    c->first[n] = c->graph->n_node;
    c->split->n_parts = n;
}

/* --- the parts ------------------------------------------------------------ */

static Onnx__ValueInfoProto *
untyped(struct splitting *c, const char *name)
{
    Onnx__ValueInfoProto *info = alloc(c, 1, sizeof *info);
    if (info) {
        onnx__value_info_proto__init(info);
        info->name = (char *)(uintptr_t)name;
    }
    return info;
}

/* Allocates the graph of a part with lists as long as they can become. */
static bool
make_room(struct splitting *c, struct qdqi_split_part *part,
          const Onnx__ModelProto *proto)
{
    const Onnx__GraphProto *g = c->graph;
    Onnx__GraphProto *own = alloc(c, 1, sizeof *own);
    size_t values = qdqi_map_size(c->values);
    part->proto = alloc(c, 1, sizeof *part->proto);
    part->inputs = alloc(c, values, sizeof *part->inputs);
    if (!own || !part->proto || !part->inputs)
        return false;
    *part->proto = *proto;
    *own = *g;
    part->proto->graph = own;
    own->n_node = own->n_input = own->n_output = own->n_initializer = 0;
    own->n_value_info = 0;
    own->node = alloc(c, g->n_node, sizeof(Onnx__NodeProto *));
    own->input = alloc(c, values, sizeof(Onnx__ValueInfoProto *));
    own->output = alloc(c, values, sizeof(Onnx__ValueInfoProto *));
    own->initializer = alloc(c, g->n_initializer, sizeof(Onnx__TensorProto *));
    own->value_info = alloc(c, g->n_value_info, sizeof(Onnx__ValueInfoProto *));
    return own->node && own->input && own->output && own->initializer &&
           own->value_info;
}

/* Adds a tensor that part p reads but does not make: as an initializer, as a copied
   Constant or as an input. Does nothing if it is there already. */
static void
add_part_input(struct splitting *c, struct value *v, size_t p)
{
    struct qdqi_split_part *part = &c->split->parts[p];
    Onnx__GraphProto *own = part->proto->graph;
    if (v->listed == p + 1 || (is_made(v) && v->made >= c->first[p]))
        return;
    v->listed = p + 1;
    if (v->initializer) {
        own->initializer[own->n_initializer++] = v->initializer;
    } else if (v->copied) {
        own->node[own->n_node++] = v->copied;
    } else {
        part->inputs[part->n_inputs++] = v->at;
        own->input[own->n_input++] = v->input ? v->input : untyped(c, v->at.name);
    }
}

static void
add_part_output(struct splitting *c, size_t p, struct value *v,
                Onnx__ValueInfoProto *info)
{
    Onnx__GraphProto *own = c->split->parts[p].proto->graph;
    v->at.part = p;
    v->at.output = own->n_output;
    own->output[own->n_output++] = info;
}

/* Makes the tensors that later parts read outputs of part p. */
static void
add_part_outputs(struct splitting *c, size_t p)
{
    struct qdqi_split_part *part = &c->split->parts[p];
    size_t end = c->first[p + 1];
    for (size_t i = c->first[p]; i < end; i++) {
        const Onnx__NodeProto *node = c->graph->node[i];
        for (size_t k = 0; k < node->n_output; k++) {
            struct value *v = find(c, node->output[k]);
            if (v && is_made(v) && v->last != SIZE_MAX && v->last >= end)
                add_part_output(c, p, v, untyped(c, v->at.name));
        }
    }
    part->n_passed_on = part->proto->graph->n_output;
}

static size_t
part_of_node(const struct splitting *c, size_t node)
{
    size_t p = 0;
    while (p + 1 < c->split->n_parts && c->first[p + 1] <= node)
        p++;
    return p;
}

/* Makes output i of the model an output of the part that makes it, or of the last
   part if no node makes it. */
static void
add_model_output(struct splitting *c, size_t i)
{
    Onnx__ValueInfoProto *info = c->graph->output[i];
    struct value *v = find(c, info->name);
    size_t last = c->split->n_parts - 1;
    if (v->at.part == QDQI_NO_PART) {
        size_t p = is_made(v) ? part_of_node(c, v->made) : last;
        add_part_input(c, v, p);
        add_part_output(c, p, v, info);
    } else {
        c->split->parts[v->at.part].proto->graph->output[v->at.output] = info;
    }
    c->split->outputs[i] = v->at;
}

static void
record_slot(struct splitting *c, int64_t slot, size_t at)
{
    if (slot >= 0 && (size_t)slot < c->split->n_slots)
        c->split->part_of_slot[slot] = part_of_node(c, at);
}

static void
add_read_input(struct splitting *c, struct value *v, size_t at)
{
    add_part_input(c, v, part_of_node(c, at));
}

/* Adds the nodes of part p. Copied Constants come first, so that they stand before
   the nodes that read them. */
static void
build_part(struct splitting *c, size_t p)
{
    Onnx__GraphProto *own = c->split->parts[p].proto->graph;
    const struct visitor visitor = {add_read_input, record_slot};
    for (size_t i = c->first[p]; i < c->first[p + 1]; i++)
        visit_node(c, c->graph->node[i], i, &visitor);
    for (size_t i = c->first[p]; i < c->first[p + 1]; i++) {
        struct value *v = is_constant(c->graph->node[i])
                              ? find(c, c->graph->node[i]->output[0])
                              : NULL;
        if (!v || !v->copied)
            own->node[own->n_node++] = c->graph->node[i];
    }
}

static void
share_value_info(struct splitting *c)
{
    for (size_t i = 0; i < c->graph->n_value_info; i++) {
        const struct value *v = find(c, c->graph->value_info[i]->name);
        if (!v || !is_made(v) || v->at.part != QDQI_NO_PART)
            continue;
        Onnx__GraphProto *own = c->split->parts[part_of_node(c, v->made)].proto->graph;
        own->value_info[own->n_value_info++] = c->graph->value_info[i];
    }
}

static bool
make_parts(struct splitting *c, const Onnx__ModelProto *proto)
{
    struct qdqi_split *split = c->split;
    for (size_t p = 0; p < split->n_parts; p++)
        if (!make_room(c, &split->parts[p], proto))
            return false;
    for (size_t p = 0; p < split->n_parts; p++)
        add_part_outputs(c, p);
    for (size_t p = 0; p < split->n_parts; p++)
        build_part(c, p);
    for (size_t i = 0; i < split->n_outputs; i++)
        add_model_output(c, i);
    share_value_info(c);
    return !qdqi_arena_exhausted(c->arena);
}

enum qdq_code
qdqi_split_model(const Onnx__ModelProto *proto, size_t most, size_t n_slots,
                 struct qdqi_arena *arena, struct qdqi_split *ret,
                 struct qdq_error *err)
{
    const Onnx__GraphProto *g = proto->graph;
    struct splitting c = {.graph = g, .arena = arena, .split = ret};
    c.values = qdqi_map_new(arena);
    c.fakes = alloc(&c, g->n_node + 1, sizeof *c.fakes);
    c.passed = alloc(&c, g->n_node + 2, sizeof *c.passed);
    c.first = alloc(&c, most + 1, sizeof *c.first);
    *ret = (struct qdqi_split){.parts = alloc(&c, most, sizeof *ret->parts),
                               .outputs = alloc(&c, g->n_output, sizeof *ret->outputs),
                               .n_outputs = g->n_output,
                               .part_of_slot = alloc(&c, n_slots, sizeof(size_t)),
                               .n_slots = n_slots};
    if (qdqi_arena_exhausted(arena))
        return qdqi_no_memory(err);
    list_values(&c);
    if (qdqi_arena_exhausted(arena))
        return qdqi_no_memory(err);
    measure(&c);
    find_places(&c, g->n_sparse_initializer > 0 ? 1 : most);
    return make_parts(&c, proto) ? QDQ_OK : qdqi_no_memory(err);
}
