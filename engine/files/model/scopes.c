/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes names unique across the graphs of a model. ONNX lets graphs that do not see
 * each other use one name (the branches of an If), and some files do so for graphs that
 * do see each other. Here a name belongs to one tensor: the first graph keeps it, the
 * others get a new one. Inputs and outputs of nested graphs are matched by position, so
 * their names can change freely.
 */
#include "config.h"
#include "files/model/model.h"

#include <string.h>

/* Operators whose bodies are understood: ONNX's control flow. */
static const char *const owners[] = {"If", "Loop", "Scan", NULL};

/* --- listing the graphs -------------------------------------------------- */

static enum qdq_code
count(const Onnx__GraphProto *g, size_t *nodes, size_t *scopes, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    *nodes += g->n_node;
    (*scopes)++;
    for (size_t i = 0; i < g->n_node && !code; i++) {
        const Onnx__NodeProto *node = g->node[i];
        if (!node->op_type || !*node->op_type)
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                                 "node %zu has no operator", i);
        for (size_t k = 0; k < node->n_attribute && !code; k++) {
            const Onnx__AttributeProto *a = node->attribute[k];
            code = a->g ? count(a->g, nodes, scopes, err) : QDQ_OK;
            for (size_t j = 0; j < a->n_graphs && !code; j++)
                code = count(a->graphs[j], nodes, scopes, err);
        }
    }
    return code;
}

/* Makes the next node the owner of the graphs that were listed from `first` on,
   nested in graph `s`. */
static size_t
own_graphs(struct qdqi_graph *graph, size_t s, size_t first)
{
    size_t next = 0;
    for (size_t k = graph->n_scopes; k-- > first;) {
        struct qdqi_scope *scope = &graph->scopes[k];
        if (scope->outer != s)
            continue;
        scope->owner = (int64_t)graph->n_nodes;
        scope->next = next;
        next = k;
    }
    return next;
}

static void list_scope(struct qdqi_graph *graph, size_t s);

static void
list_nested(struct qdqi_graph *graph, size_t outer, const Onnx__NodeProto *node,
            size_t attribute, Onnx__GraphProto *g, size_t place)
{
    size_t s = graph->n_scopes++;
    graph->scopes[s] =
        (struct qdqi_scope){.proto = g,
                            .outer = outer,
                            .attribute = attribute,
                            .place = place,
                            .is_opaque = graph->scopes[outer].is_opaque ||
                                         !qdqi_node_is_one_of(node, owners)};
    list_scope(graph, s);
}

/* Lists the nodes of one graph. One array, allocated before, has room for the lists
   of all graphs. */
static void
list_scope(struct qdqi_graph *graph, size_t s)
{
    struct qdqi_scope *scope = &graph->scopes[s];
    const Onnx__GraphProto *g = scope->proto;
    scope->nodes = graph->scopes[0].nodes + graph->n_listed;
    graph->n_listed += g->n_node;
    scope->begin = graph->n_nodes;
    for (size_t i = 0; i < g->n_node; i++) {
        Onnx__NodeProto *node = g->node[i];
        size_t first = graph->n_scopes;
        for (size_t k = 0; k < node->n_attribute; k++) {
            const Onnx__AttributeProto *a = node->attribute[k];
            if (a->g)
                list_nested(graph, s, node, k, a->g, 0);
            for (size_t j = 0; j < a->n_graphs; j++)
                list_nested(graph, s, node, k, a->graphs[j], j);
        }
        size_t body = own_graphs(graph, s, first);
        scope->nodes[i] = graph->n_nodes;
        graph->nodes[graph->n_nodes++] =
            (struct qdqi_node){.proto = node, .scope = s, .place = i, .body = body};
    }
}

static enum qdq_code
list_all(struct qdq_model *m, struct qdq_error *err)
{
    struct qdqi_graph *graph = &m->graph;
    size_t nodes = 0, scopes = 0;
    enum qdq_code code = count(m->proto->graph, &nodes, &scopes, err);
    if (code)
        return code;
    graph->nodes = qdqi_arena_array(m->arena, nodes, sizeof *graph->nodes);
    graph->scopes = qdqi_arena_array(m->arena, scopes, sizeof *graph->scopes);
    size_t *places = qdqi_arena_array(m->arena, nodes, sizeof *places);
    if (!graph->nodes || !graph->scopes || !places)
        return qdqi_no_memory(err);
    graph->n_nodes = graph->n_listed = 0;
    graph->n_scopes = 1;
    graph->scopes[0] =
        (struct qdqi_scope){.proto = m->proto->graph, .owner = -1, .nodes = places};
    list_scope(graph, 0);
    return QDQ_OK;
}

/* --- names ---------------------------------------------------------------- */

/* The first graph that defines a name, and the last number that was tried as its
   suffix. */
struct definition {
    size_t scope;
    unsigned suffix;
};

struct naming {
    struct qdq_model *m;
    struct qdqi_map *defined; /* from a name to struct definition */
    /* for each graph: from a name to its new name; NULL: nothing is renamed */
    struct qdqi_map **renamed;
    bool any;
};

bool
qdqi_name_take(struct qdq_model *m, const char *name)
{
    static char taken;
    return !name || !*name || qdqi_map_put(m->graph.names, name, &taken);
}

typedef bool (*see_name)(struct naming *n, size_t scope, char **name);

/* Calls `see` for each name that a graph defines. */
static bool
each_definition(struct naming *n, size_t s, see_name see)
{
    const Onnx__GraphProto *g = n->m->graph.scopes[s].proto;
    bool ok = true;
    for (size_t i = 0; ok && i < g->n_initializer; i++)
        ok = see(n, s, &g->initializer[i]->name);
    for (size_t i = 0; ok && i < g->n_sparse_initializer; i++)
        if (g->sparse_initializer[i]->values)
            ok = see(n, s, &g->sparse_initializer[i]->values->name);
    for (size_t i = 0; ok && i < g->n_input; i++)
        ok = see(n, s, &g->input[i]->name);
    for (size_t i = 0; ok && i < g->n_node; i++)
        for (size_t k = 0; ok && k < g->node[i]->n_output; k++)
            ok = see(n, s, &g->node[i]->output[k]);
    return ok;
}

/* Calls `see` for each name by which a graph refers to a tensor. */
static bool
each_mention(struct naming *n, size_t s, see_name see)
{
    const Onnx__GraphProto *g = n->m->graph.scopes[s].proto;
    bool ok = true;
    for (size_t i = 0; ok && i < g->n_node; i++)
        for (size_t k = 0; ok && k < g->node[i]->n_input; k++)
            ok = see(n, s, &g->node[i]->input[k]);
    for (size_t i = 0; ok && i < g->n_output; i++)
        ok = see(n, s, &g->output[i]->name);
    for (size_t i = 0; ok && i < g->n_value_info; i++)
        ok = see(n, s, &g->value_info[i]->name);
    for (size_t i = 0; ok && i < g->n_quantization_annotation; i++) {
        Onnx__TensorAnnotation *a = g->quantization_annotation[i];
        ok = see(n, s, &a->tensor_name);
        for (size_t k = 0; ok && k < a->n_quant_parameter_tensor_names; k++)
            ok = see(n, s, &a->quant_parameter_tensor_names[k]->value);
    }
    return ok;
}

static bool
see_taken(struct naming *n, size_t s, char **name)
{
    (void)s;
    return qdqi_name_take(n->m, *name);
}

/* Returns an unused name that begins with `name`; NULL when out of memory. */
static char *
fresh_name(struct naming *n, const char *name, struct definition *like)
{
    char *fresh;
    do
        fresh = qdqi_arena_printf(n->m->arena, "%s_%u", name, ++like->suffix);
    while (fresh && qdqi_map_get(n->m->graph.names, fresh));
    return fresh && qdqi_name_take(n->m, fresh) ? fresh : NULL;
}

static bool
see_definition(struct naming *n, size_t s, char **name)
{
    if (!*name || !**name)
        return true;
    struct definition *has = qdqi_map_get(n->defined, *name);
    if (!has) {
        if (!(has = qdqi_arena_alloc(n->m->arena, sizeof *has)))
            return false;
        has->scope = s;
        return qdqi_map_put(n->defined, *name, has);
    }
    if (has->scope == s)
        return true;
    n->any = true;
    if (!n->renamed[s] && !(n->renamed[s] = qdqi_map_new(n->m->arena)))
        return false;
    if (qdqi_map_get(n->renamed[s], *name))
        return true;
    char *fresh = fresh_name(n, *name, has);
    return fresh && qdqi_map_put(n->renamed[s], *name, fresh);
}

/* Replaces a reference by the new name that the nearest enclosing graph gave it, if
   any. */
static bool
see_renamed(struct naming *n, size_t s, char **name)
{
    const struct qdqi_scope *scopes = n->m->graph.scopes;
    if (!*name || !**name)
        return true;
    for (;; s = scopes[s].outer) {
        char *fresh = n->renamed[s] ? qdqi_map_get(n->renamed[s], *name) : NULL;
        if (fresh)
            *name = fresh;
        if (fresh || s == 0)
            return true;
    }
}

/*
 * Renames a name that several graphs define in all but the first. An outer graph comes
 * before the graphs in it, so each reference means the nearest renamed definition, or
 * the original name when there is none.
 */
static enum qdq_code
make_unique(struct qdq_model *m, struct qdq_error *err)
{
    const size_t n_scopes = m->graph.n_scopes;
    struct naming n = {.m = m,
                       .defined = qdqi_map_new(m->arena),
                       .renamed =
                           qdqi_arena_array(m->arena, n_scopes, sizeof *n.renamed)};
    bool ok = n.defined && n.renamed;
    for (size_t s = 0; ok && s < n_scopes; s++)
        ok = each_definition(&n, s, see_taken) && each_mention(&n, s, see_taken);
    for (size_t i = 0; ok && i < m->graph.n_nodes; i++)
        ok = qdqi_name_take(m, m->graph.nodes[i].proto->name);
    for (size_t s = 0; ok && s < n_scopes && n_scopes > 1; s++)
        ok = each_definition(&n, s, see_definition);
    for (size_t s = 0; ok && s < n_scopes && n.any; s++)
        ok = each_definition(&n, s, see_renamed) && each_mention(&n, s, see_renamed);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

/* --- listing and renaming ------------------------------------------------ */

enum qdq_code
qdqi_scopes_index(struct qdq_model *m, struct qdq_error *err)
{
    bool changed = false;
    enum qdq_code code;
    m->graph.names = qdqi_map_new(m->arena);
    if (!m->graph.names)
        return qdqi_no_memory(err);
    if ((code = list_all(m, err)) || (code = make_unique(m, err)))
        return code;
    for (size_t s = 0; s < m->graph.n_scopes; s++)
        if ((code = qdqi_graph_order(m, m->graph.scopes[s].proto, &changed, err)))
            return code;
    return changed ? list_all(m, err) : QDQ_OK;
}

bool
qdqi_scope_sees(const struct qdqi_graph *graph, size_t inner, size_t scope)
{
    while (inner > scope)
        inner = graph->scopes[inner].outer;
    return inner == scope;
}

size_t
qdqi_scope_ancestor(const struct qdqi_graph *graph, size_t node, size_t scope)
{
    while (graph->nodes[node].scope > scope)
        node = (size_t)graph->scopes[graph->nodes[node].scope].owner;
    return node;
}
