/* SPDX-License-Identifier: Apache-2.0 */
/* The search by patterns against simulated runtimes: graphs with planted fusions, whose best placement is known by trying
   all, and measurements with noise that now and then lie or fail. */
#include "config.h"

#include "stages/frontier/pattern_search.h"
#include "arena.h"

#include <math.h>
#include <string.h>

enum { GRAPHS = 12, MOST = 18, MOST_FUSIONS = 12, MEASUREMENTS = 200 };

static const double noise = 0.03;

/* Patterns that are one kernel where all of them are in one form, and save time then. */
struct fusion {
    size_t members[4], n;
    bool in_float;
    double saves;
};

struct simulated {
    size_t n, n_pairs, n_fusions;
    double shares[MOST], float_ms[MOST], integer_ms[MOST], all_float_ms, rest_ms;
    struct qdqi_pattern_pair pairs[3 * MOST];
    double converts[3 * MOST];
    struct fusion fusions[MOST_FUSIONS];
    int crashing; /* the pattern that crashes in integers; -1: none */
    bool lies;    /* now and then, or fails */
    bool all_fail;
    size_t n_calls, ends_after;
    uint64_t state;
    /* what was asked and answered, which is answered again */
    struct {
        bool is_float[MOST];
        double ratio;
    } journal[MEASUREMENTS];
    size_t n_journal;
};

static double
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static double
next_normal(uint64_t *state)
{
    return sqrt(-2 * log(1 - next_random(state))) *
           cos(6.283185307179586 * next_random(state));
}

/* A chain of patterns with residual connections. The work of patterns differs by more than ten times; some
   are slower in integers. */
static void
plant(struct simulated *m, int number)
{
    uint64_t s = 0x9e3779b97f4a7c15U * (uint64_t)(number + 1);
    double sum = 0;
    *m = (struct simulated){.n = 6 + (size_t)number, .crashing = -1, .state = s ^ 77};
    for (size_t i = 0; i < m->n; i++) {
        const double work = 0.1 + 2 * next_random(&s) * next_random(&s);
        m->float_ms[i] = work;
        m->integer_ms[i] = work * (0.35 + 1.3 * next_random(&s));
        m->shares[i] = work * (0.7 + 0.6 * next_random(&s));
        sum += m->shares[i];
    }
    for (size_t i = 0; i < m->n; i++)
        m->shares[i] /= sum;
    for (size_t i = 0; i + 1 < m->n; i++)
        for (size_t k = i + 1; k < m->n && k <= i + 3; k++)
            if (k == i + 1 || next_random(&s) < 0.2) {
                m->converts[m->n_pairs] = 0.02 + 0.12 * next_random(&s);
                m->pairs[m->n_pairs++] = (struct qdqi_pattern_pair){i, k};
            }
    m->n_fusions = m->n / 2;
    for (size_t i = 0; i < m->n_fusions; i++) {
        struct fusion *f = &m->fusions[i];
        const size_t first = (size_t)(next_random(&s) * (double)(m->n - 3));
        f->n = 2 + (size_t)(next_random(&s) * 3);
        for (size_t k = 0; k < f->n; k++)
            f->members[k] = first + k;
        f->in_float = next_random(&s) < 0.4;
        f->saves = 0.1 + 0.4 * next_random(&s);
    }
    m->rest_ms = 0.2 + next_random(&s);
}

static double
time_of(const struct simulated *m, const bool *is_float)
{
    double ms = m->rest_ms, saved = 0;
    for (size_t i = 0; i < m->n; i++)
        ms += is_float[i] ? m->float_ms[i] : m->integer_ms[i];
    for (size_t i = 0; i < m->n_pairs; i++)
        ms += is_float[m->pairs[i].a] != is_float[m->pairs[i].b] ? m->converts[i] : 0;
    for (size_t i = 0; i < m->n_fusions; i++) {
        const struct fusion *f = &m->fusions[i];
        bool fused = true;
        double least = INFINITY;
        for (size_t k = 0; k < f->n; k++) {
            const size_t at = f->members[k];
            fused = fused && is_float[at] == f->in_float;
            least = fmin(least, f->in_float ? m->float_ms[at] : m->integer_ms[at]);
        }
        saved += fused ? fmin(f->saves, 0.8 * least) : 0;
    }
    return fmax(ms - saved, 0.3 * ms);
}

static double
float_time_of(const struct simulated *m)
{
    bool all[MOST];
    for (size_t i = 0; i < MOST; i++)
        all[i] = true;
    return time_of(m, all);
}

static bool
never(void *arg)
{
    (void)arg;
    return false;
}

/* Measures anew. */
static double
measure_anew(struct simulated *m, const bool *is_float)
{
    static const double lies[] = {-1, NAN, 0, 1e9, 1e-9, INFINITY};
    const double ratio = time_of(m, is_float) / m->all_float_ms *
                         fmax(1 + noise * next_normal(&m->state), 0.5);
    if (m->all_fail || (m->crashing >= 0 && !is_float[m->crashing]))
        return NAN;
    if (!m->lies || next_random(&m->state) >= 0.08)
        return ratio;
    const size_t which = (size_t)(next_random(&m->state) * 8);
    return which < 6 ? lies[which] : which == 6 ? ratio * 0.3 : ratio * 3;
}

static enum qdq_code
measure(void *arg, const bool *is_float, double *ret, struct qdq_error *err)
{
    struct simulated *m = arg;
    const size_t i = m->n_calls++;
    if (m->ends_after && m->n_calls > m->ends_after)
        return qdq_error_set(err, QDQ_CANCELLED, QDQ_AT_NOTHING, NULL, "enough");
    ck_assert_uint_lt(i, MEASUREMENTS);
    if (i < m->n_journal) {
        ck_assert(!memcmp(m->journal[i].is_float, is_float, m->n));
        *ret = m->journal[i].ratio;
        return QDQ_OK;
    }
    *ret = measure_anew(m, is_float);
    memcpy(m->journal[i].is_float, is_float, m->n);
    m->journal[i].ratio = *ret;
    m->n_journal++;
    return QDQ_OK;
}

static double
least_of_all(const struct simulated *m)
{
    bool is_float[MOST] = {false};
    double least = INFINITY;
    for (size_t k = 0; k < (size_t)1 << m->n; k++) {
        for (size_t i = 0; i < m->n; i++)
            is_float[i] = k >> i & 1;
        if (m->crashing < 0 || is_float[m->crashing])
            least = fmin(least, time_of(m, is_float));
    }
    return least;
}

static struct qdqi_pattern_search
search_of(struct simulated *m)
{
    return (struct qdqi_pattern_search){.n = m->n,
                                        .shares = m->shares,
                                        .n_pairs = m->n_pairs,
                                        .pairs = m->pairs,
                                        .most = MEASUREMENTS,
                                        .measure = measure,
                                        .is_time_up = never,
                                        .arg = m,
                                        .arena = arena};
}

/* Searches in a planted graph. Returns the time of the best one that is found. */
static double
search(struct simulated *m, struct qdqi_pattern_search *s)
{
    struct qdq_error err = {0};
    m->all_float_ms = float_time_of(m);
    *s = search_of(m);
    ck_assert_int_eq(qdqi_pattern_search(s, &err), QDQ_OK);
    ck_assert_uint_le(s->n_measured, MEASUREMENTS);
    ck_assert_uint_eq(s->n_measured, m->n_calls);
    return time_of(m, s->tried[0].is_float);
}

/* Measurements have noise, lies and failures, or a pattern that crashes, too. */
enum mode { NOISE, LIES, CRASHES, N_MODES };

static void
plant_with(struct simulated *m, int graph, enum mode mode)
{
    plant(m, graph);
    m->lies = mode != NOISE;
    m->crashing = mode == CRASHES ? graph % (int)m->n : -1;
}

UNIT_LOOP(test_planted_graph, GRAPHS)
{
    for (enum mode mode = NOISE; mode < N_MODES; mode++) {
        struct simulated m;
        struct qdqi_pattern_search s;
        plant_with(&m, _i, mode);
        const double found = search(&m, &s);
        ck_assert_msg(least_of_all(&m) >= 0.95 * found,
                      "graph %d, mode %d: %g of the optimum", _i, (int)mode,
                      least_of_all(&m) / found);
        ck_assert(mode != CRASHES || s.tried[0].is_float[m.crashing]);
    }
}

/* The same measurements lead through the same placements, however often the search begins again. */
UNIT_TEST(test_begins_again)
{
    struct simulated m;
    struct qdqi_pattern_search s;
    uint64_t ends = 4711;
    plant_with(&m, 11, LIES);
    m.all_float_ms = float_time_of(&m);
    struct qdq_error err = {0};
    for (int i = 0; i < 50; i++) {
        m.n_calls = 0;
        m.ends_after = m.n_journal + 1 + (size_t)(3 * next_random(&ends));
        s = search_of(&m);
        if (!qdqi_pattern_search(&s, &err))
            break;
    }
    m.ends_after = m.n_calls = 0;
    const double found = search(&m, &s);
    ck_assert_uint_gt(m.n_calls, 50);
    ck_assert_double_ge(least_of_all(&m), 0.95 * found);
}

UNIT_TEST(test_nothing_can_be_measured)
{
    struct simulated m;
    struct qdqi_pattern_search s;
    plant(&m, 3);
    m.all_fail = true;
    search(&m, &s);
    ck_assert_uint_lt(s.n_measured, 50);
    for (size_t i = 0; i < s.n_tried; i++)
        ck_assert_int_eq(s.tried[i].n, 0);
}

UNIT_TEST(test_errors_end_the_search)
{
    struct simulated m;
    struct qdqi_pattern_search s = {0};
    struct qdq_error err = {0};
    plant(&m, 3);
    m.all_float_ms = 1;
    m.ends_after = 5;
    s = search_of(&m);
    ck_assert_int_eq(qdqi_pattern_search(&s, &err), QDQ_CANCELLED);
    ck_assert_uint_eq(m.n_calls, 6);
}

/* Estimates tell what a pattern takes longer in float. */
UNIT_TEST(test_estimates)
{
    struct simulated m;
    struct qdqi_pattern_search s;
    plant(&m, 5);
    m.n_fusions = 0;
    search(&m, &s);
    double sum = 0;
    for (size_t i = 0; i <= m.n; i++)
        sum += s.estimates[i];
    ck_assert_double_eq_tol(sum, 1, 0.01); /* the float model */
    ck_assert_double_eq_tol(s.tried[0].estimate,
                            time_of(&m, s.tried[0].is_float) / m.all_float_ms, 0.03);
}

UNIT_SUITE("pattern_search", ARENA)
