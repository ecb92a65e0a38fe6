/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding against outputs goes by sums of pairs of rows, and by least squares. */
#include "config.h"

#include "graph/weights/least_squares.h"
#include "qdq/executor.h"
#include "stages/reconstruct/row_pairs.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float
uniform(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (1 << 23) - 1;
}

/* Does pieces in the reverse order. */
static void
run_backwards(void *arg, int threads, size_t n, void (*part)(void *arg, size_t i),
              void *part_arg)
{
    (void)arg;
    (void)threads;
    while (n-- > 0)
        part(part_arg, n);
}

static const struct qdq_executor backwards = {.run = run_backwards};
static const struct qdqi_tasks reversed = {.executor = &backwards, .threads = 2};

/* --- sums ---------------------------------------------------------------------- */

enum { CHANNELS = 4, SIDE = 5, OUTPUTS = 6, SAMPLES = 3, GROUPS = 2, K = 2 * 9 };

/* Returns what element i of the patch of a group at a position is. */
static float
patch_at(const float *image, size_t group, size_t position, size_t i)
{
    const long y = (long)(position / SIDE) + (long)(i % 9 / 3) - 1;
    const long x = (long)(position % SIDE) + (long)(i % 3) - 1;
    const size_t channel = group * CHANNELS / GROUPS + i / 9;
    return y < 0 || x < 0 || y >= SIDE || x >= SIDE
               ? 0
               : image[channel * SIDE * SIDE + (size_t)(y * SIDE + x)];
}

UNIT_TEST(sums_of_patches_are_those_of_all_positions)
{
    static float input[SAMPLES * CHANNELS * SIDE * SIDE];
    static float target[SAMPLES * OUTPUTS * SIDE * SIDE], made[sizeof target / 4];
    const int64_t in[] = {SAMPLES, CHANNELS, SIDE, SIDE};
    const int64_t out[] = {SAMPLES, OUTPUTS, SIDE, SIDE};
    const struct qdqi_window window = {.axes = 2,
                                       .kernel = {3, 3},
                                       .stride = {1, 1},
                                       .dilation = {1, 1},
                                       .begin = {1, 1},
                                       .end = {1, 1}};
    struct qdqi_row_pairs pairs;
    unsigned state = 5;
    bool fits;
    for (size_t i = 0; i < sizeof input / sizeof *input; i++)
        input[i] = uniform(&state);
    for (size_t i = 0; i < sizeof target / sizeof *target; i++) {
        target[i] = uniform(&state);
        made[i] = uniform(&state);
    }
    ck_assert(qdqi_row_pairs_init(&pairs, &window, GROUPS, K, OUTPUTS / GROUPS));
    const struct qdqi_paired_tensors tensors = {{input, 4, in}, target, made, 4, out};
    ck_assert_int_eq(
        qdqi_row_pairs_add(&pairs, SAMPLES, 1000, &tensors, &reversed, &fits, NULL),
        QDQ_OK);
    ck_assert(fits);
    ck_assert_int_eq(qdqi_row_pairs_flush(&pairs, &reversed, NULL), QDQ_OK);
    const size_t positions = SIDE * SIDE, rows = SAMPLES * positions;
    for (size_t o = 0; o < OUTPUTS; o++) {
        const size_t group = o / (OUTPUTS / GROUPS);
        double wanted[K] = {0}, found[K], mean = 0;
        ck_assert_uint_eq(pairs.patches.moments[group].rows, rows);
        for (size_t s = 0; s < SAMPLES; s++)
            for (size_t p = 0; p < positions; p++) {
                const size_t at = (s * OUTPUTS + o) * positions + p;
                const double d = (double)(target[at] - made[at]);
                mean += d / (double)rows;
                for (size_t i = 0; i < K; i++)
                    wanted[i] +=
                        d / (double)rows *
                        (double)patch_at(input + s * CHANNELS * positions, group, p, i);
            }
        qdqi_row_pairs_write(&pairs, group, o % (OUTPUTS / GROUPS), false, found);
        ck_assert_double_eq_tol(qdqi_row_pairs_mean(&pairs, o), mean, 1e-6);
        for (size_t i = 0; i < K; i++)
            ck_assert_double_eq_tol(found[i], wanted[i], 1e-5);
    }
    qdqi_row_pairs_fini(&pairs);
}

UNIT_TEST(rows_that_are_not_finite_count_as_nothing)
{
    const int64_t in[] = {1, 300, 2}, out[] = {1, 300, 1};
    static float input[600], target[300], made[300];
    const struct qdqi_window window = {.axes = 0};
    struct qdqi_row_pairs pairs;
    double found[2];
    bool fits;
    for (size_t i = 0; i < 300; i++) {
        input[2 * i] = 1;
        input[2 * i + 1] = 2;
        target[i] = 3;
    }
    input[20] = NAN;
    target[30] = INFINITY;
    ck_assert(qdqi_row_pairs_init(&pairs, &window, 1, 2, 1));
    const struct qdqi_paired_tensors tensors = {{input, 3, in}, target, made, 3, out};
    ck_assert_int_eq(qdqi_row_pairs_add(&pairs, 1, 300, &tensors, NULL, &fits, NULL),
                     QDQ_OK);
    ck_assert(fits);
    ck_assert_int_eq(qdqi_row_pairs_flush(&pairs, NULL, NULL), QDQ_OK);
    qdqi_row_pairs_write(&pairs, 0, 0, false, found);
    ck_assert_double_eq_tol(found[0], 3.0 * 298 / 299, 1e-6);
    ck_assert_double_eq_tol(found[1], 6.0 * 298 / 299, 1e-6);
    qdqi_row_pairs_fini(&pairs);
}

UNIT_TEST(tensors_of_other_shapes_are_refused)
{
    static const int64_t in[] = {2, 3, 4};
    static const int64_t outs[][3] = {{2, 3, 6}, {2, 4, 5}, {1, 3, 5}, {2, 3, 5}};
    static float numbers[64];
    const struct qdqi_window window = {.axes = 0};
    for (size_t i = 0; i < 4; i++) {
        struct qdqi_row_pairs pairs;
        bool fits;
        ck_assert(qdqi_row_pairs_init(&pairs, &window, 1, 4, 5));
        const struct qdqi_paired_tensors tensors = {
            {numbers, 3, in}, numbers, numbers, 3, outs[i]};
        ck_assert_int_eq(qdqi_row_pairs_add(&pairs, 2, 10, &tensors, NULL, &fits, NULL),
                         QDQ_OK);
        ck_assert_int_eq(fits, i == 3);
        ck_assert_uint_eq(pairs.patches.moments->n_pending, fits ? 6 : 0);
        qdqi_row_pairs_fini(&pairs);
    }
}

/* --- least squares --------------------------------------------------------------- */

enum { UNKNOWN = 75, SIDES = 11 };

static void
make_problem(double *c, double *sides)
{
    static double rows[2 * UNKNOWN][UNKNOWN];
    unsigned state = 9;
    for (size_t r = 0; r < 2 * UNKNOWN; r++)
        for (size_t i = 0; i < UNKNOWN; i++)
            rows[r][i] = (double)uniform(&state);
    for (size_t i = 0; i < UNKNOWN; i++)
        for (size_t j = 0; j < UNKNOWN; j++) {
            c[i * UNKNOWN + j] = 0;
            for (size_t r = 0; r < 2 * UNKNOWN; r++)
                c[i * UNKNOWN + j] += rows[r][i] * rows[r][j];
        }
    for (size_t i = 0; i < SIDES * UNKNOWN; i++)
        sides[i] = (double)uniform(&state);
}

UNIT_TEST(solutions_solve_the_damped_equations)
{
    static double c[UNKNOWN * UNKNOWN], given[UNKNOWN * UNKNOWN];
    static double x[SIDES * UNKNOWN], sides[SIDES * UNKNOWN], other[SIDES * UNKNOWN];
    struct qdqi_least_squares l = {UNKNOWN, SIDES, c, x, 0.2, NULL};
    bool is_solved;
    double mean = 0;
    make_problem(given, sides);
    memcpy(c, given, sizeof c);
    memcpy(x, sides, sizeof x);
    ck_assert_int_eq(qdqi_least_squares(&l, &is_solved, NULL), QDQ_OK);
    ck_assert(is_solved);
    for (size_t i = 0; i < UNKNOWN; i++)
        mean += given[i * (UNKNOWN + 1)] / UNKNOWN;
    for (size_t i = 0; i < UNKNOWN; i++)
        given[i * (UNKNOWN + 1)] += 0.2 * given[i * (UNKNOWN + 1)] + 1e-4 * mean;
    for (size_t s = 0; s < SIDES; s++)
        for (size_t i = 0; i < UNKNOWN; i++) {
            double sum = 0;
            for (size_t k = 0; k < UNKNOWN; k++)
                sum += given[i * UNKNOWN + k] * x[s * UNKNOWN + k];
            ck_assert_double_eq_tol(sum, sides[s * UNKNOWN + i], 1e-9);
        }
    make_problem(c, other);
    l.sides = other;
    l.tasks = &reversed;
    ck_assert_int_eq(qdqi_least_squares(&l, &is_solved, NULL), QDQ_OK);
    ck_assert_mem_eq(other, x, sizeof x);
}

UNIT_TEST(a_matrix_without_a_factor_is_not_solved)
{
    double none[4] = {0}, indefinite[4] = {1, 5, 5, 1}, sides[2] = {3, 4};
    bool is_solved = true;
    struct qdqi_least_squares l = {2, 1, none, sides, 0.2, NULL};
    ck_assert_int_eq(qdqi_least_squares(&l, &is_solved, NULL), QDQ_OK);
    ck_assert(!is_solved);
    l.c = indefinite;
    ck_assert_int_eq(qdqi_least_squares(&l, &is_solved, NULL), QDQ_OK);
    ck_assert(!is_solved);
    ck_assert_double_eq(sides[0], 3);
}

UNIT_SUITE("row_pairs")
