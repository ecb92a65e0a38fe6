/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search by groups. The noise of layers nearly adds up, so a gain that was measured
 * with other layers in integers still shows which groups are promising.
 */
#include "config.h"
#include "stages/recipe/groups.h"

#include <math.h>
#include <string.h>

/* Neighbouring layers, from `first` on. */
struct group {
    size_t first, n;
    double gain;   /* reduction of the noise when it was measured, or its noise alone */
    double relief; /* reduction of the excess then */
    struct qdqi_grade score; /* of the choice then */
    size_t round;            /* number of groups in float then */
    bool done;               /* it is in float, or it is not worth that */
};

struct state {
    struct qdqi_group_search *h;
    struct group *groups;
    size_t n_groups;
    size_t *kept; /* groups in float, in the order of the choice */
    size_t n_kept;
    double total;   /* cost of all layers */
    bool alone;     /* groups are measured alone */
    bool estimates; /* choices are estimated, not judged */
};

enum { START_SHARE = 2 }; /* one part in so many of the bound is for the first groups */
enum { FOUND_GROUPS = 3 }; /* groups that the search by gains can be expected to find */

/* Noise as loud as the signal hides what one group gains, because others wreck the outputs
   as well. Below this figure a group is measured alone, with all other layers in float. Above
   it that is done where the first groups turn out to hide each other. */
static const double alone_below_db = 10;

/* Likewise, for estimates, which cost so little that no group is hoped to be enough by itself. */
static const double estimated_alone_below_db = 20;

/* Estimates agree with the scores when they differ by no more. */
static const double agreement_db = 2;

static double
noise_of(double sqnr_db)
{
    return fmin(pow(10, -sqnr_db / 10), 1e30);
}

/* Choices beyond the bound in a search by estimates: the start is estimated, too, and the last
   choice is judged. */
enum { UNCOUNTED_SCORES = 2 };

/* Returns how many choices may still be judged or estimated. */
static size_t
scores_left(const struct state *s)
{
    const size_t most = s->h->max_scores + (s->estimates ? UNCOUNTED_SCORES - 1 : 0);
    const bool late = s->h->is_time_up && s->h->is_time_up(s->h->arg);
    return late || s->h->n_steps > most ? 0 : most - s->h->n_steps;
}

static void
set_group(struct state *s, const struct group *g, bool is_float)
{
    for (size_t i = g->first; i < g->first + g->n; i++)
        s->h->is_float[i] = is_float;
}

/* Returns the step that judged, or estimated, the present choice, or NULL. */
static struct qdqi_group_step *
find_step(const struct state *s)
{
    const struct qdqi_group_search *h = s->h;
    for (size_t k = h->n_steps; k-- > 0;)
        if (h->steps[k].estimated == s->estimates &&
            memcmp(h->steps[k].is_float, h->is_float, h->n) == 0)
            return &h->steps[k];
    return NULL;
}

/* Judges or estimates the present choice and adds a step, unless an earlier one did that. */
static enum qdq_code
grade(struct state *s, const char *step, struct qdqi_grade *ret, struct qdq_error *err)
{
    struct qdqi_group_search *h = s->h;
    const struct qdqi_group_step *earlier = find_step(s);
    if (earlier) {
        *ret = earlier->score;
        return QDQ_OK;
    }
    bool *copy = qdqi_arena_array(h->arena, h->n + 1, sizeof *copy);
    if (!copy)
        return qdqi_no_memory(err);
    memcpy(copy, h->is_float, h->n * sizeof *copy);
    enum qdq_code code =
        (s->estimates ? h->estimate : h->score)(h->arg, copy, ret, err);
    if (!code)
        h->steps[h->n_steps++] = (struct qdqi_group_step){
            .step = step, .is_float = copy, .score = *ret, .estimated = s->estimates};
    return code;
}

/* Returns whether the best score is good enough, `is_float` being the choice that has it. */
static bool
is_enough(const struct state *s, const bool *is_float)
{
    double cost = 0;
    if (!qdqi_grade_fits(&s->h->best))
        return false;
    if (s->h->best.sqnr_db >= s->h->goal_db)
        return true;
    for (size_t i = 0; i < s->h->n; i++)
        cost += is_float[i] ? s->h->costs[i] : 0;
    return s->h->best.sqnr_db >= s->h->enough_db && 2 * cost >= s->total;
}

static bool
is_good_enough(const struct state *s)
{
    return is_enough(s, s->h->is_float);
}

static bool
meets_goal(const struct state *s, const struct qdqi_grade *score)
{
    return qdqi_grade_fits(score) && score->sqnr_db >= s->h->goal_db;
}

static void
set_all(struct state *s, bool is_float)
{
    for (size_t i = 0; i < s->h->n; i++)
        s->h->is_float[i] = is_float;
}

/* Marks the step that judged the present choice as the best so far. */
static void
mark_kept(struct state *s)
{
    struct qdqi_group_step *step = find_step(s);
    if (step)
        step->kept = true;
}

/* --- gains ----------------------------------------------------------------- */

/* Judges the outputs with this group alone in integers. One that the plan leaves in float
   when it is alone may do as much harm as all of them. */
static enum qdq_code
measure_alone(struct state *s, struct group *g, struct qdq_error *err)
{
    set_all(s, true);
    set_group(s, g, false);
    enum qdq_code code = grade(s, "alone", &g->score, err);
    set_all(s, false);
    g->gain = noise_of(g->score.is_float ? s->h->best.sqnr_db : g->score.sqnr_db);
    return code;
}

/* Judges the outputs with this group in float, too. */
static enum qdq_code
measure(struct state *s, struct group *g, struct qdq_error *err)
{
    if (s->alone)
        return measure_alone(s, g, err);
    set_group(s, g, true);
    enum qdq_code code = grade(s, "group", &g->score, err);
    set_group(s, g, false);
    g->gain = noise_of(s->h->best.sqnr_db) - noise_of(g->score.sqnr_db);
    g->relief = s->h->best.excess - g->score.excess;
    g->round = s->n_kept;
    return code;
}

/* Leaves a group in float if the choice is better then. */
static enum qdq_code
take(struct state *s, size_t i, struct qdq_error *err)
{
    struct group *g = &s->groups[i];
    struct qdqi_group_search *h = s->h;
    struct qdqi_grade score = g->score;
    enum qdq_code code = QDQ_OK;
    set_group(s, g, true);
    if (g->round != s->n_kept)
        code = grade(s, "float", &score, err);
    if (code)
        return code;
    g->done = true;
    if (!qdqi_grade_is_better(&score, &h->best)) {
        set_group(s, g, false);
        return QDQ_OK;
    }
    h->best = score;
    s->kept[s->n_kept++] = i;
    mark_kept(s);
    return QDQ_OK;
}

/* Returns the noise that the tensors of a group have by themselves. */
static double
own_noise(const struct state *s, const struct group *g)
{
    double sum = 0;
    for (size_t i = g->first; s->h->noise && i < g->first + g->n; i++)
        sum += s->h->noise[i];
    return sum;
}

/* Makes n groups of neighbours, in the order in which they are measured: the one with the
   most noise of its own first, and the first ones of the graph where it is the same. */
static void
make_groups(struct state *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t first = s->h->n * i / n, end = s->h->n * (i + 1) / n, at = i;
        struct group g = {.first = first, .n = end - first};
        for (; at > 0 && own_noise(s, &s->groups[at - 1]) < own_noise(s, &g); at--)
            s->groups[at] = s->groups[at - 1];
        s->groups[at] = g;
    }
}

/* Returns whether a group is one layer whose staying in float makes the outputs good, and
   costs at most half of all. */
static bool
is_one_enough(const struct state *s, const struct group *g)
{
    return !s->alone && g->n == 1 && meets_goal(s, &g->score) &&
           2 * s->h->costs[g->first] <= s->total;
}

static enum qdq_code
measure_first_groups(struct state *s, struct qdq_error *err)
{
    size_t n = scores_left(s) / START_SHARE;
    enum qdq_code code = QDQ_OK;
    n = n < 1 ? 1 : n;
    n = n < s->h->n ? n : s->h->n;
    make_groups(s, n);
    for (size_t i = 0; !code && i < n && scores_left(s) > 0; i++) {
        code = measure(s, &s->groups[s->n_groups++], err);
        if (!code && is_one_enough(s, &s->groups[i]))
            return take(s, i, err);
    }
    return code;
}

/* Replaces a group by its halves, and measures both. */
static enum qdq_code
halve(struct state *s, size_t i, struct qdq_error *err)
{
    struct group *a = &s->groups[i], *b = &s->groups[s->n_groups++];
    *b = *a;
    a->n /= 2;
    b->first += a->n;
    b->n -= a->n;
    enum qdq_code code = measure(s, a, err);
    return code ? code : measure(s, b, err);
}

/* Returns what a group promises: less noise, or less excess while the best choice is
   beyond its bounds. */
static double
promise_of(const struct state *s, const struct group *g)
{
    return qdqi_grade_fits(&s->h->best) ? g->gain : g->relief;
}

/* Returns the index of the most promising group, or n_groups when there is none. */
static size_t
best_group(const struct state *s)
{
    size_t best = s->n_groups;
    double most = 0;
    for (size_t i = 0; i < s->n_groups; i++)
        if (!s->groups[i].done && promise_of(s, &s->groups[i]) > most) {
            best = i;
            most = promise_of(s, &s->groups[i]);
        }
    return best;
}

/* --- the choice ------------------------------------------------------------ */

static enum qdq_code
go_forward(struct state *s, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    while (!code && !is_good_enough(s)) {
        size_t i = best_group(s);
        if (i == s->n_groups)
            break;
        const struct group *g = &s->groups[i];
        if (g->n > 1 && scores_left(s) >= 2)
            code = halve(s, i, err);
        else if (g->round == s->n_kept || scores_left(s) > 0)
            code = take(s, i, err);
        else
            break;
    }
    return code;
}

/* --- the choice among groups that were measured alone ----------------------- */

/* Halves the groups with the most noise as long as they have several layers, and half of the
   bound's rest remains for the choice. */
static enum qdq_code
halve_noisiest(struct state *s, struct qdq_error *err)
{
    const double share = noise_of(s->h->goal_db) / (double)s->h->n;
    size_t reserve = scores_left(s) / 2;
    enum qdq_code code = QDQ_OK;
    while (!code && scores_left(s) >= reserve + 2) {
        size_t best = s->n_groups;
        for (size_t i = 0; i < s->n_groups; i++)
            if (s->groups[i].n > 1 &&
                s->groups[i].gain > share * (double)s->groups[i].n &&
                (best == s->n_groups || s->groups[i].gain > s->groups[best].gain))
                best = i;
        if (best == s->n_groups)
            break;
        code = halve(s, best, err);
    }
    return code;
}

/* Leaves the group with the most noise that is still in integers in float, unless there is
   none. *ret_noise is the noise of the others, added up. */
static bool
leave_noisiest_in_float(struct state *s, double *ret_noise)
{
    size_t best = s->n_groups;
    double noise = 0;
    for (size_t i = 0; i < s->n_groups; i++) {
        if (s->groups[i].done)
            continue;
        noise += s->groups[i].gain;
        if (best == s->n_groups || s->groups[i].gain > s->groups[best].gain)
            best = i;
    }
    if (best == s->n_groups)
        return false;
    s->groups[best].done = true;
    s->kept[s->n_kept++] = best;
    set_group(s, &s->groups[best], true);
    *ret_noise = noise - s->groups[best].gain;
    return true;
}

/* Takes the group that was left in float last into integers again, if the choice went
   beyond its bounds with it. */
static void
take_back(struct state *s, const struct qdqi_grade *score)
{
    if (!qdqi_grade_fits(score) && qdqi_grade_fits(&s->h->best))
        set_group(s, &s->groups[s->kept[--s->n_kept]], false);
}

/* Returns whether a choice can be good enough by the noise of its groups in integers, added up.
   That is not exact, but the last choice that is judged has to be the right one. */
static bool
is_promising(const struct state *s, double noise)
{
    const double goal = noise_of(s->h->goal_db);
    return noise <= (scores_left(s) > 1 ? 2 * goal : goal);
}

/* Leaves groups in float, the one with the most noise first, until the outputs are good
   enough. A choice that cannot be good enough, by the noise of the other groups, is not
   judged, unless there are bounds, which each group may exceed. */
static enum qdq_code
choose_by_noise(struct state *s, struct qdq_error *err)
{
    struct qdqi_group_search *h = s->h;
    enum qdq_code code = halve_noisiest(s, err);
    bool *best = qdqi_arena_array(h->arena, h->n + 1, sizeof *best);
    if (!best)
        return qdqi_no_memory(err);
    double noise;
    while (!code && !is_enough(s, best) && scores_left(s) > 0 &&
           leave_noisiest_in_float(s, &noise)) {
        struct qdqi_grade score;
        if (h->best.excess == 0 && !is_promising(s, noise) && s->n_kept < s->n_groups &&
            scores_left(s) < s->n_groups)
            continue;
        if ((code = grade(s, "float", &score, err)))
            break;
        take_back(s, &score);
        if (qdqi_grade_is_better(&score, &h->best)) {
            h->best = score;
            memcpy(best, h->is_float, h->n * sizeof *best);
            mark_kept(s);
        }
    }
    if (!code)
        memcpy(h->is_float, best, h->n * sizeof *best);
    return code;
}

/* --- going back ------------------------------------------------------------- */

/* Returns whether a group that was measured alone has too much noise for the goal, together
   with what is in integers already. Noise that is added up is not exact. */
static bool
is_too_noisy(const struct state *s, const struct group *g)
{
    return s->alone &&
           noise_of(s->h->best.sqnr_db) + g->gain > 2 * noise_of(s->h->goal_db);
}

/* Quantizes groups again without which the goal is still met; the last is needed. */
static enum qdq_code
go_backward(struct state *s, struct qdq_error *err)
{
    struct qdqi_group_search *h = s->h;
    for (size_t i = s->n_kept; i-- > 0;) {
        const struct group *g = &s->groups[s->kept[i]];
        struct qdqi_grade score;
        if (i + 1 == s->n_kept || scores_left(s) == 0 || !meets_goal(s, &h->best) ||
            is_too_noisy(s, g))
            continue;
        set_group(s, g, false);
        enum qdq_code code = grade(s, "quantized", &score, err);
        if (code)
            return code;
        if (meets_goal(s, &score)) {
            h->best = score;
            mark_kept(s);
        } else {
            set_group(s, g, true);
        }
    }
    return QDQ_OK;
}

/* Returns whether the groups hide each other, or many of them do harm: even a few of the best
   would not take away as much noise as the goal wants. */
static bool
is_hidden(const struct state *s)
{
    double most[FOUND_GROUPS] = {0}, sum = 0;
    for (size_t i = 0; i < s->n_groups; i++) {
        double gain = s->groups[i].gain;
        for (size_t k = 0; k < FOUND_GROUPS; k++)
            if (gain > most[k]) {
                double other = most[k];
                most[k] = gain;
                gain = other;
            }
    }
    for (size_t k = 0; k < FOUND_GROUPS; k++)
        sum += most[k];
    return !s->alone && s->n_kept == 0 && qdqi_grade_fits(&s->h->best) &&
           noise_of(s->h->best.sqnr_db) - sum > noise_of(s->h->goal_db);
}

/* Chooses the layers that stay in float, by scores or by estimates. */
static enum qdq_code
choose(struct state *s, struct qdq_error *err)
{
    const struct qdqi_grade *start = &s->h->best;
    s->alone =
        start->sqnr_db < (s->estimates ? estimated_alone_below_db : alone_below_db) &&
        qdqi_grade_fits(start);
    enum qdq_code code = measure_first_groups(s, err);
    if (!code && is_hidden(s)) {
        s->alone = true;
        s->n_groups = 0;
        code = measure_first_groups(s, err);
    }
    if (!code)
        code = s->alone ? choose_by_noise(s, err) : go_forward(s, err);
    return code ? code : go_backward(s, err);
}

/* --- by estimates ----------------------------------------------------------- */

/* Forgets what was estimated, so that the search begins by scores. */
static void
start_again(struct state *s, const struct qdqi_grade *start)
{
    s->n_groups = s->n_kept = 0;
    s->h->best = *start;
    set_all(s, false);
    for (size_t i = 0; i < s->h->n_steps; i++)
        s->h->steps[i].kept = s->h->steps[i].kept && !s->h->steps[i].estimated;
}

/* Goes on from an estimated choice by scores: the gains are estimates of an earlier round. */
static enum qdq_code
go_on(struct state *s, struct qdq_error *err)
{
    for (size_t i = 0; i < s->n_groups; i++)
        s->groups[i].round = SIZE_MAX;
    return s->alone ? QDQ_OK : go_forward(s, err);
}

/* Judges the choice that the estimates led to. *ret_found is whether the search keeps it. */
static enum qdq_code
confirm(struct state *s, const struct qdqi_grade *start, bool *ret_found,
        struct qdq_error *err)
{
    struct qdqi_group_search *h = s->h;
    const double estimate_db = h->best.sqnr_db;
    struct qdqi_grade score;
    enum qdq_code code = grade(s, "float", &score, err);
    *ret_found = !code && qdqi_grade_is_better(&score, start) &&
                 score.sqnr_db >= fmin(estimate_db - agreement_db, h->goal_db);
    if (!*ret_found) {
        start_again(s, start);
        return code;
    }
    h->best = score;
    mark_kept(s);
    return go_on(s, err);
}

/* Searches by estimates, if they agree with the score of the start. */
static enum qdq_code
search_by_estimates(struct state *s, bool *ret_found, struct qdq_error *err)
{
    struct qdqi_group_search *h = s->h;
    const struct qdqi_grade start = h->best;
    struct qdqi_grade estimate;
    if (scores_left(s) < 3)
        return QDQ_OK;
    s->estimates = true;
    enum qdq_code code = grade(s, "start", &estimate, err);
    const bool agrees = !code && fabs(estimate.sqnr_db - start.sqnr_db) <= agreement_db;
    if (!code && agrees) {
        h->best = estimate;
        code = choose(s, err);
    }
    s->estimates = false;
    if (code || !agrees)
        return code;
    for (size_t i = 0; i < h->n; i++)
        if (h->is_float[i])
            return confirm(s, &start, ret_found, err);
    h->best = start;
    *ret_found = true;
    return QDQ_OK;
}

static enum qdq_code
grade_start(struct state *s, struct qdq_error *err)
{
    struct qdqi_group_search *h = s->h;
    if (h->start) {
        h->best = *h->start;
        return QDQ_OK;
    }
    enum qdq_code code = grade(s, "start", &h->best, err);
    if (!code)
        h->steps[0].kept = true;
    return code;
}

enum qdq_code
qdqi_group_search(struct qdqi_group_search *h, struct qdq_error *err)
{
    struct state s = {.h = h,
                      .groups =
                          qdqi_arena_array(h->arena, 2 * h->n + 1, sizeof *s.groups),
                      .kept = qdqi_arena_array(h->arena, 2 * h->n + 1, sizeof *s.kept)};
    h->is_float = qdqi_arena_array(h->arena, h->n + 1, sizeof *h->is_float);
    h->steps =
        qdqi_arena_array(h->arena, h->max_scores + UNCOUNTED_SCORES, sizeof *h->steps);
    h->n_steps = 0;
    if (!s.groups || !s.kept || !h->is_float || !h->steps)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < h->n; i++)
        s.total += h->costs[i];
    enum qdq_code code = grade_start(&s, err);
    if (code || meets_goal(&s, &h->best) || h->n == 0)
        return code;
    bool found = false;
    if (h->estimate)
        code = search_by_estimates(&s, &found, err);
    return code || found ? code : choose(&s, err);
}
