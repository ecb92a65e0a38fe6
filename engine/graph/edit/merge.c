/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the edited model from the messages of the source and those of the edit. */
#include "config.h"
#include "graph/edit/state.h"

#include <string.h>

/* The first IR version in which initializers need not be listed as inputs
   (onnx.proto). */
enum { IR_VERSION_INITIALIZERS = 4 };

/* --- one graph ------------------------------------------------------------ */

/* Returns the source's rows followed by those of the edit. */
static void *
concatenate(struct qdqi_edit *e, void *rows, size_t n, const struct qdqi_rows *added,
            size_t *ret_n)
{
    void **all = qdqi_edit_array(e, n + added->n, sizeof *all);
    if (!all)
        return NULL;
    if (n)
        memcpy(all, rows, n * sizeof *all);
    if (added->n)
        memcpy(all + n, added->rows, added->n * sizeof *all);
    *ret_n = n + added->n;
    return all;
}

static void
replace_initializers(struct qdqi_edit *e, Onnx__GraphProto *graph)
{
    if (qdqi_map_size(e->replaced) == 0)
        return;
    Onnx__TensorProto **all = qdqi_edit_array(e, graph->n_initializer, sizeof *all);
    if (!all)
        return;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        Onnx__TensorProto *t = qdqi_map_get(e->replaced, graph->initializer[i]->name);
        all[i] = t ? t : graph->initializer[i];
    }
    graph->initializer = all;
}

/* Merges the nodes of one graph of the source and those that were added there. */
static void
merge_nodes(struct qdqi_edit *e, size_t scope, Onnx__GraphProto *graph)
{
    const struct qdqi_scope *from = &e->source->graph.scopes[scope];
    size_t n = from->proto->n_node, end = e->source->graph.n_nodes + scope, filled = 0;
    Onnx__NodeProto **nodes = qdqi_edit_array(e, n + e->n_added, sizeof *nodes);
    size_t *origins = qdqi_edit_array(e, n + e->n_added, sizeof *origins);
    if (!nodes || !origins)
        return;
    for (size_t place = 0; place <= n; place++) {
        size_t i = place < n ? from->nodes[place] : end;
        for (const struct qdqi_insertion *k = e->first[i]; k; k = k->next) {
            origins[filled] = SIZE_MAX;
            nodes[filled++] = k->node;
        }
        if (i == end || e->dropped[i])
            continue;
        origins[filled] = i;
        nodes[filled++] = e->changed[i] ? e->changed[i] : from->proto->node[place];
    }
    graph->node = nodes;
    graph->n_node = filled;
    if (scope == 0)
        e->origins = origins;
}

/* --- nested graphs -------------------------------------------------------- */

/* Records that a node reads initializers. An initializer belongs to the graph whose
   nodes read it, or to the main graph if nodes of several graphs do. */
static void
note_reader(struct qdqi_map *added, const Onnx__NodeProto *node, size_t scope)
{
    for (size_t i = 0; i < node->n_input; i++) {
        struct qdqi_added *a =
            node->input[i] ? qdqi_map_get(added, node->input[i]) : NULL;
        if (!a)
            continue;
        a->scope = a->is_read && a->scope != scope ? 0 : scope;
        a->is_read = true;
    }
}

static void
place_initializers(struct qdqi_edit *e)
{
    const struct qdqi_graph *graph = &e->source->graph;
    struct qdqi_map *added = qdqi_map_new(e->arena);
    bool ok =
        added && (e->placed = qdqi_edit_array(e, graph->n_scopes, sizeof *e->placed));
    for (size_t i = 0; ok && i < e->initializers.n; i++) {
        struct qdqi_added *a = e->initializers.rows[i];
        ok = a->tensor->name && qdqi_map_put(added, a->tensor->name, a);
    }
    e->out_of_memory |= !ok;
    for (size_t i = 0; ok && i < graph->n_nodes + graph->n_scopes; i++) {
        size_t scope = i < graph->n_nodes ? graph->nodes[i].scope : i - graph->n_nodes;
        for (const struct qdqi_insertion *k = e->first[i]; k; k = k->next)
            note_reader(added, k->node, scope);
        if (i < graph->n_nodes && e->changed[i])
            note_reader(added, e->changed[i], scope);
    }
    for (size_t i = 0; ok && i < e->initializers.n; i++) {
        struct qdqi_added *a = e->initializers.rows[i];
        qdqi_edit_append(e, &e->placed[a->scope], a->tensor);
    }
}

/* Puts the copy of a nested graph into the copy of the node that has it. */
static void
replace_nested_graph(struct qdqi_edit *e, const struct qdqi_scope *scope,
                     Onnx__GraphProto *graph)
{
    Onnx__NodeProto *owner = qdqi_edit_change_node(e, (size_t)scope->owner);
    Onnx__AttributeProto **all =
        owner ? qdqi_edit_array(e, owner->n_attribute, sizeof *all) : NULL;
    Onnx__AttributeProto *a = all ? qdqi_edit_array(e, 1, sizeof *a) : NULL;
    if (!a)
        return;
    memcpy(all, owner->attribute, owner->n_attribute * sizeof *all);
    *a = *all[scope->attribute];
    if (a->g == scope->proto) {
        a->g = graph;
    } else {
        Onnx__GraphProto **graphs = qdqi_edit_array(e, a->n_graphs, sizeof *graphs);
        if (!graphs)
            return;
        memcpy(graphs, a->graphs, a->n_graphs * sizeof *graphs);
        graphs[scope->place] = graph;
        a->graphs = graphs;
    }
    all[scope->attribute] = a;
    owner->attribute = all;
}

/* Copies one graph. The graphs nested in it must have been copied before. */
static Onnx__GraphProto *
merge_graph(struct qdqi_edit *e, size_t scope)
{
    Onnx__GraphProto *graph = qdqi_edit_array(e, 1, sizeof *graph);
    if (!graph)
        return NULL;
    *graph = *e->source->graph.scopes[scope].proto;
    merge_nodes(e, scope, graph);
    replace_initializers(e, graph);
    qdqi_edit_leave_out_dropped(e, graph);
    graph->initializer = concatenate(e, graph->initializer, graph->n_initializer,
                                     &e->placed[scope], &graph->n_initializer);
    return graph;
}

/* --- the model ------------------------------------------------------------ */

/*
 * Raises the IR version if it is below 4, where every initializer has to be an input,
 * too. Our initializers are not inputs. The inputs that are constants are removed,
 * because they would become overridable in IR version 4.
 */
static void
raise_ir_version(struct qdqi_edit *e, Onnx__ModelProto *model, Onnx__GraphProto *graph)
{
    if (model->ir_version >= IR_VERSION_INITIALIZERS || e->initializers.n == 0)
        return;
    model->ir_version = IR_VERSION_INITIALIZERS;
    e->out_of_memory |= !qdqi_drop_constant_inputs(e->source, e->arena, graph);
}

static void
merge_metadata(struct qdqi_edit *e, Onnx__ModelProto *model)
{
    Onnx__StringStringEntryProto **kept =
        qdqi_edit_array(e, model->n_metadata_props, sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; kept && i < model->n_metadata_props; i++) {
        bool replaced = false;
        for (size_t k = 0; k < e->metadata.n; k++) {
            const Onnx__StringStringEntryProto *entry = e->metadata.rows[k];
            const char *key = model->metadata_props[i]->key;
            replaced |= key && entry->key && strcmp(key, entry->key) == 0;
        }
        if (!replaced)
            kept[n++] = model->metadata_props[i];
    }
    model->metadata_props =
        concatenate(e, kept, n, &e->metadata, &model->n_metadata_props);
}

/* Lists the bulk data of the source, followed by those of the edit. */
static void
merge_bulks(struct qdqi_edit *e)
{
    size_t n = e->source->bulks.n;
    e->all_bulks = e->source->bulks;
    if (!e->bulks.n)
        return;
    struct qdqi_bulk *all = qdqi_edit_array(e, n + e->bulks.n, sizeof *all);
    if (!all)
        return;
    if (n)
        memcpy(all, e->source->bulks.rows, n * sizeof *all);
    for (size_t i = 0; i < e->bulks.n; i++)
        all[n + i] = *(const struct qdqi_bulk *)e->bulks.rows[i];
    e->all_bulks = (struct qdqi_bulks){all, n + e->bulks.n};
}

enum qdq_code
qdqi_edit_finish(struct qdqi_edit *e, const Onnx__ModelProto **ret,
                 struct qdq_error *err)
{
    Onnx__ModelProto *model = e ? qdqi_edit_array(e, 1, sizeof *model) : NULL;
    if (!model)
        return qdqi_no_memory(err);
    *model = *e->source->proto;
    place_initializers(e);
    if (e->out_of_memory)
        return qdqi_no_memory(err);
    for (size_t s = e->source->graph.n_scopes; s-- > 0;) {
        const struct qdqi_scope *scope = &e->source->graph.scopes[s];
        Onnx__GraphProto *graph = merge_graph(e, s);
        if (!graph)
            return qdqi_no_memory(err);
        if (s > 0 && !e->dropped[scope->owner])
            replace_nested_graph(e, scope, graph);
        else if (s == 0)
            model->graph = graph;
    }
    qdqi_edit_leave_out_carried(e);
    merge_bulks(e);
    model->opset_import = concatenate(e, model->opset_import, model->n_opset_import,
                                      &e->imports, &model->n_opset_import);
    merge_metadata(e, model);
    raise_ir_version(e, model, model->graph);
    if (e->out_of_memory)
        return qdqi_no_memory(err);
    *ret = model;
    return QDQ_OK;
}

enum qdq_code
qdqi_edit_result(struct qdqi_edit *e, struct qdqi_edited *ret, struct qdq_error *err)
{
    enum qdq_code code = qdqi_edit_finish(e, &ret->proto, err);
    if (code)
        return code;
    ret->bulks = e->all_bulks;
    ret->origins = e->origins;
    return QDQ_OK;
}

enum qdq_code
qdqi_edit_derive(struct qdqi_edit *e, struct qdqi_arena **arena, struct qdq_model **ret,
                 struct qdq_error *err)
{
    struct qdqi_edited edited;
    enum qdq_code code = qdqi_edit_result(e, &edited, err);
    return code ? code : qdqi_model_derive(e->source, &edited, arena, ret, err);
}
