/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of float layers by groups, on made-up noise that adds up by layer and is cut
   off where it is as loud as the signal. */
#include "config.h"

#include "stages/recipe/groups.h"
#include "arena.h"

#include <math.h>
#include <string.h>

enum { MOST = 64 };

struct made_up {
    const double *noise; /* by layer */
    size_t n, scores;
    size_t fail_at; /* number of the score that fails; 0: none */
    double most;    /* noise of all outputs that are wrong; 0: as loud as the signal */
    double least;   /* noise with all layers in float */
    bool joined;    /* layer 0 is in float where all others are */
    /* by layer: what it adds to the excess in float; NULL: there are no bounds */
    const double *costs;
    double excess; /* without any layer in float */
    /* Estimates are lower than the scores by these: for any choice, and for one with layers in
       float. */
    double error_db, float_error_db;
    size_t estimates;
};

static enum qdq_code
score(void *arg, const bool *is_float, struct qdqi_grade *ret, struct qdq_error *err)
{
    struct made_up *m = arg;
    double sum = m->least;
    if (++m->scores == m->fail_at)
        return qdq_error_set(err, QDQ_CANCELLED, QDQ_AT_NOTHING, NULL, "cancelled");
    *ret = (struct qdqi_grade){.excess = m->costs ? m->excess : 0};
    ret->is_float = m->joined;
    for (size_t i = 1; i < m->n; i++)
        ret->is_float = ret->is_float && is_float[i];
    for (size_t i = 0; i < m->n; i++) {
        sum += is_float[i] || ret->is_float ? 0 : m->noise[i];
        ret->excess += m->costs && is_float[i] ? m->costs[i] : 0;
    }
    ret->sqnr_db = -10 * log10(fmin(sum, m->most > 0 ? m->most : 1));
    return QDQ_OK;
}

static enum qdq_code
estimate(void *arg, const bool *is_float, struct qdqi_grade *ret, struct qdq_error *err)
{
    struct made_up *m = arg;
    bool any = false;
    for (size_t i = 0; i < m->n; i++)
        any = any || is_float[i];
    m->estimates++;
    enum qdq_code code = score(arg, is_float, ret, err);
    m->scores--;
    ret->sqnr_db -= m->error_db + (any ? m->float_error_db : 0);
    return code;
}

/* No choice is judged twice, and none is estimated twice. */
static void
assert_no_choice_twice(const struct qdqi_group_search *h)
{
    for (size_t i = 0; i < h->n_steps; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert(h->steps[i].estimated != h->steps[k].estimated ||
                      memcmp(h->steps[i].is_float, h->steps[k].is_float, h->n) != 0);
}

/* A network of n layers with little noise each, and some that wreck it. */
static const struct row {
    const char *name;
    size_t n, bound;
    double common; /* noise of each layer */
    struct {
        size_t layer;
        double noise;
    } bad[4];
    size_t n_bad;
    double wanted_db;  /* least SQNR of the result */
    size_t most_float; /* most layers in float */
} rows[] = {
    {"nothing to do", 10, 20, 1e-4, {{0, 0}}, 0, 25, 0},
    {"no layer at all", 0, 20, 0, {{0, 0}}, 0, 25, 0},
    {"one bad layer", 10, 24, 1e-5, {{3, 0.05}}, 1, 25, 1},
    {"two bad layers", 24, 48, 1e-5, {{3, 0.03}, {20, 0.02}}, 2, 25, 2},
    {"two among many, by halves", 64, 48, 1e-6, {{3, 0.03}, {60, 0.02}}, 2, 25, 4},
    {"one hides the other", 10, 24, 1e-5, {{3, 5}, {8, 7}}, 2, 25, 2},
    {"three among many hide each other",
     64,
     48,
     1e-6,
     {{3, 5}, {30, 2}, {60, 7}},
     3,
     25,
     6},
    {"a bound of one", 10, 1, 1e-5, {{3, 5}}, 1, 0, 0},
    {"a bound of three", 10, 3, 1e-5, {{3, 0.05}}, 1, 13, 10},
};

static struct qdqi_group_search
search_for(struct made_up *m, size_t bound, enum qdq_code wanted)
{
    static const double costs[MOST] = {0};
    struct qdq_error err = {0};
    struct qdqi_group_search h = {.n = m->n,
                                  .costs = costs,
                                  .goal_db = 25,
                                  .enough_db = 25,
                                  .max_scores = bound,
                                  .arena = arena,
                                  .arg = m,
                                  .score = score};
    ck_assert_int_eq(qdqi_group_search(&h, &err), wanted);
    return h;
}

static void
make_noise(const struct row *row, double *noise)
{
    for (size_t i = 0; i < row->n; i++)
        noise[i] = row->common;
    for (size_t i = 0; i < row->n_bad; i++)
        noise[row->bad[i].layer] = row->bad[i].noise;
}

UNIT_ROWS(finds_the_layers, rows)
{
    const struct row *row = &rows[_i];
    double noise[MOST];
    struct made_up m = {.noise = noise, .n = row->n};
    make_noise(row, noise);
    struct qdqi_group_search h = search_for(&m, row->bound, QDQ_OK);
    struct qdqi_grade again;
    size_t n_float = 0, kept = 0;
    for (size_t i = 0; i < h.n; i++)
        n_float += h.is_float[i];
    for (size_t i = 0; i < h.n_steps; i++)
        kept += h.steps[i].kept;
    ck_assert_msg(h.best.sqnr_db >= row->wanted_db, "%s: %g dB", row->name,
                  h.best.sqnr_db);
    ck_assert_msg(n_float <= row->most_float, "%s: %zu in float", row->name, n_float);
    ck_assert_uint_eq(h.n_steps, m.scores);
    ck_assert_uint_le(h.n_steps, row->bound);
    ck_assert_uint_ge(kept, 1);
    ck_assert_int_eq(score(&m, h.is_float, &again, NULL), QDQ_OK);
    ck_assert_double_eq(again.sqnr_db, h.best.sqnr_db);
}

/* Outputs that are wrong cannot get worse, so that none of ten bad layers gains anything by
   itself. One of them is quantized only beside others. */
UNIT_TEST(finds_layers_that_hide_each_other)
{
    enum { N = 25, BOUND = 27, BAD = 10 };
    double noise[N];
    struct made_up m = {.noise = noise, .n = N, .most = .054, .joined = true};
    for (size_t i = 0; i < N; i++)
        noise[i] = i < BAD ? .04 : 1e-5;
    struct qdqi_group_search h = search_for(&m, BOUND, QDQ_OK);
    size_t n_float = 0;
    for (size_t i = 0; i < N; i++) {
        ck_assert(i >= BAD || h.is_float[i]);
        n_float += h.is_float[i];
    }
    ck_assert_uint_le(n_float, 16);
    ck_assert_double_ge(h.best.sqnr_db, 25);
    ck_assert_uint_le(m.scores, BOUND);
}

/* The noise of the layers 2 to 5 alone is more than the goal allows, and there is one choice left
   to judge when that is known. */
UNIT_TEST(judges_the_last_choice_that_is_enough)
{
    static const double noise[] = {.5, .6, .002, .002, 5e-5, 5e-5};
    struct made_up m = {.noise = noise, .n = 6};
    struct qdqi_group_search h = search_for(&m, 7, QDQ_OK);
    ck_assert_double_gt(h.best.sqnr_db, 25);
    for (size_t i = 0; i < m.n; i++)
        ck_assert_int_eq(h.is_float[i], i < 4);
}

UNIT_ROWS(ends_with_every_error, rows)
{
    const struct row *row = &rows[_i];
    double noise[MOST];
    struct made_up m = {.noise = noise, .n = row->n};
    make_noise(row, noise);
    size_t n = search_for(&m, row->bound, QDQ_OK).n_steps;
    for (size_t i = 1; i <= n; i++) {
        m.scores = 0;
        m.fail_at = i;
        search_for(&m, row->bound, QDQ_CANCELLED);
    }
}

/* A choice beyond its bounds is not preferred, whatever it brings. */
static const struct bounded {
    const char *name;
    double excess;                   /* of all layers in integers */
    double noise[6], costs[6];       /* by layer */
    bool wanted[6];                  /* layers in float at the end */
    double wanted_db, wanted_excess; /* at least, and at most */
} bounded[] = {
    {"both bad layers fit",
     .5,
     {.04, 0, .03, 0, 0, 0},
     {.1, .1, .1, .1, .1, .1},
     {true, false, true},
     25,
     .7},
    {"the worst one does not fit",
     .8,
     {.06, 0, .03, 0, 0, 0},
     {.4, .1, .1, .1, .1, .1},
     {false, false, true},
     12,
     .9},
    {"loud layers, one of which does not fit",
     .8,
     {.9, 0, .3, 0, 0, 0},
     {.4, .1, .1, .1, .1, .1},
     {false, false, true},
     -1,
     .9},
    {"nothing fits",
     1.1,
     {.04, 0, 0, 0, 0, 0},
     {.1, .1, .1, .1, .1, .1},
     {false},
     13,
     1.1},
    {"a layer that is slow in integers",
     1.1,
     {.0001, 0, 0, 0, 0, 0},
     {.1, .1, -.2, .1, .1, .1},
     {false, false, true},
     39,
     .9},
    {"a slow layer and a bad one",
     1.1,
     {.05, 0, 0, 0, 0, 0},
     {.05, .1, -.2, .1, .1, .1},
     {true, false, true},
     25,
     .95},
};

UNIT_ROWS(keeps_within_bounds, bounded)
{
    const struct bounded *row = &bounded[_i];
    struct made_up m = {
        .noise = row->noise, .n = 6, .costs = row->costs, .excess = row->excess};
    struct qdqi_group_search h = search_for(&m, 40, QDQ_OK);
    for (size_t i = 0; i < 6; i++)
        ck_assert_msg(h.is_float[i] == row->wanted[i], "%s: layer %zu", row->name, i);
    ck_assert_msg(h.best.sqnr_db >= row->wanted_db, "%s: %g dB", row->name,
                  h.best.sqnr_db);
    ck_assert_msg(h.best.excess <= row->wanted_excess + 1e-9, "%s: %g", row->name,
                  h.best.excess);
}

/* A start that is known is not judged again. */
/* Layer 1, which is half of all, is not judged in float, as that is not good enough yet;
   the choice in front of it is what was judged. */
UNIT_TEST(ends_with_the_judged_choice)
{
    enum { N = 10 };
    double noise[N], costs[N];
    struct made_up m = {.noise = noise, .n = N};
    struct qdq_error err = {0};
    struct qdqi_grade again;
    for (size_t i = 0; i < N; i++) {
        noise[i] = i == 0 ? 1 : i == 1 ? 1e-3 : 8.7e-4;
        costs[i] = i == 1 ? 100 : 1;
    }
    struct qdqi_group_search h = {.n = N,
                                  .costs = costs,
                                  .goal_db = 25,
                                  .enough_db = 20,
                                  .max_scores = 2 * N + 1,
                                  .arena = arena,
                                  .arg = &m,
                                  .score = score};
    ck_assert_int_eq(qdqi_group_search(&h, &err), QDQ_OK);
    assert_no_choice_twice(&h);
    ck_assert_int_eq(score(&m, h.is_float, &again, &err), QDQ_OK);
    ck_assert_double_eq(again.sqnr_db, h.best.sqnr_db);
}

UNIT_TEST(takes_a_known_start)
{
    static const double costs[MOST] = {0}, noise[] = {.05, 0};
    const struct qdqi_grade start = {.sqnr_db = 13};
    struct made_up m = {.noise = noise, .n = 2};
    struct qdq_error err = {0};
    struct qdqi_group_search h = {.n = 2,
                                  .costs = costs,
                                  .goal_db = 25,
                                  .enough_db = 25,
                                  .max_scores = 9,
                                  .start = &start,
                                  .arena = arena,
                                  .arg = &m,
                                  .score = score};
    ck_assert_int_eq(qdqi_group_search(&h, &err), QDQ_OK);
    ck_assert(h.is_float[0] && !h.is_float[1]);
    ck_assert_str_ne(h.steps[0].step, "start");
}

/* The group with the most noise of its own is measured first, and one layer that is enough
   ends the search: of 20 layers, two choices are judged. */
UNIT_TEST(begins_with_the_noisiest)
{
    enum { N = 20 };
    static const double costs[N] = {0};
    double noise[N], own[N];
    struct qdq_error err = {0};
    for (size_t i = 0; i < N; i++) {
        noise[i] = i == 13 ? .05 : 1e-5;
        own[i] = i == 13 ? .01 : i == 4 ? .001 : 1e-4;
    }
    struct made_up m = {.noise = noise, .n = N};
    struct qdqi_group_search h = {.n = N,
                                  .costs = costs,
                                  .noise = own,
                                  .goal_db = 25,
                                  .enough_db = 25,
                                  .max_scores = 48,
                                  .arena = arena,
                                  .arg = &m,
                                  .score = score};
    ck_assert_int_eq(qdqi_group_search(&h, &err), QDQ_OK);
    ck_assert_uint_eq(h.n_steps, 2);
    ck_assert(h.is_float[13] && h.steps[1].kept);
    ck_assert_double_ge(h.best.sqnr_db, 25);
}

/* One layer that is more than half of all is not left in float before the others were tried. */
UNIT_TEST(does_not_begin_with_most_of_the_model)
{
    static const double costs[] = {9, 1, 1}, own[] = {.02, .01, 0},
                        noise[] = {.02, .03, .003};
    struct qdq_error err = {0};
    struct made_up m = {.noise = noise, .n = 3};
    struct qdqi_group_search h = {.n = 3,
                                  .costs = costs,
                                  .noise = own,
                                  .goal_db = 14.7,
                                  .enough_db = 14.7,
                                  .max_scores = 48,
                                  .arena = arena,
                                  .arg = &m,
                                  .score = score};
    ck_assert_int_eq(qdqi_group_search(&h, &err), QDQ_OK);
    ck_assert(!h.is_float[0] && h.is_float[1] && !h.is_float[2]);
    ck_assert(h.steps[1].is_float[0] && h.steps[2].is_float[1]);
}

static const struct estimated {
    const char *name;
    double error_db, float_error_db;
    size_t most_scores;
    double wanted_db;
} estimated[] = {
    {"estimates are scores", 0, 0, 2, 25},
    {"estimates are a little low", .5, 0, 2, 25},
    {"estimates are a little high, and scores finish", -1.5, 0, 40, 25},
    {"estimates of the start differ", 9, 0, 46, 25},
    {"estimates of the choice are too high", 0, -9, 40, 25},
};

/* With estimates that agree, only the start and the end are judged. Others do no harm. */
UNIT_ROWS(goes_by_estimates, estimated)
{
    enum { N = 24 };
    const struct estimated *row = &estimated[_i];
    static const double costs[N] = {0};
    double noise[N];
    struct qdq_error err = {0};
    for (size_t i = 0; i < N; i++)
        noise[i] = i == 3 ? .03 : i == 20 ? .02 : 1e-5;
    struct made_up m = {.noise = noise,
                        .n = N,
                        .error_db = row->error_db,
                        .float_error_db = row->float_error_db};
    struct qdqi_group_search h = {.n = N,
                                  .costs = costs,
                                  .goal_db = 25,
                                  .enough_db = 25,
                                  .max_scores = 48,
                                  .arena = arena,
                                  .arg = &m,
                                  .score = score,
                                  .estimate = estimate};
    struct qdqi_grade again;
    size_t n_estimated = 0, last = 0;
    ck_assert_int_eq(qdqi_group_search(&h, &err), QDQ_OK);
    assert_no_choice_twice(&h);
    for (size_t i = 0; i < h.n_steps; i++) {
        n_estimated += h.steps[i].estimated;
        last = h.steps[i].kept ? i : last;
    }
    ck_assert_uint_eq(n_estimated, m.estimates);
    ck_assert_uint_eq(h.n_steps, m.estimates + m.scores);
    ck_assert_uint_le(h.n_steps, 48);
    ck_assert_msg(m.scores <= row->most_scores, "%s: %zu scores", row->name, m.scores);
    ck_assert_msg(h.best.sqnr_db >= row->wanted_db, "%s: %g dB", row->name,
                  h.best.sqnr_db);
    ck_assert_msg(!h.steps[last].estimated, "%s: the choice was judged", row->name);
    ck_assert_int_eq(score(&m, h.is_float, &again, &err), QDQ_OK);
    ck_assert_double_eq(again.sqnr_db, h.best.sqnr_db);
}

/* Where nothing that is estimated is better, all layers stay in integers, and one choice was
   judged. */
UNIT_TEST(keeps_the_start_by_estimates)
{
    enum { N = 20 };
    static const double costs[N] = {0};
    double noise[N];
    struct qdq_error err = {0};
    for (size_t i = 0; i < N; i++)
        noise[i] = i == 0 ? .02 : 1e-5;
    struct made_up m = {.noise = noise, .n = N, .least = 1e-5, .float_error_db = 40};
    struct qdqi_group_search h = {.n = N,
                                  .costs = costs,
                                  .goal_db = 25,
                                  .enough_db = 25,
                                  .max_scores = 48,
                                  .arena = arena,
                                  .arg = &m,
                                  .score = score,
                                  .estimate = estimate};
    ck_assert_int_eq(qdqi_group_search(&h, &err), QDQ_OK);
    ck_assert_uint_eq(m.scores, 1);
    for (size_t i = 0; i < N; i++)
        ck_assert(!h.is_float[i]);
    ck_assert_double_eq_tol(h.best.sqnr_db, 16.95, .01);
}

UNIT_LOOP(weighs_time_and_accuracy_beyond_the_bounds, 6)
{
    static const struct {
        struct qdqi_grade a, b;
        bool is_better;
    } cases[] = {
        {{.sqnr_db = 9, .excess = 1.96}, {.sqnr_db = 32, .excess = 2}, false},
        {{.sqnr_db = 31, .excess = 1.96}, {.sqnr_db = 32, .excess = 2}, true},
        {{.sqnr_db = 9, .excess = 1.9}, {.sqnr_db = 32, .excess = 2}, true},
        {{.sqnr_db = 32, .excess = 2}, {.sqnr_db = 9, .excess = 1.9}, false},
        {{.sqnr_db = 9, .excess = 1}, {.sqnr_db = 32, .excess = 1.01}, true},
        {{.sqnr_db = 33, .excess = 1}, {.sqnr_db = 32, .excess = .5}, true},
    };
    ck_assert_int_eq(qdqi_grade_is_better(&cases[_i].a, &cases[_i].b),
                     cases[_i].is_better);
}

UNIT_SUITE("engine_groups", ARENA)
