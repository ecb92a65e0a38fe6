/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph of a report as a drawing. A node stands one row below the lowest of the nodes that
 * it reads, and in its row near the middle of them. So connections that skip rows are drawn as
 * arcs.
 */
#include "config.h"
#include "documents/html.h"
#include "qdq/error.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_NODES = 300,
    MOST_EDGES = 3000,
    COLUMN = 176, /* the distance of two nodes in a row */
    ROW = 44,
    BOX_WIDTH = 160,
    BOX_HEIGHT = 24,
    ARC = 130,    /* how far a connection that skips rows is drawn aside */
    LETTERS = 21, /* of a name that stand in its box */
    TITLE = 256   /* bytes of a tensor's name, which many connections may have */
};

struct node {
    const char *name;
    const json_t *layer; /* NULL: the node has no class */
    int row, column;
    double wanted; /* the mean column of the nodes that it reads */
};

struct edge {
    struct node *from, *to;
    const char *tensor;
};

struct graph {
    struct node nodes[MOST_NODES];
    struct edge edges[MOST_EDGES];
    size_t n, n_edges;
    json_t
        *index;  /* from the name to the node's number; null for one that is left out */
    bool failed; /* memory has run out */
    bool is_full; /* there was no room for a node or an edge */
    int n_rows, n_columns;
};

/* Returns the node of that name, which is added if there is none. NULL for no name, for a node that is
   left out, and where there is no room. */
static struct node *
node_of(struct graph *graph, const json_t *name)
{
    const char *text = json_string_value(name);
    const json_t *found = text ? json_object_get(graph->index, text) : NULL;
    if (found)
        return json_is_null(found) ? NULL : &graph->nodes[json_integer_value(found)];
    graph->is_full |= text && graph->n == MOST_NODES;
    if (!text || graph->n == MOST_NODES)
        return NULL;
    if (json_object_set_new(graph->index, text, json_integer((json_int_t)graph->n)) !=
        0) {
        graph->failed = true;
        return NULL;
    }
    graph->nodes[graph->n] = (struct node){.name = text};
    return &graph->nodes[graph->n++];
}

/* Returns item `i` of a list: a name, or the number of one in a list. */
static const json_t *
name_at(const json_t *list, size_t i, const json_t *names)
{
    const json_t *name = json_array_get(list, i);
    json_int_t number = json_integer_value(name);
    return !json_is_integer(name) ? name
           : number >= 0          ? json_array_get(names, (size_t)number)
                                  : NULL;
}

/* Leaves out the nodes that compute constants alone, of which some exports have one for each bias. */
static void
leave_out_constants(struct graph *graph, const json_t *numbered)
{
    const json_t *nodes = json_object_get(numbered, "nodes");
    const json_t *constants = json_object_get(numbered, "constants");
    for (size_t i = 0; i < json_array_size(constants); i++) {
        const json_t *name = name_at(constants, i, nodes);
        if (json_is_string(name) &&
            json_object_set_new(graph->index, json_string_value(name), json_null()) !=
                0)
            graph->failed = true;
    }
}

/* Adds the nodes of the layers. Returns false when there are too many. */
static bool
add_layers(struct graph *graph, const json_t *layers)
{
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        struct node *node = node_of(graph, json_object_get(layer, "name"));
        if (node)
            node->layer = layer;
    }
    return !graph->is_full;
}

/* Adds the edges and their nodes. Returns false when there are too many. */
static bool
add_edges(struct graph *graph, const json_t *edges, const json_t *numbered)
{
    const json_t *nodes = json_object_get(numbered, "nodes");
    const json_t *tensors = json_object_get(numbered, "tensors");
    for (size_t i = 0; i < json_array_size(edges); i++) {
        const json_t *row = json_array_get(edges, i);
        struct edge edge = {node_of(graph, name_at(row, 0, nodes)),
                            node_of(graph, name_at(row, 1, nodes)),
                            json_string_value(name_at(row, 2, tensors))};
        const bool is_drawn = edge.from && edge.to;
        graph->is_full |= is_drawn && graph->n_edges == MOST_EDGES;
        if (graph->is_full)
            return false;
        if (is_drawn)
            graph->edges[graph->n_edges++] = edge;
    }
    return true;
}

/* Sets the rows. The edges are in the order of computation, so one pass is enough. */
static void
set_rows(struct graph *graph)
{
    for (size_t i = 0; i < graph->n_edges; i++) {
        const struct node *from = graph->edges[i].from;
        struct node *to = graph->edges[i].to;
        if (from != to && to->row <= from->row && from->row < MOST_NODES)
            to->row = from->row + 1;
    }
    for (size_t i = 0; i < graph->n; i++)
        if (graph->nodes[i].row >= graph->n_rows)
            graph->n_rows = graph->nodes[i].row + 1;
}

static int
compare_wanted(const void *a, const void *b)
{
    const struct node *left = *(struct node *const *)a;
    const struct node *right = *(struct node *const *)b;
    int order = (left->wanted > right->wanted) - (left->wanted < right->wanted);
    return order ? order : (left > right) - (left < right);
}

/* Sets the mean column of the nodes that each node of a row reads. */
static void
set_wanted(struct graph *graph, int row)
{
    double sums[MOST_NODES] = {0};
    int counts[MOST_NODES] = {0};
    for (size_t i = 0; i < graph->n_edges; i++) {
        const struct node *from = graph->edges[i].from, *to = graph->edges[i].to;
        if (to->row != row || from->row >= row)
            continue;
        sums[to - graph->nodes] += from->column;
        counts[to - graph->nodes]++;
    }
    for (size_t i = 0; i < graph->n; i++)
        if (graph->nodes[i].row == row)
            graph->nodes[i].wanted = counts[i] ? sums[i] / counts[i] : 0;
}

/* Sets the columns, row by row. */
static void
set_columns(struct graph *graph)
{
    for (int row = 0; row < graph->n_rows; row++) {
        struct node *in_row[MOST_NODES];
        int n = 0;
        set_wanted(graph, row);
        for (size_t i = 0; i < graph->n; i++)
            if (graph->nodes[i].row == row)
                in_row[n++] = &graph->nodes[i];
        qsort(in_row, (size_t)n, sizeof *in_row, compare_wanted);
        for (int i = 0, next = 0; i < n; i++) {
            int wanted = (int)(in_row[i]->wanted + 0.4);
            in_row[i]->column = wanted > next ? wanted : next;
            next = in_row[i]->column + 1;
            if (next > graph->n_columns)
                graph->n_columns = next;
        }
    }
}

static int
x_of(const struct node *node)
{
    return node->column * COLUMN + COLUMN / 2;
}

static void
draw_edge(struct api_markup *page, const struct edge *edge)
{
    const struct node *from = edge->from, *to = edge->to;
    int rows = to->row - from->row;
    int x1 = x_of(from), y1 = from->row * ROW + BOX_HEIGHT + 4;
    int x2 = x_of(to), y2 = to->row * ROW + 4;
    int aside = 0, bend = ROW / 2;
    char name[TITLE];
    qdq_text_copy(name, sizeof name, edge->tensor ? edge->tensor : "");
    if (rows != 1) { /* from side to side, past the boxes between */
        x1 += BOX_WIDTH / 2;
        x2 += BOX_WIDTH / 2;
        y1 -= BOX_HEIGHT / 2;
        y2 += BOX_HEIGHT / 2;
        aside = 12 + 10 * abs(rows) < ARC ? 12 + 10 * abs(rows) : ARC;
        bend = 0;
    }
    api_markup_format(page, "<path d=\"M%d %dC%d %d %d %d %d %d\"><title>", x1, y1,
                      x1 + aside, y1 + bend, x2 + aside, y2 - bend, x2, y2);
    api_markup_text(page, name);
    api_markup_add(page, "</title></path>\n");
}

/* Returns the class of a node's box: whether the layer has pairs. */
static const char *
class_of(const json_t *layer)
{
    bool weight = json_is_true(json_object_get(layer, "weight_quantized"));
    bool other = json_array_size(json_object_get(layer, "quantized_inputs")) ||
                 json_array_size(json_object_get(layer, "quantized_outputs"));
    return weight && other ? "both" : weight || other ? "some" : "none";
}

/* Adds the end of a name, which tells nodes of exporters apart. Whole characters are left
   out. */
static void
add_short(struct api_markup *page, const char *name)
{
    size_t len = strlen(name), skip = len > LETTERS ? len - LETTERS + 1 : 0;
    while (((unsigned char)name[skip] & 0xc0) == 0x80)
        skip++;
    api_markup_add(page, skip ? "\xe2\x80\xa6" : "");
    api_markup_text(page, name + skip);
}

static void
draw_node(struct api_markup *page, const struct node *node)
{
    int x = x_of(node), y = node->row * ROW + 4;
    api_markup_format(page,
                      "<g class=\"%s\"><rect x=\"%d\" y=\"%d\" width=\"%d\" "
                      "height=\"%d\" rx=\"4\"/><text x=\"%d\" y=\"%d\">",
                      class_of(node->layer), x - BOX_WIDTH / 2, y, BOX_WIDTH,
                      BOX_HEIGHT, x, y + 16);
    add_short(page, node->name);
    api_markup_add(page, "</text><title>");
    api_markup_text(page, node->name);
    if (node->layer) {
        api_markup_add(page, " (");
        api_markup_value(page, json_object_get(node->layer, "op"));
        api_markup_add(page, "): ");
        api_markup_value(page, json_object_get(node->layer, "reason"));
    }
    api_markup_add(page, "</title></g>\n");
}

static void
draw(struct api_markup *page, struct graph *graph)
{
    int width = graph->n_columns * COLUMN + ARC, height = graph->n_rows * ROW;
    html_note(page, "From the first node at the top to the last, without nodes that "
                    "compute constants "
                    "alone. A filled box has pairs on an "
                    "activation and on its weight, an outlined one on one of them.");
    api_markup_format(page,
                      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
                      "aria-label=\"Graph\">\n<svg class=\"graph\" width=\"%d\" "
                      "height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
                      "aria-label=\"The graph; the table of layers has its nodes\">\n",
                      width, height, width, height);
    for (size_t i = 0; i < graph->n_edges; i++)
        draw_edge(page, &graph->edges[i]);
    for (size_t i = 0; i < graph->n; i++)
        draw_node(page, &graph->nodes[i]);
    api_markup_add(page, "</svg>\n</div>\n");
}

void
html_graph(struct api_markup *page, const json_t *report)
{
    const json_t *layers = json_object_get(report, "layers");
    const json_t *numbered = json_object_get(report, "graph");
    const json_t *edges = json_object_get(numbered ? numbered : report, "edges");
    bool omitted = json_object_get(report, "edges_omitted");
    if (json_array_size(edges) == 0 && !omitted)
        return;
    struct graph *graph = calloc(1, sizeof *graph);
    if (graph)
        graph->index = json_object();
    if (!graph || !graph->index) {
        page->failed = true;
        free(graph);
        return;
    }
    html_begin_section(page, "graph", "Graph");
    leave_out_constants(graph, numbered);
    if (json_array_size(edges) && add_layers(graph, layers) &&
        add_edges(graph, edges, numbered)) {
        set_rows(graph);
        set_columns(graph);
        draw(page, graph);
    } else {
        html_note(
            page,
            "The graph is too large for a drawing, which has at most 300 nodes and "
            "3000 connections. The table of layers has its nodes.");
    }
    html_end_section(page);
    page->failed |= graph->failed;
    json_decref(graph->index);
    free(graph);
}
