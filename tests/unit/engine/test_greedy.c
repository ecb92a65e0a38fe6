/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the fewest layers in float, on made-up noise models: compared with
   all subsets where layers are few, and otherwise by its properties. */
#include "config.h"

#include "arena.h"
#include "stages/whatif/greedy.h"

#include <math.h>
#include <string.h>

enum { MOST = 40 };

/* The noise of quantized layers adds up; neighbouring layers also have some in
   common. */
struct made_up {
    size_t n;
    /* of layer i, and of layers i and i + 1 together */
    double noise[MOST], common[MOST];
    bool no_top1;
    size_t scores, expected;
    int fail_at;    /* number of the measurement that fails; 0: none */
    size_t late_at; /* number of measurements after which the time is up */
};

static double
noise_of(const struct made_up *m, const bool *is_float)
{
    double sum = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (is_float[i])
            continue;
        sum += m->noise[i];
        if (i + 1 < m->n && !is_float[i + 1])
            sum += m->common[i];
    }
    return sum;
}

static enum qdq_code
score(void *arg, const bool *is_float, struct qdqi_score *ret, struct qdq_error *err)
{
    struct made_up *m = arg;
    m->scores++;
    if ((int)m->scores == m->fail_at)
        return qdq_error_set(err, QDQ_CANCELLED, QDQ_AT_NOTHING, NULL, "cancelled");
    double noise = noise_of(m, is_float);
    ret->sqnr_db = noise > 0 ? -10 * log10(noise) : noise == 0 ? INFINITY : -INFINITY;
    ret->top1_agreement = m->no_top1 ? NAN : 1 - fmin(noise, 1);
    return QDQ_OK;
}

static void
expect(void *arg, size_t scores)
{
    struct made_up *m = arg;
    m->expected = scores;
}

static struct qdqi_greedy_search
hunt_for(struct made_up *m, const struct qdq_search *goal)
{
    struct qdq_error err = {0};
    struct qdqi_greedy_search search = {.n = m->n,
                                        .goal = goal,
                                        .arena = arena,
                                        .arg = m,
                                        .score = score,
                                        .expect = expect};
    m->scores = 0;
    ck_assert_int_eq(qdqi_greedy_search(&search, &err), QDQ_OK);
    return search;
}

static const struct qdq_search no_goal = {NAN, NAN, NAN, QDQ_NO_LIMIT, 1, 0};

static struct qdq_search
sqnr_goal(double db)
{
    struct qdq_search goal = no_goal;
    goal.min_sqnr_db = db;
    return goal;
}

/* Makes noise from a few hundredths to a few thousandths. */
static void
make(struct made_up *m, size_t n, uint64_t seed, double common)
{
    *m = (struct made_up){.n = n};
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        double x = (double)(seed >> 11) * 0x1p-53;
        m->noise[i] = 0.03 * pow(0.1, 2 * x);
        m->common[i] = common * m->noise[i] * (seed >> 5 & 1 ? 1 : -1);
    }
}

/* --- the layers that it finds --------------------------------------------- */

/* Returns the least number of float layers with which any subset reaches the goal. */
static size_t
fewest(const struct made_up *m, double goal)
{
    size_t best = m->n;
    for (uint32_t set = 0; set < 1u << m->n; set++) {
        bool is_float[MOST];
        size_t k = 0;
        for (size_t i = 0; i < m->n; i++)
            k += is_float[i] = set >> i & 1;
        if (k < best && -10 * log10(fmax(noise_of(m, is_float), 1e-99)) >= goal)
            best = k;
    }
    return best;
}

UNIT_LOOP(noise_that_adds_up_takes_the_fewest, 20)
{
    struct made_up m;
    make(&m, 12, (uint64_t)_i, 0);
    for (double db = 8; db < 30; db += 1.5) {
        struct qdq_search goal = sqnr_goal(db);
        struct qdqi_greedy_search h = hunt_for(&m, &goal);
        ck_assert(h.met);
        ck_assert_uint_eq(h.n_float, fewest(&m, db));
    }
}

/* With noise in common, the search needs at most one layer more than the best
   subset. */
UNIT_LOOP(noise_in_common_takes_one_more_at_most, 20)
{
    struct made_up m;
    size_t more = 0, all = 0;
    make(&m, 12, (uint64_t)_i + 100, 0.5);
    for (double db = 8; db < 30; db += 1.5) {
        struct qdq_search goal = sqnr_goal(db);
        struct qdqi_greedy_search h = hunt_for(&m, &goal);
        size_t least = fewest(&m, db);
        ck_assert(h.met);
        ck_assert_uint_le(h.n_float, least + 1);
        more += h.n_float - least;
        all++;
    }
    ck_assert_uint_le(more, all / 3);
}

/* --- the curve ------------------------------------------------------------ */

UNIT_TEST(steps_tell_what_was_measured)
{
    struct made_up m;
    struct qdq_search goal = sqnr_goal(20);
    make(&m, 20, 7, 0.3);
    struct qdqi_greedy_search h = hunt_for(&m, &goal);
    bool is_float[MOST] = {false};
    size_t n = 0;
    for (size_t i = 0; i < h.n_steps; i++) {
        const struct qdqi_greedy_step *s = &h.steps[i];
        if (i == 0) {
            ck_assert_uint_eq(s->layer, SIZE_MAX);
        } else {
            is_float[s->layer] = !is_float[s->layer];
            n += is_float[s->layer] ? 1 : (size_t)-1;
        }
        ck_assert_uint_eq(s->n_float, n);
        ck_assert_double_eq(s->score.sqnr_db, -10 * log10(noise_of(&m, is_float)));
    }
    ck_assert_mem_eq(is_float, h.is_float, m.n);
    ck_assert_uint_eq(n, h.n_float);
    ck_assert_double_ge(h.steps[h.n_steps - 1].score.sqnr_db, 20);
}

/* All 40 layers are measured once, and later only a few of them in each step. */
UNIT_TEST(not_all_are_measured_at_each_step)
{
    struct made_up m;
    struct qdq_search goal = sqnr_goal(18);
    make(&m, MOST, 3, 0.1);
    struct qdqi_greedy_search h = hunt_for(&m, &goal);
    ck_assert(h.met);
    ck_assert_uint_gt(h.n_float, 5);
    ck_assert_uint_lt(m.scores, MOST + h.n_float * 12);
    ck_assert_uint_gt(m.expected, 0);
}

UNIT_TEST(a_goal_that_is_met_takes_nothing)
{
    struct made_up m;
    struct qdq_search goal = sqnr_goal(5);
    make(&m, 12, 1, 0);
    struct qdqi_greedy_search h = hunt_for(&m, &goal);
    ck_assert(h.met);
    ck_assert_uint_eq(h.n_float, 0);
    ck_assert_uint_eq(h.n_steps, 1);
    ck_assert_uint_eq(m.scores, 1);
    m.n = 0; /* no layer is quantized */
    h = hunt_for(&m, &goal);
    ck_assert(h.met);
    ck_assert_uint_eq(h.n_steps, 1);
}

UNIT_TEST(no_more_layers_than_allowed)
{
    struct made_up m;
    struct qdq_search goal = sqnr_goal(29);
    make(&m, 12, 1, 0);
    for (int64_t most = 0; most < 6; most++) {
        goal.max_float_layers = most;
        struct qdqi_greedy_search h = hunt_for(&m, &goal);
        ck_assert_int_eq((int64_t)h.n_float, most);
        ck_assert(!h.met);
        for (size_t i = 1; i < h.n_steps; i++) /* each improves the outputs */
            ck_assert_double_gt(h.steps[i].score.sqnr_db, h.steps[i - 1].score.sqnr_db);
    }
}

/* The goal is so high that every layer must stay in float. */
UNIT_TEST(all_layers_stay_in_float_for_the_highest_goal)
{
    struct made_up m;
    struct qdq_search goal = sqnr_goal(200);
    make(&m, 12, 1, 0);
    struct qdqi_greedy_search h = hunt_for(&m, &goal);
    ck_assert(h.met);
    ck_assert_uint_eq(h.n_float, 12);
    ck_assert_double_eq(h.steps[h.n_steps - 1].score.sqnr_db, INFINITY);
}

/* The first layer that was chosen is not needed after the second and third, so it is
   quantized again. */
UNIT_TEST(a_layer_that_is_not_needed_is_quantized_again)
{
    struct made_up m = {
        .n = 3, .noise = {0.01, 0.002, 0.01}, .common = {0.01, 0.01, 0}};
    struct qdq_search goal = sqnr_goal(-10 * log10(0.0025));
    struct qdqi_greedy_search h = hunt_for(&m, &goal);
    ck_assert(h.met);
    ck_assert_uint_eq(h.n_float, 2);
    ck_assert(h.is_float[0] && !h.is_float[1] && h.is_float[2]);
    ck_assert_uint_eq(h.steps[1].layer, 1);
    ck_assert_uint_eq(h.n_steps, 5);
}

UNIT_TEST(agreement_is_a_goal_too)
{
    struct made_up m;
    struct qdq_search goal = no_goal;
    make(&m, 12, 5, 0);
    goal.min_top1_agreement = 0.98;
    struct qdqi_greedy_search h = hunt_for(&m, &goal);
    ck_assert(h.met);
    ck_assert_uint_eq(h.n_float, fewest(&m, -10 * log10(0.02)));
    goal.min_sqnr_db = 25; /* with two goals, both must be met */
    h = hunt_for(&m, &goal);
    ck_assert(h.met);
    ck_assert_uint_eq(h.n_float, fewest(&m, 25));
}

/* The outputs have no SQNR until one certain layer stays in float. */
UNIT_TEST(outputs_without_sqnr_count_as_worst)
{
    struct made_up m;
    struct qdq_search goal = sqnr_goal(20);
    make(&m, 12, 5, 0);
    m.noise[4] = INFINITY;
    struct qdqi_greedy_search h = hunt_for(&m, &goal);
    ck_assert(h.met);
    ck_assert(h.is_float[4]);
    ck_assert_uint_eq(h.steps[1].layer, 4);
}

static bool
is_time_up(void *arg)
{
    const struct made_up *m = arg;
    return m->scores >= m->late_at;
}

/* Whenever the time is up, the search ends soon, with choices that were measured. */
UNIT_TEST(time_ends_it)
{
    struct made_up m;
    struct qdq_search goal = sqnr_goal(25);
    make(&m, 12, 5, 0);
    struct qdqi_greedy_search whole = hunt_for(&m, &goal);
    ck_assert(whole.met);
    for (size_t n = m.scores, i = 1; i < n; i++) {
        struct qdq_error err = {0};
        struct qdqi_greedy_search search = {.n = m.n,
                                            .goal = &goal,
                                            .arena = arena,
                                            .arg = &m,
                                            .score = score,
                                            .is_time_up = is_time_up,
                                            .expect = expect};
        m.scores = 0;
        m.late_at = i;
        ck_assert_int_eq(qdqi_greedy_search(&search, &err), QDQ_OK);
        ck_assert_uint_le(m.scores, i + 1);
        ck_assert_uint_eq(search.steps[search.n_steps - 1].n_float, search.n_float);
        ck_assert_uint_le(search.n_steps, whole.n_steps);
    }
}

UNIT_TEST(an_error_ends_it)
{
    struct made_up m;
    struct qdq_search goal = sqnr_goal(25);
    make(&m, 12, 5, 0);
    hunt_for(&m, &goal);
    for (int i = 1, n = (int)m.scores; i <= n; i++) {
        struct qdq_error err = {0};
        struct qdqi_greedy_search search = {.n = m.n,
                                            .goal = &goal,
                                            .arena = arena,
                                            .arg = &m,
                                            .score = score,
                                            .expect = expect};
        m.fail_at = i;
        m.scores = 0;
        ck_assert_int_eq(qdqi_greedy_search(&search, &err), QDQ_CANCELLED);
        ck_assert_uint_eq(m.scores, (size_t)i);
    }
}

UNIT_SUITE("engine_hunt", ARENA)
