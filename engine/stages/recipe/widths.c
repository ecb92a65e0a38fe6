/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/widths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where 16 bits for all do not reach the goal, as good as they are is what they reach but for this. */
static const double margin_db = 0.5;

/* A candidate that is worse than is asked for by more is judged by a few samples: emulators are slow. */
static const double far_db = 6;

/* Trials of some of the layers: each halves the way from the guess to all of them. */
enum { MOST_TRIALS = 4 };

struct layer {
    const char *name;
    double noise;
    size_t place; /* in the model */
};

struct widths {
    struct qdqi_variants *v;
    const struct qdq_spec *narrow, *wide; /* with 8 and with 16 bits for all */
    double enough_db;                     /* what some wide layers have to reach */
    struct layer *layers;                 /* with the most noise first */
    size_t n;
};

static int
compare_layers(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;
    if (x->noise != y->noise)
        return x->noise > y->noise ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Sorts the layers that no entry and no case selects. */
static bool
sort_layers(struct widths *w)
{
    const struct qdqi_candidates *c = w->v->candidates;
    w->layers = qdqi_arena_array(c->result->arena, c->n + 1, sizeof *w->layers);
    for (size_t i = 0; w->layers && i < c->n; i++)
        if (!c->only_stored[i])
            w->layers[w->n++] = (struct layer){c->names[i], c->noise[i], i};
    if (w->layers)
        qsort(w->layers, w->n, sizeof *w->layers, compare_layers);
    return w->layers != NULL;
}

/* Makes the spec that gives the first k layers 16 bits; NULL when out of memory. */
static const struct qdq_spec *
spec_of(const struct widths *w, size_t k)
{
    struct qdqi_arena *arena = w->v->candidates->result->arena;
    const struct qdq_spec *from = w->narrow;
    struct qdq_spec *to = qdqi_arena_alloc(arena, sizeof *to);
    struct qdq_layer_entry *entries =
        qdqi_arena_array(arena, from->n_layers + 1, sizeof *entries);
    struct qdq_activations *activations = qdqi_arena_alloc(arena, sizeof *activations);
    const char **names = qdqi_arena_array(arena, k, sizeof *names);
    if (!to || !entries || !activations || !names)
        return NULL;
    if (from->n_layers)
        memcpy(entries, from->layers, from->n_layers * sizeof *entries);
    for (size_t i = 0; i < k; i++)
        names[i] = w->layers[i].name;
    *activations = w->wide->activations;
    entries[from->n_layers] = (struct qdq_layer_entry){.by = QDQ_BY_NAME,
                                                       .names = names,
                                                       .n_names = k,
                                                       .is_list = true,
                                                       .quantize_input = true,
                                                       .quantize_weight = true,
                                                       .activations = activations};
    *to = *from;
    to->layers = entries;
    to->n_layers++;
    return to;
}

/* Judges 16 bits for the first k layers. A choice that is good enough has fewer wide layers than the one
   before, and takes its place. */
static enum qdq_code
judge(struct widths *w, size_t k, bool *ret_reached, struct qdq_error *err)
{
    struct qdqi_variants *v = w->v;
    struct qdqi_variant_step step = {.step = "widths"};
    struct qdqi_attempt *trial = NULL;
    if (!(step.spec = spec_of(w, k)))
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_variants_trial(v, step.spec, &trial, &step.score, err);
    step.kept = *ret_reached = !code && step.score.sqnr_db >= w->enough_db;
    if (step.kept)
        code = qdqi_variants_adopt(v, &trial, err);
    qdqi_attempt_free(&trial);
    if (!code)
        qdqi_variants_add_step(v, &step);
    return code;
}

/* Finds the fewest layers that are enough by the literal arithmetic, which a slow runtime's is near to. */
static enum qdq_code
guess(struct widths *w, size_t *ret, struct qdq_error *err)
{
    struct qdqi_judging *judging = qdqi_comparer_judging(w->v->candidates->comparer);
    size_t low = 1, high = w->n;
    enum qdq_code code = QDQ_OK;
    judging->is_literal = true;
    while (low < high && !code && !w->v->is_time_up(w->v->arg)) {
        const size_t middle = low + (high - low) / 2;
        const struct qdq_spec *spec = spec_of(w, middle);
        struct qdqi_attempt *trial = NULL;
        struct qdqi_grade grade = {0};
        code = spec ? qdqi_variants_trial(w->v, spec, &trial, &grade, err)
                    : qdqi_no_memory(err);
        qdqi_attempt_free(&trial);
        if (grade.sqnr_db >= w->enough_db)
            high = middle;
        else
            low = middle + 1;
    }
    judging->is_literal = false;
    *ret = high;
    return code;
}

/* Finds about the fewest layers that are enough, from the guess on. */
static enum qdq_code
narrow_down(struct widths *w, struct qdq_error *err)
{
    size_t next = w->n; /* all of them are enough */
    enum qdq_code code = guess(w, &next, err);
    bool reached = false;
    qdqi_comparer_judging(w->v->candidates->comparer)->hopeless_db =
        w->enough_db - far_db;
    for (int i = 0; i < MOST_TRIALS && next < w->n && !reached && !code; i++) {
        if (w->v->is_time_up(w->v->arg))
            break;
        code = judge(w, next, &reached, err);
        next += 1 + (w->n - next - 1) / 2;
    }
    return code;
}

enum qdq_code
qdqi_choose_widths(struct qdqi_variants *v, struct qdq_error *err)
{
    const double goal = v->candidates->goal_db;
    struct widths w = {.v = v, .narrow = v->spec};
    if (!sort_layers(&w))
        return qdqi_no_memory(err);
    struct qdqi_judging *judging = qdqi_comparer_judging(v->candidates->comparer);
    judging->hopeless_db = goal - far_db;
    enum qdq_code code = qdqi_variants_start(v, err);
    judging->hopeless_db = -INFINITY;
    if (code || v->best.sqnr_db >= goal)
        return code;
    code = qdqi_variants_widen(v, err);
    w.wide = v->spec;
    if (code || w.wide == w.narrow)
        return code;
    w.enough_db = fmin(goal, v->best.sqnr_db - margin_db);
    return narrow_down(&w, err);
}
