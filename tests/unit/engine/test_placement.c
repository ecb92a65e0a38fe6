/* SPDX-License-Identifier: Apache-2.0 */
/* The minimum cut and the hull of placements, against all placements of small graphs. */
#include "config.h"

#include "stages/frontier/costs.h"
#include "stages/frontier/cut.h"
#include "stages/frontier/placement.h"
#include "arena.h"

#include <math.h>
#include <string.h>

enum { MOST_LAYERS = 12, GRAPHS = 200 };

static uint64_t state;

/* A number from 0 to 1 of a sequence that is the same in each run (xorshift64). */
static double
next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

struct made {
    struct qdqi_placement_costs costs;
    double float_ms[MOST_LAYERS], integer_ms[MOST_LAYERS], noise[MOST_LAYERS];
    struct qdqi_passed_tensor tensors[MOST_LAYERS];
    size_t readers[MOST_LAYERS][MOST_LAYERS];
};

/* Makes a graph whose layers read tensors of earlier ones. */
static void
make(struct made *m, int seed)
{
    state = 0x9e3779b97f4a7c15U + (uint64_t)seed * 77;
    const size_t n = 2 + (size_t)(next_random() * (MOST_LAYERS - 1));
    m->costs = (struct qdqi_placement_costs){.n = n,
                                             .float_ms = m->float_ms,
                                             .integer_ms = m->integer_ms,
                                             .noise = m->noise,
                                             .tensors = m->tensors};
    for (size_t i = 0; i < n; i++) {
        struct qdqi_passed_tensor t = {.from = i,
                                       .to = m->readers[i],
                                       .quantize_ms = next_random(),
                                       .dequantize_ms = next_random()};
        m->float_ms[i] = 3 * next_random();
        m->integer_ms[i] = 2 * next_random();
        m->noise[i] = 1e-4 + next_random() * next_random();
        for (size_t k = i + 1; k < n; k++)
            if (k == i + 1 || next_random() < 0.2)
                m->readers[i][t.n_to++] = k;
        if (t.n_to > 0)
            m->tensors[m->costs.n_tensors++] = t;
    }
}

static void
weigh_number(const struct made *m, unsigned number, struct qdqi_placement *ret)
{
    static bool is_float[MOST_LAYERS];
    for (size_t i = 0; i < m->costs.n; i++)
        is_float[i] = number >> i & 1;
    ret->is_float = is_float;
    qdqi_placement_weigh(&m->costs, ret);
}

/* Returns the least ms + price * noise of all placements. */
static double
least_of_all(const struct made *m, double price)
{
    double least = INFINITY;
    for (unsigned k = 0; k < 1U << m->costs.n; k++) {
        struct qdqi_placement p;
        weigh_number(m, k, &p);
        least = fmin(least, p.ms + price * p.noise);
    }
    return least;
}

UNIT_LOOP(finds_the_cheapest_of_all, GRAPHS)
{
    static const double prices[] = {0, 0.1, 0.5, 1, 2, 10, 1000};
    struct qdq_error err = {0};
    struct made m;
    make(&m, _i);
    for (size_t k = 0; k < sizeof prices / sizeof *prices; k++) {
        struct qdqi_placement p;
        ck_assert_int_eq(qdqi_placement_find(&m.costs, prices[k], arena, &p, &err),
                         QDQ_OK);
        ck_assert_double_eq_tol(p.ms + prices[k] * p.noise, least_of_all(&m, prices[k]),
                                1e-9);
    }
}

/* The hull's points are corners of the hull of all placements, and no placement lies below it. */
UNIT_LOOP(finds_the_hull_of_all, GRAPHS)
{
    struct qdq_error err = {0};
    struct made m;
    struct qdqi_placement *points;
    size_t n;
    make(&m, _i);
    ck_assert_int_eq(qdqi_placement_hull(&m.costs, 1000, arena, &points, &n, &err),
                     QDQ_OK);
    ck_assert_uint_ge(n, 1);
    ck_assert_double_eq_tol(points[0].ms, least_of_all(&m, 0), 1e-9);
    for (size_t i = 0; i + 1 < n; i++) {
        ck_assert_double_lt(points[i].ms, points[i + 1].ms);
        ck_assert_double_gt(points[i].noise, points[i + 1].noise);
        const double price =
            (points[i + 1].ms - points[i].ms) / (points[i].noise - points[i + 1].noise);
        ck_assert_double_eq_tol(points[i].ms + price * points[i].noise,
                                least_of_all(&m, price), 1e-7);
    }
    for (size_t i = 0; i < m.costs.n; i++)
        ck_assert(n == 1 || points[n - 1].is_float[i]);
}

UNIT_LOOP(keeps_to_the_number_of_points, GRAPHS)
{
    struct qdq_error err = {0};
    struct made m;
    struct qdqi_placement *points;
    size_t n;
    make(&m, _i);
    ck_assert_int_eq(qdqi_placement_hull(&m.costs, 3, arena, &points, &n, &err),
                     QDQ_OK);
    ck_assert_uint_le(n, 3);
}

/* Costs that were measured with 3 % of noise lead to a placement that costs hardly more by the
   true ones. */
UNIT_LOOP(bears_the_noise_of_measurements, GRAPHS)
{
    struct qdq_error err = {0};
    struct made m, seen;
    struct qdqi_placement p;
    make(&m, _i);
    make(&seen, _i);
    for (size_t i = 0; i < m.costs.n; i++) {
        seen.float_ms[i] *= 0.97 + 0.06 * next_random();
        seen.integer_ms[i] *= 0.97 + 0.06 * next_random();
    }
    ck_assert_int_eq(qdqi_placement_find(&seen.costs, 1, arena, &p, &err), QDQ_OK);
    qdqi_placement_weigh(&m.costs, &p);
    ck_assert_double_le(p.ms + p.noise, 1.07 * least_of_all(&m, 1));
}

/* A long chain, whose paths are as long as the graph. */
UNIT_TEST(cuts_a_long_chain)
{
    enum { N = 3000 };
    struct qdq_error err = {0};
    struct qdqi_pipe *pipes = qdqi_arena_array(arena, N, sizeof *pipes);
    bool *sides = qdqi_arena_array(arena, N + 1, sizeof *sides);
    for (size_t i = 0; i < N; i++)
        pipes[i] = (struct qdqi_pipe){i, i + 1, i == 1234 ? 1 : 2};
    ck_assert_int_eq(qdqi_cut(N + 1, pipes, N, 0, N, sides, arena, &err), QDQ_OK);
    for (size_t i = 0; i <= N; i++)
        ck_assert(sides[i] == (i <= 1234));
}

/* --- what is learned from placements that were seen --------------------------------- */

/* At a placement that was seen the prediction is what it took, with all layers in float that of the float model, and
   between two that missed as much it misses as much. */
UNIT_TEST(predictions_learn)
{
    double float_ms[] = {1, 1, 1, 1}, integer_ms[] = {0.5, 0.5, 0.5, 0.5};
    double noise[] = {0.25, 0.25, 0.25, 0.25};
    const bool two[] = {true, true, false, false}, one[] = {true, false, false, false};
    const bool three[] = {true, true, true, false}, all[] = {true, true, true, true};
    const struct qdqi_costs costs = {
        .placement = {.n = 4,
                      .float_ms = float_ms,
                      .integer_ms = integer_ms,
                      .noise = noise},
        .rest_ms = 1,
        .all_float_ms = 5,
    };
    const struct qdqi_seen_placement seen[] = {{one, 0.9, 0.1}, {three, 1.1, 0.1}};
    const struct qdqi_placement p1 = {.is_float = one}, p2 = {.is_float = two},
                                p4 = {.is_float = all};
    ck_assert_double_eq_tol(qdqi_costs_predict(&costs, &p2, seen, 0), 0.8, 1e-9);
    ck_assert_double_eq_tol(qdqi_costs_predict(&costs, &p1, seen, 2), 0.9, 1e-4);
    ck_assert_double_eq_tol(qdqi_costs_predict(&costs, &p4, seen, 2), 1, 1e-4);
    const double between = qdqi_costs_predict(&costs, &p2, seen, 2) - 0.8;
    ck_assert(between > 0.2 * 0.8 && between < 0.2);
}

UNIT_SUITE("engine_placement", ARENA)
