/* SPDX-License-Identifier: Apache-2.0 */
/* When a part of the samples stands for all of them: on random data whose figures are known. */
#include "config.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/evaluate/sequential.h"

enum { TRIALS = 2000, MOST = 128 };

static uint64_t state;

/* Returns a number from 0 to 1, 1 left out. */
static double
uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

static double
normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

static void
shuffle(struct qdqi_sample *rows, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        const size_t k = (size_t)(uniform() * (double)i);
        const struct qdqi_sample row = rows[i - 1];
        rows[i - 1] = rows[k];
        rows[k] = row;
    }
}

static double
pooled(const struct qdqi_sample *rows, size_t n)
{
    double signal = 0, noise = 0;
    for (size_t i = 0; i < n; i++) {
        signal += rows[i].signal;
        noise += rows[i].noise;
    }
    return 10 * log10(signal / noise);
}

/* Kinds of samples: the spread of their SQNR in dB, that of their signal, the part of samples
   that has `times` as much noise, and whether the rule ends most evaluations of them. */
static const struct {
    size_t n;
    double spread_db, signal_db, part, times;
    bool ends;
} kinds[] = {
    {64, 0.3, 0, 0, 1, true},    {64, 1, 0.5, 0, 1, true},
    {128, 1, 1, 0, 1, true},     {128, 1.5, 1, 0, 1, true},
    {128, 3, 3, 0, 1, false},    {64, 1, 1, 0.2, 10, false},
    {128, 1, 1, 0.2, 10, false}, {128, 1, 1, 0.05, 30, false},
};

/* An interval that is claimed has the figure of all samples in it, at the end of a sequence of looks
   that ends at the first narrow one. */
UNIT_ROWS(the_pooled_figure_is_as_close_as_it_is_told, kinds)
{
    struct qdqi_sample rows[MOST];
    const size_t n = kinds[_i].n;
    int stopped = 0, wrong = 0;
    state = (uint64_t)_i + 1;
    for (int trial = 0; trial < TRIALS; trial++) {
        for (size_t i = 0; i < n; i++) {
            const double signal = pow(10, kinds[_i].signal_db * normal() / 10);
            const double db = 30 + kinds[_i].spread_db * normal();
            const double times = uniform() < kinds[_i].part ? kinds[_i].times : 1;
            rows[i] = (struct qdqi_sample){signal, signal * times * pow(10, -db / 10)};
        }
        shuffle(rows, n);
        for (size_t k = QDQI_SEQUENTIAL_LEAST; k < n; k += 8) {
            const double half = qdqi_pooled_half_width(rows, k, (int64_t)n);
            if (half > qdqi_settled_db)
                continue;
            stopped++;
            wrong += fabs(pooled(rows, k) - pooled(rows, n)) > qdqi_settled_db;
            break;
        }
    }
    /* At most 5 in 100 evaluations end with a figure that is wrong; the worst are those of rare
       samples, none of which was met. */
    ck_assert_int_le(wrong * 20, TRIALS);
    ck_assert(!kinds[_i].ends || stopped > TRIALS / 2);
}

/* The limit of the rule: one sample of 128 that has as much noise as a hundred others is met as often as
   any other, and no figure of those that were drawn tells of it. */
UNIT_TEST(a_single_sample_is_met_as_often_as_it_is_drawn)
{
    struct qdqi_sample rows[MOST];
    int met = 0;
    state = 99;
    for (int trial = 0; trial < TRIALS; trial++) {
        for (size_t i = 0; i < MOST; i++)
            rows[i] = (struct qdqi_sample){1, i == 0 ? 0.1 : 0.001};
        shuffle(rows, MOST);
        met += qdqi_pooled_half_width(rows, 42, MOST) > qdqi_settled_db;
    }
    ck_assert_double_eq_tol((double)met / TRIALS, 42.0 / MOST, 0.04);
}

UNIT_TEST(sums_without_a_figure_settle_nothing)
{
    const struct qdqi_sample equal[] = {{1, 0}, {2, 0}, {3, 0}},
                             broken[] = {{1, (double)NAN}, {1, 1}, {1, 1}},
                             silent[] = {{0, 1}, {0, 2}, {0, 1}};
    ck_assert_double_eq(qdqi_pooled_half_width(equal, 3, 64), 0);
    ck_assert(isinf(qdqi_pooled_half_width(broken, 3, 64)));
    ck_assert(isinf(qdqi_pooled_half_width(silent, 3, 64)));
    ck_assert(isinf(qdqi_pooled_half_width(silent, 1, 64)));
    ck_assert(isinf(qdqi_share_half_width(0, 0, 1, 64)));
    ck_assert_double_eq(qdqi_share_half_width(0, 0, 40, 64), 0);
    ck_assert_double_eq(qdqi_share_half_width(3, 3, 64, 64), 0);
}

/* The half width of a share, by its definition: 8 ones of 32, of 64. */
UNIT_TEST(a_share_has_the_half_width_of_a_draw)
{
    const double deviation =
        sqrt(8.0 * (1 - 0.25) * (1 - 0.25) + 24 * 0.25 * 0.25) / sqrt(31);
    ck_assert_double_eq_tol(qdqi_share_half_width(8, 8, 32, 64),
                            2.5 * deviation / sqrt(32) * sqrt(0.5), 1e-12);
}

/* With k + 1 bad ones among all, few draws settle that at most k are, and the other way round. */
UNIT_LOOP(few_draws_mislead_about_rare_samples, 6)
{
    static const struct {
        int64_t of, most;
    } cases[] = {{64, 3}, {128, 6}, {100, 5}, {64, 1}, {128, 1}, {48, 2}};
    const int64_t of = cases[_i].of, most = cases[_i].most;
    const int64_t first = qdqi_sequential_first(of, most);
    struct qdqi_sample rows[MOST];
    state = 7 + (uint64_t)_i;
    for (int64_t all = most; all <= most + 1; all++) {
        int wrong = 0;
        for (int64_t i = 0; i < of; i++)
            rows[i] = (struct qdqi_sample){1, i < all};
        for (int trial = 0; trial < TRIALS; trial++) {
            int64_t bad = 0;
            shuffle(rows, (size_t)of);
            for (int64_t n = 0; n < of; n++) {
                const bool looks = n >= first && (n - first) % ((of + 7) / 8) == 0;
                if (looks && qdqi_side_is_settled(n, bad, of, most)) {
                    wrong += (bad > most * n / of) != (all > most);
                    break;
                }
                bad += rows[n].noise > 0;
            }
        }
        ck_assert_int_le(wrong * 100, 12 * TRIALS); /* of all looks together */
    }
}

UNIT_TEST(the_first_look_is_the_first_that_can_settle)
{
    ck_assert_int_eq(qdqi_sequential_first(16, 0), 16);
    ck_assert_int_eq(qdqi_sequential_first(32, 1), 32);
    ck_assert_int_eq(qdqi_sequential_first(64, 3), 32);
    ck_assert_int_eq(qdqi_sequential_first(128, 6), 42);
    ck_assert_int_eq(qdqi_sequential_first(64, 1), 48);
    ck_assert_int_eq(qdqi_sequential_first(128, 1), 97);
    ck_assert(qdqi_side_is_settled(64, 0, 64, 3));
    ck_assert(qdqi_side_is_settled(40, 4, 64, 3));
    ck_assert(!qdqi_side_is_settled(32, 1, 64, 3));
    ck_assert(!qdqi_side_is_settled(41, 0, 128, 6));
}

/* Each sample has one turn, the turns have the sizes that were asked for, and the order is no order
   of the data. */
UNIT_TEST(a_draw_takes_each_sample_once)
{
    int64_t turn[MOST], again[MOST], counts[MOST] = {0};
    const int64_t turns = qdqi_sequential_draw(MOST, 45, 16, turn);
    ck_assert_int_eq(turns, 1 + (MOST - 45 + 15) / 16);
    ck_assert_int_eq(qdqi_sequential_draw(MOST, 45, 16, again), turns);
    ck_assert_mem_eq(turn, again, sizeof turn);
    int64_t early = 0;
    for (int64_t i = 0; i < MOST; i++) {
        counts[turn[i]]++;
        early += turn[i] == 0 && i < MOST / 2;
    }
    ck_assert_int_eq(counts[0], 45);
    for (int64_t i = 1; i < turns - 1; i++)
        ck_assert_int_eq(counts[i], 16);
    ck_assert_int_eq(counts[turns - 1], (MOST - 45) % 16 ? (MOST - 45) % 16 : 16);
    ck_assert_int_gt(early, 12);
    ck_assert_int_lt(early, 33);
}

UNIT_SUITE("sequential")
