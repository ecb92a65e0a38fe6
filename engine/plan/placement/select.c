/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/select.h"

#include "ground/base/glob.h"

#include <stdio.h>
#include <string.h>

/* --- one entry at a time -------------------------------------------------- */

/* An entry that selects nodes, and its origin. */
struct chooser {
    struct qdqi_selection *selection;
    const struct qdq_layer_entry *entry;
    bool is_case;
    const char *who;     /* "layers[2]", "case:residual" */
    const char *pointer; /* "/layers/2", "/cases/0" */
};

/* Returns whether the entry quantizes nothing of a layer, so that it does not matter
   whether the layer has support. */
static bool
leaves_alone(const struct qdq_layer_entry *entry)
{
    return !entry->quantize_input && !entry->quantize_weight;
}

static void
choose(const struct chooser *c, const struct qdqi_node *node, enum qdqi_rank rank)
{
    struct qdqi_layers *layers = c->selection->layers;
    size_t i = qdqi_layer_index(layers, node);
    struct qdqi_choice *choice = &c->selection->choices[i];
    if (c->is_case)
        rank = QDQI_BY_CASE;
    else if (rank >= QDQI_BY_MATCH)
        layers->named[i] = true;
    if (rank >= choice->rank)
        *choice = (struct qdqi_choice){c->entry, rank, c->who, c->pointer};
}

/* Returns the place of the entry's selector, or of its name i. The entries of a case
   have the place of the case. */
static const char *
place(const struct chooser *c, const char *member, size_t i)
{
    struct qdqi_arena *arena = c->selection->arena;
    const char *where =
        c->is_case ? c->pointer
        : c->entry->is_list
            ? qdqi_arena_printf(arena, "%s/%s/%zu", c->pointer, member, i)
            : qdqi_arena_printf(arena, "%s/%s", c->pointer, member);
    return where ? where : c->pointer;
}

enum qdq_code
qdqi_unmatched(struct qdqi_selection *s, struct qdq_error *err, const char *pointer,
               const char *node, const char *fmt, ...)
{
    char text[384];
    va_list args;
    va_start(args, fmt);
    qdq_text_vprint(text, sizeof text, fmt, args);
    va_end(args);
    if (s->unmatched_is_error)
        return qdq_error_set(err, QDQ_UNMATCHED, QDQ_AT_POINTER, pointer, "%s", text);
    return qdqi_warn(s->warnings, s->arena, err, "unmatched", node, "%s", text);
}

/* --- by name -------------------------------------------------------------- */

static enum qdq_code
without_support(const struct chooser *c, const struct qdqi_node *node,
                const char *pointer, struct qdq_error *err)
{
    struct qdqi_selection *s = c->selection;
    const char *op = node->proto->op_type;
    if (leaves_alone(c->entry))
        return QDQ_OK;
    if (s->unmatched_is_error)
        return qdq_error_set(
            err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, pointer,
            "%s names '%.128s', and no class of the layer support fits this %s as it "
            "stands; layer_support adds one",
            c->who, node->name, op);
    return qdqi_warn(s->warnings, s->arena, err, "no_support", node->name,
                     "%s names it, and no class of the layer support fits this %s as "
                     "it stands; layer_support adds one",
                     c->who, op);
}

static enum qdq_code
choose_by_name(const struct chooser *c, struct qdq_error *err)
{
    const struct qdqi_layers *layers = c->selection->layers;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < c->entry->n_names && !code; i++) {
        const char *name = c->entry->names[i];
        const struct qdqi_node *node = qdqi_layer_find(layers, name);
        if (!node)
            code = qdqi_unmatched(c->selection, err, place(c, "name", i), NULL,
                                  "%s names '%.128s', and the model has no node of "
                                  "that name",
                                  c->who, name);
        else if (!layers->classes[qdqi_layer_index(layers, node)])
            code = without_support(c, node, place(c, "name", i), err);
        else
            choose(c, node, QDQI_BY_NAME);
    }
    return code;
}

/* --- by glob -------------------------------------------------------------- */

/* Returns whether a glob selects layers of the class. It selects classes that are on
   or off by default, and none that only a name or a class selects. */
static bool
glob_takes(const struct qdqi_class *cls)
{
    return cls && (cls->state == QDQI_ON || cls->state == QDQI_OFF);
}

static enum qdq_code
choose_by_match(const struct chooser *c, struct qdq_error *err)
{
    struct qdqi_selection *s = c->selection;
    const struct qdqi_graph *graph = &s->layers->model->graph;
    const char *glob = c->entry->names[0], *other = NULL;
    size_t n = 0;
    if (strlen(glob) > QDQI_MAX_GLOB || s->n_globs++ >= QDQI_MAX_GLOBS)
        return qdq_error_set(
            err, QDQ_LIMIT_EXCEEDED, QDQ_AT_POINTER, place(c, "match", 0),
            "a plan takes %d globs of at most %d bytes", QDQI_MAX_GLOBS, QDQI_MAX_GLOB);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!qdqi_glob(glob, graph->nodes[i].name))
            continue;
        if (glob_takes(s->layers->classes[i])) {
            choose(c, &graph->nodes[i], QDQI_BY_MATCH);
            n++;
        } else {
            other = graph->nodes[i].name;
        }
    }
    if (n || (other && leaves_alone(c->entry)))
        return QDQ_OK;
    if (other)
        return qdqi_unmatched(s, err, place(c, "match", 0), NULL,
                              "%s: '%.128s' matches no layer, only nodes that have to "
                              "be asked for by name or class, such as '%.128s'",
                              c->who, glob, other);
    return qdqi_unmatched(s, err, place(c, "match", 0), NULL,
                          "%s: '%.128s' matches no node of the model", c->who, glob);
}

/* --- by class ------------------------------------------------------------- */

static enum qdq_code
unknown_class(const struct chooser *c, const char *name, struct qdq_error *err)
{
    const char *nearest = qdqi_class_nearest(c->selection->layers->rows, name);
    return qdq_error_set(
        err, c->is_case ? QDQ_CASE_FAILED : QDQ_INVALID_SPEC, QDQ_AT_POINTER,
        place(c, "class", 0),
        "%s: the layer support has no class \"%.64s\"%s%s%s; layer_support adds one",
        c->who, name, nearest ? ", did you mean \"" : "", nearest ? nearest : "",
        nearest ? "\"?" : "");
}

static enum qdq_code
choose_by_class(const struct chooser *c, struct qdq_error *err)
{
    struct qdqi_selection *s = c->selection;
    const struct qdqi_graph *graph = &s->layers->model->graph;
    const char *name = c->entry->names[0];
    size_t n = 0;
    if (!qdqi_class_is_known(s->layers->rows, name))
        return unknown_class(c, name, err);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (s->layers->classes[i] && qdqi_class_goes_by(s->layers->classes[i], name)) {
            choose(c, &graph->nodes[i], QDQI_BY_CLASS);
            n++;
        }
    if (n || c->is_case)
        return QDQ_OK;
    return qdqi_warn(s->warnings, s->arena, err, "unmatched", NULL,
                     "%s: the model has no layer of class \"%.64s\"", c->who, name);
}

/*
 * Returns whether the entry is the last one for its class; only the last one counts.
 * The others are not applied, so that a spec that repeats itself does not make the plan
 * slower.
 */
static bool
is_last_of_class(struct qdqi_map *last, const struct qdq_layer_entry *entry)
{
    return entry->by != QDQ_BY_CLASS || qdqi_map_get(last, entry->names[0]) == entry;
}

static struct qdqi_map *
last_of_classes(const struct qdq_layer_entry *entries, size_t n,
                struct qdqi_arena *arena)
{
    struct qdqi_map *last = qdqi_map_new(arena);
    for (size_t i = 0; i < n && last; i++)
        if (entries[i].by == QDQ_BY_CLASS &&
            !qdqi_map_put(last, entries[i].names[0], (void *)(uintptr_t)&entries[i]))
            last = NULL;
    return last;
}

/* --- all entries ---------------------------------------------------------- */

static enum qdq_code (*const choose_by[])(const struct chooser *c,
                                          struct qdq_error *err) = {
    [QDQ_BY_CLASS] = choose_by_class,
    [QDQ_BY_MATCH] = choose_by_match,
    [QDQ_BY_NAME] = choose_by_name,
};

enum qdq_code
qdqi_selection_new(struct qdqi_layers *layers, const struct qdq_spec *spec,
                   struct qdqi_arena *arena, struct qdqi_warnings *warnings,
                   struct qdqi_selection *ret, struct qdq_error *err)
{
    *ret = (struct qdqi_selection){
        .layers = layers,
        .choices =
            qdqi_arena_array(arena, layers->model->graph.n_nodes, sizeof *ret->choices),
        .arena = arena,
        .warnings = warnings,
        .unmatched_is_error = spec->unmatched_is_error,
    };
    return ret->choices ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_select_spec(struct qdqi_selection *s, const struct qdq_spec *spec,
                 struct qdq_error *err)
{
    struct qdqi_map *last = last_of_classes(spec->layers, spec->n_layers, s->arena);
    enum qdq_code code = last ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; i < spec->n_layers && !code; i++) {
        const struct chooser c = {
            .selection = s,
            .entry = &spec->layers[i],
            .who = qdqi_arena_printf(s->arena, "layers[%zu]", i),
            .pointer = qdqi_arena_printf(s->arena, "/layers/%zu", i),
        };
        if (!c.who || !c.pointer)
            return qdqi_no_memory(err);
        if (is_last_of_class(last, c.entry))
            code = choose_by[c.entry->by](&c, err);
    }
    return code;
}

enum qdq_code
qdqi_select_case(struct qdqi_selection *s, const char *name, const char *pointer,
                 const struct qdq_layer_entry *entries, size_t n, struct qdq_error *err)
{
    struct qdqi_map *last = last_of_classes(entries, n, s->arena);
    struct chooser c = {
        .selection = s,
        .is_case = true,
        .who = qdqi_arena_printf(s->arena, "case:%s", name),
        .pointer = pointer,
    };
    enum qdq_code code = last && c.who ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; i < n && !code; i++) {
        c.entry = &entries[i];
        if (is_last_of_class(last, c.entry))
            code = choose_by[c.entry->by](&c, err);
    }
    return code;
}
