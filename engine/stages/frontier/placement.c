/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/frontier/placement.h"

#include "stages/frontier/cut.h"

#include <math.h>

/* The hull bends where a placement is better than the line by more than this part of it. */
static const double least_bend = 1e-9;

/* --- one placement ----------------------------------------------------------- */

static bool
any_reader(const struct qdqi_passed_tensor *t, const bool *is_float, bool wanted)
{
    for (size_t i = 0; i < t->n_to; i++)
        if (is_float[t->to[i]] == wanted)
            return true;
    return false;
}

void
qdqi_placement_weigh(const struct qdqi_placement_costs *c, struct qdqi_placement *p)
{
    p->ms = p->noise = 0;
    for (size_t i = 0; i < c->n; i++) {
        p->ms += p->is_float[i] ? c->float_ms[i] : c->integer_ms[i];
        p->noise += p->is_float[i] ? 0 : c->noise[i];
    }
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct qdqi_passed_tensor *t = &c->tensors[i];
        const bool made_float = p->is_float[t->from];
        if (any_reader(t, p->is_float, !made_float))
            p->ms += made_float ? t->quantize_ms : t->dequantize_ms;
    }
}

/* The network: the layers, two nodes for each tensor, which say whether its integers and its
   floats are needed, and the two ends. The side of the source is that of integers. */
struct network {
    struct qdqi_pipe *pipes;
    size_t n_pipes;
};

static void
add(struct network *w, size_t from, size_t to, double capacity)
{
    w->pipes[w->n_pipes++] = (struct qdqi_pipe){from, to, capacity};
}

static void
add_tensor(struct network *w, const struct qdqi_passed_tensor *t, size_t integers)
{
    const size_t floats = integers + 1;
    add(w, integers, t->from, t->quantize_ms);
    add(w, t->from, floats, t->dequantize_ms);
    for (size_t i = 0; i < t->n_to; i++) {
        add(w, t->to[i], integers, INFINITY);
        add(w, floats, t->to[i], INFINITY);
    }
}

static size_t
count_pipes(const struct qdqi_placement_costs *c)
{
    size_t n = 2 * c->n;
    for (size_t i = 0; i < c->n_tensors; i++)
        n += 2 + 2 * c->tensors[i].n_to;
    return n;
}

enum qdq_code
qdqi_placement_find(const struct qdqi_placement_costs *c, double price,
                    struct qdqi_arena *arena, struct qdqi_placement *ret,
                    struct qdq_error *err)
{
    const size_t ends = c->n + 2 * c->n_tensors;
    struct network w = {qdqi_arena_array(arena, count_pipes(c) + 1, sizeof *w.pipes),
                        0};
    bool *sides = qdqi_arena_array(arena, ends + 2, sizeof *sides);
    if (!w.pipes || !sides)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < c->n; i++) {
        add(&w, ends, i, c->float_ms[i]);
        add(&w, i, ends + 1, c->integer_ms[i] + price * c->noise[i]);
    }
    for (size_t i = 0; i < c->n_tensors; i++)
        add_tensor(&w, &c->tensors[i], c->n + 2 * i);
    enum qdq_code code =
        qdqi_cut(ends + 2, w.pipes, w.n_pipes, ends, ends + 1, sides, arena, err);
    if (code)
        return code;
    for (size_t i = 0; i < c->n; i++)
        sides[i] = !sides[i]; /* from "in integers" to "in float" */
    ret->is_float = sides;
    qdqi_placement_weigh(c, ret);
    return QDQ_OK;
}

/* --- the hull ----------------------------------------------------------------- */

struct hull {
    const struct qdqi_placement_costs *costs;
    struct qdqi_arena *arena;
    struct qdqi_placement *points; /* the fastest first */
    bool *straight;                /* by point: the line to the next one is the hull */
    size_t n;
};

static void
insert(struct hull *h, size_t at, const struct qdqi_placement *p)
{
    for (size_t i = h->n; i > at; i--) {
        h->points[i] = h->points[i - 1];
        h->straight[i] = h->straight[i - 1];
    }
    h->points[at] = *p;
    h->straight[at] = false;
    h->n++;
}

/* Returns the line from a point to the next one that may hide the most: the one with the largest
   triangle below it; n where there is none. */
static size_t
widest(const struct hull *h)
{
    size_t best = h->n;
    double most = 0;
    for (size_t i = 0; i + 1 < h->n; i++) {
        const struct qdqi_placement *a = &h->points[i], *b = &h->points[i + 1];
        const double area = (b->ms - a->ms) * (a->noise - b->noise);
        if (!h->straight[i] && area > most) {
            best = i;
            most = area;
        }
    }
    return best;
}

/* Looks for a point below the line from point `at` to the next one. */
static enum qdq_code
bend(struct hull *h, size_t at, struct qdq_error *err)
{
    const struct qdqi_placement *a = &h->points[at], *b = &h->points[at + 1];
    const double price = (b->ms - a->ms) / (a->noise - b->noise);
    const double line = a->ms + price * a->noise;
    struct qdqi_placement p;
    enum qdq_code code = qdqi_placement_find(h->costs, price, h->arena, &p, err);
    if (code)
        return code;
    if (p.ms + price * p.noise < line * (1 - least_bend) && p.noise < a->noise &&
        p.ms < b->ms)
        insert(h, at + 1, &p);
    else
        h->straight[at] = true;
    return QDQ_OK;
}

static enum qdq_code
find_ends(struct hull *h, struct qdq_error *err)
{
    const struct qdqi_placement_costs *c = h->costs;
    struct qdqi_placement fastest, quiet;
    bool *all = qdqi_arena_array(h->arena, c->n + 1, sizeof *all);
    if (!all)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_placement_find(c, 0, h->arena, &fastest, err);
    if (code)
        return code;
    for (size_t i = 0; i < c->n; i++)
        all[i] = true;
    quiet.is_float = all;
    qdqi_placement_weigh(c, &quiet);
    insert(h, 0, &fastest);
    if (quiet.ms > fastest.ms && quiet.noise < fastest.noise)
        insert(h, 1, &quiet);
    return QDQ_OK;
}

enum qdq_code
qdqi_placement_hull(const struct qdqi_placement_costs *costs, size_t most,
                    struct qdqi_arena *arena, struct qdqi_placement **ret,
                    size_t *ret_n, struct qdq_error *err)
{
    struct hull h = {.costs = costs,
                     .arena = arena,
                     .points = qdqi_arena_array(arena, most + 1, sizeof *h.points),
                     .straight = qdqi_arena_array(arena, most + 1, sizeof *h.straight)};
    size_t at;
    if (!h.points || !h.straight)
        return qdqi_no_memory(err);
    enum qdq_code code = find_ends(&h, err);
    while (!code && h.n < most && (at = widest(&h)) < h.n)
        code = bend(&h, at, err);
    *ret = h.points;
    *ret_n = h.n;
    return code;
}
