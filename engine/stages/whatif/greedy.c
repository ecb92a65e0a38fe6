/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The greedy search. The noise of layers nearly adds up: the noise that disappears when
 * one layer stays in float hardly depends on the other layers. So a gain that was
 * measured some steps ago shows which layers are promising, and only the best are
 * measured again.
 */
#include "config.h"
#include "stages/whatif/greedy.h"

#include <math.h>

enum { TRIES = 8 }; /* smallest number of layers that each step measures again */

/* The state of a search. */
struct state {
    struct qdqi_greedy_search *h;
    /* by layer: last measured score with this layer in float, too */
    struct qdqi_score *scores;
    double *gains; /* by layer: reduction of the noise at that measurement */
    size_t *order; /* layers, sorted by gain */
    double noise;  /* noise with the present choice of float layers */
};

static bool
is_met(const struct qdq_search *goal, struct qdqi_score score)
{
    return (isnan(goal->min_sqnr_db) || score.sqnr_db >= goal->min_sqnr_db) &&
           (isnan(goal->min_top1_agreement) ||
            score.top1_agreement >= goal->min_top1_agreement);
}

/* Returns the noise relative to the signal. It is finite even if the score is not. */
static double
noise_of(struct qdqi_score score)
{
    return fmin(pow(10, -score.sqnr_db / 10), 1e30);
}

static bool
is_time_up(const struct qdqi_greedy_search *h)
{
    return h->is_time_up && h->is_time_up(h->arg);
}

static bool
may_take_more(const struct qdqi_greedy_search *h)
{
    return !is_time_up(h) && h->n_float < h->n &&
           (h->goal->max_float_layers == QDQ_NO_LIMIT ||
            (int64_t)h->n_float < h->goal->max_float_layers);
}

/* --- the curve ------------------------------------------------------------ */

static void
add_step(struct qdqi_greedy_search *h, size_t layer, struct qdqi_score score)
{
    h->steps[h->n_steps++] = (struct qdqi_greedy_step){h->n_float, layer, score};
}

/* Sets *ret to whether the present choice with this score meets the goal. */
static enum qdq_code
check_goal(struct qdqi_greedy_search *h, struct qdqi_score score, bool *ret,
           struct qdq_error *err)
{
    *ret = is_met(h->goal, score);
    return *ret && h->confirm ? h->confirm(h->arg, h->is_float, ret, err) : QDQ_OK;
}

static void
change(struct qdqi_greedy_search *h, size_t layer, bool is_float)
{
    h->is_float[layer] = is_float;
    h->n_float += is_float ? 1 : (size_t)-1;
}

/* --- forward -------------------------------------------------------------- */

/* Sorts the layers that are still quantized by gain, the largest first, and returns
   their number. Layers with equal gains keep their order. */
static size_t
sort_layers(struct state *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->h->n; i++) {
        size_t k = n;
        if (p->h->is_float[i])
            continue;
        for (; k > 0 && p->gains[p->order[k - 1]] < p->gains[i]; k--)
            p->order[k] = p->order[k - 1];
        p->order[k] = i;
        n++;
    }
    return n;
}

static enum qdq_code
measure(struct state *p, size_t layer, struct qdq_error *err)
{
    struct qdqi_score *score = &p->scores[layer];
    p->h->is_float[layer] = true;
    enum qdq_code code = p->h->score(p->h->arg, p->h->is_float, score, err);
    p->h->is_float[layer] = false;
    if (!code)
        p->gains[layer] = p->noise - noise_of(*score);
    return code;
}

/*
 * Finds the layer whose staying in float now gains most. It measures the first `first`
 * layers in any case, and further layers as long as their last measured gain is larger
 * than the best present one. When the time is up it decides by what it has measured.
 */
static enum qdq_code
find_best(struct state *p, size_t first, size_t *ret, struct qdq_error *err)
{
    size_t n = sort_layers(p);
    *ret = p->order[0];
    for (size_t i = 0; i < n; i++) {
        size_t layer = p->order[i];
        if ((i >= first && p->gains[layer] <= p->gains[*ret]) ||
            (i && is_time_up(p->h)))
            break;
        enum qdq_code code = measure(p, layer, err);
        if (code)
            return code;
        if (p->gains[layer] > p->gains[*ret])
            *ret = layer;
    }
    return QDQ_OK;
}

/* Estimates the number of steps that are left: how many of the largest gains it
   takes to reach the goal if noise adds up. */
static size_t
steps_left(struct state *p)
{
    const struct qdq_search *goal = p->h->goal;
    size_t n = sort_layers(p), i = 0;
    struct qdqi_score wanted = {goal->min_sqnr_db, NAN};
    double noise = p->noise, target = isnan(goal->min_sqnr_db) ? 0 : noise_of(wanted);
    for (; i < n && noise > target && p->gains[p->order[i]] > 0; i++)
        noise -= p->gains[p->order[i]];
    if (goal->max_float_layers != QDQ_NO_LIMIT &&
        (int64_t)(i + p->h->n_float) > goal->max_float_layers)
        i = (size_t)goal->max_float_layers - p->h->n_float;
    return i;
}

static enum qdq_code
go_forward(struct state *p, struct qdq_error *err)
{
    struct qdqi_greedy_search *h = p->h;
    enum qdq_code code = QDQ_OK;
    size_t layer;
    for (size_t first = h->n; !h->met && may_take_more(h); first = TRIES) {
        if ((code = find_best(p, first, &layer, err)))
            return code;
        change(h, layer, true);
        add_step(h, layer, p->scores[layer]);
        if ((code = check_goal(h, p->scores[layer], &h->met, err)))
            return code;
        p->noise = noise_of(p->scores[layer]);
        h->expect(h->arg, steps_left(p) * TRIES + h->n_float);
    }
    return code;
}

/* --- backward ------------------------------------------------------------- */

/* Quantizes one layer again without which the goal is still met, preferably the one
   that gained least. Sets *ret to whether there is one. */
static enum qdq_code
take_back_one(struct state *p, bool *ret, struct qdq_error *err)
{
    struct qdqi_greedy_search *h = p->h;
    struct qdqi_score score;
    *ret = false;
    /* Layers chosen later nearly always gained less, so they are tried first. */
    for (size_t i = h->n_steps; i-- > 1 && !*ret && !is_time_up(h);) {
        size_t layer = h->steps[i].layer;
        if (!h->is_float[layer])
            continue;
        change(h, layer, false);
        enum qdq_code code = h->score(h->arg, h->is_float, &score, err);
        if (code || (code = check_goal(h, score, ret, err)))
            return code;
        if (*ret) {
            add_step(h, layer, score);
        } else {
            change(h, layer, true);
        }
    }
    return QDQ_OK;
}

static enum qdq_code
go_backward(struct state *p, struct qdq_error *err)
{
    bool found = true;
    enum qdq_code code = QDQ_OK;
    while (!code && found && p->h->met && p->h->n_float > 1)
        code = take_back_one(p, &found, err);
    return code;
}

enum qdq_code
qdqi_greedy_search(struct qdqi_greedy_search *h, struct qdq_error *err)
{
    struct state p = {.h = h,
                      .scores = qdqi_arena_array(h->arena, h->n, sizeof *p.scores),
                      .gains = qdqi_arena_array(h->arena, h->n, sizeof *p.gains),
                      .order = qdqi_arena_array(h->arena, h->n, sizeof *p.order)};
    struct qdqi_score score;
    h->is_float = qdqi_arena_array(h->arena, h->n, sizeof *h->is_float);
    h->steps = qdqi_arena_array(h->arena, 2 * h->n + 1, sizeof *h->steps);
    if (!p.scores || !p.gains || !p.order || !h->is_float || !h->steps)
        return qdqi_no_memory(err);
    enum qdq_code code = h->score(h->arg, h->is_float, &score, err);
    if (code)
        return code;
    add_step(h, SIZE_MAX, score);
    p.noise = noise_of(score);
    if ((code = check_goal(h, score, &h->met, err)))
        return code;
    if (!h->met) {
        h->expect(h->arg, h->n);
        if ((code = go_forward(&p, err)))
            return code;
    }
    return go_backward(&p, err);
}
