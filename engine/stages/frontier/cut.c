/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/frontier/cut.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define NONE SIZE_MAX

/* A pipe and the way back stand side by side: arc ^ 1 is the opposite of an arc. */
struct arc {
    size_t to, next; /* next: of the arcs from the same node */
    double left;     /* capacity that no flow uses */
};

struct network {
    size_t n, source, sink;
    struct arc *arcs;
    size_t *first;  /* by node: its first arc */
    size_t *tried;  /* by node: the arc that is tried next */
    size_t *levels; /* by node: its distance from the source; NONE: not reached */
    size_t *line;   /* nodes to visit, or the arcs of a path */
    double least;   /* less than that is rounding, and no capacity */
};

static void
add_arc(struct network *w, size_t arc, size_t from, size_t to, double capacity)
{
    w->arcs[arc] = (struct arc){.to = to, .next = w->first[from], .left = capacity};
    w->first[from] = arc;
}

/* Finds the distances from the source, and returns whether the sink is reached. */
static bool
find_levels(struct network *w)
{
    size_t head = 0, tail = 0;
    for (size_t i = 0; i < w->n; i++)
        w->levels[i] = NONE;
    w->levels[w->source] = 0;
    w->line[tail++] = w->source;
    while (head < tail) {
        const size_t node = w->line[head++];
        for (size_t a = w->first[node]; a != NONE; a = w->arcs[a].next) {
            const struct arc *arc = &w->arcs[a];
            if (arc->left <= w->least || w->levels[arc->to] != NONE)
                continue;
            w->levels[arc->to] = w->levels[node] + 1;
            w->line[tail++] = arc->to;
        }
    }
    return w->levels[w->sink] != NONE;
}

/* Sends as much as the path in `line` can carry. Returns how many arcs of it remain before the
   first one that is full. */
static size_t
send(struct network *w, size_t length)
{
    double most = INFINITY;
    size_t remain = length;
    for (size_t i = 0; i < length; i++)
        most = fmin(most, w->arcs[w->line[i]].left);
    for (size_t i = length; i-- > 0;) {
        w->arcs[w->line[i]].left -= most;
        w->arcs[w->line[i] ^ 1].left += most;
        if (w->arcs[w->line[i]].left <= w->least)
            remain = i;
    }
    return remain;
}

/* Returns the arc by which a path goes on from a node, or NONE. */
static size_t
next_arc(struct network *w, size_t node)
{
    size_t a = w->tried[node];
    while (a != NONE && (w->arcs[a].left <= w->least ||
                         w->levels[w->arcs[a].to] != w->levels[node] + 1))
        a = w->arcs[a].next;
    return w->tried[node] = a;
}

/* Fills the shortest paths. A path of infinite capacity is none of ours: some cut is finite. */
static void
fill_paths(struct network *w)
{
    size_t node = w->source, length = 0;
    memcpy(w->tried, w->first, w->n * sizeof *w->tried);
    for (;;) {
        const size_t a = next_arc(w, node);
        if (a != NONE) {
            w->line[length++] = a;
            node = w->arcs[a].to;
        } else if (length == 0) {
            return;
        } else {
            w->levels[node] = NONE; /* it leads nowhere */
            length--;
        }
        if (node == w->sink)
            length = send(w, length);
        node = length > 0 ? w->arcs[w->line[length - 1]].to : w->source;
    }
}

enum qdq_code
qdqi_cut(size_t n, const struct qdqi_pipe *pipes, size_t n_pipes, size_t source,
         size_t sink, bool *in_source, struct qdqi_arena *arena, struct qdq_error *err)
{
    struct network w = {.n = n,
                        .source = source,
                        .sink = sink,
                        .arcs =
                            qdqi_arena_array(arena, 2 * n_pipes + 1, sizeof *w.arcs),
                        .first = qdqi_arena_array(arena, n, sizeof *w.first),
                        .tried = qdqi_arena_array(arena, n, sizeof *w.tried),
                        .levels = qdqi_arena_array(arena, n, sizeof *w.levels),
                        .line = qdqi_arena_array(arena, n, sizeof *w.line)};
    double most = 0;
    if (!w.arcs || !w.first || !w.tried || !w.levels || !w.line)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        w.first[i] = NONE;
    for (size_t i = 0; i < n_pipes; i++) {
        add_arc(&w, 2 * i, pipes[i].from, pipes[i].to, pipes[i].capacity);
        add_arc(&w, 2 * i + 1, pipes[i].to, pipes[i].from, 0);
        if (isfinite(pipes[i].capacity))
            most = fmax(most, pipes[i].capacity);
    }
    w.least = most * 1e-12;
    while (find_levels(&w))
        fill_paths(&w);
    for (size_t i = 0; i < n; i++)
        in_source[i] = w.levels[i] != NONE;
    return QDQ_OK;
}
