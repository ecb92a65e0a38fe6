/* SPDX-License-Identifier: Apache-2.0 */
/* With scales that keep sums of two products in 16 bits, no two neighbours saturate for any
   activation, and the scales are no wider than that asks for. */
#include "config.h"

#include "graph/weights/pairs.h"
#include "graph/weights/scales.h"
#include "unit.h"
#include "weights.h"

#include <math.h>
#include <string.h>

enum { MOST = 4096, RANK = 4, MOST_SUM = 128 };

/* A weight: its shape, the axes of its outputs (-1: one scale) and of its inputs. */
struct shape {
    const char *name;
    int64_t dims[RANK];
    size_t rank;
    int outputs, inputs;
    bool is_turned; /* it lies in memory with its first two axes exchanged */
};

static const struct shape shapes[] = {
    {"Conv", {8, 16, 3, 3}, 4, 0, 1, false},
    {"Conv of few channels", {8, 3, 5, 5}, 4, 0, 1, false},
    {"Conv of one channel", {8, 1, 5, 5}, 4, 0, 1, false},
    {"Conv with one scale", {8, 6, 3, 3}, 4, -1, 1, false},
    {"turned Conv", {8, 16, 3, 3}, 4, 0, 1, true},
    {"ConvTranspose", {16, 8, 2, 2}, 4, 1, 0, false},
    {"MatMul", {31, 100}, 2, 1, 0, false},
    {"MatMul of a batch", {3, 20, 20}, 3, 2, 1, false},
    {"Gemm with transB", {20, 30}, 2, 0, 1, false},
    {"turned MatMul", {30, 20}, 2, 1, 0, true},
};

static uint64_t state;

static float
draw(void)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        sum += (double)(state >> 40) / (double)(1 << 24) - 0.5;
    }
    return (float)sum;
}

static size_t
size_of(const struct shape *s)
{
    size_t n = 1;
    for (size_t i = 0; i < s->rank; i++)
        n *= (size_t)s->dims[i];
    return n;
}

/* Sets the strides in memory, and those in C order. */
static void
make_strides(const struct shape *s, int64_t *memory, int64_t *order)
{
    int64_t dims[RANK];
    memcpy(dims, s->dims, sizeof dims);
    if (s->is_turned) {
        dims[0] = s->dims[1];
        dims[1] = s->dims[0];
    }
    memory[s->rank - 1] = order[s->rank - 1] = 1;
    for (size_t i = s->rank - 1; i > 0; i--) {
        memory[i - 1] = memory[i] * dims[i];
        order[i - 1] = order[i] * s->dims[i];
    }
    if (s->is_turned) {
        const int64_t first = memory[0];
        memory[0] = memory[1];
        memory[1] = first;
    }
}

/* Returns the place of element i of the list of the inputs of an output: for each element of
   the kernel its input channels. */
static size_t
place(const struct shape *s, const int64_t *strides, size_t output, size_t i)
{
    size_t n = (size_t)s->dims[s->inputs];
    size_t at = i % n * (size_t)strides[s->inputs];
    i /= n;
    for (int axis = (int)s->rank - 1; axis >= 0; axis--) {
        n = (size_t)s->dims[axis];
        if (axis == s->inputs || axis == s->outputs)
            continue;
        at += i % n * (size_t)strides[axis];
        i /= n;
    }
    return at + (s->outputs < 0 ? 0 : output * (size_t)strides[s->outputs]);
}

/* Returns the largest sum of two neighbours of one output: of the elements 2k and 2k + 1,
   counted through the kernel as ONNX Runtime does, or in each of its elements as oneDNN
   does. */
static int
largest_sum(const struct shape *s, const int64_t *order, const int16_t *integers,
            size_t output)
{
    const size_t outputs = s->outputs < 0 ? 1 : (size_t)s->dims[s->outputs];
    const size_t n = size_of(s) / outputs, inputs = (size_t)s->dims[s->inputs];
    int most = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        const int a = integers[place(s, order, output, i)];
        const int b = integers[place(s, order, output, i + 1)];
        const bool in_element = i % inputs % 2 == 0 && i % inputs + 1 < inputs;
        if ((i % 2 == 0 || in_element) && (a > 0) == (b > 0) && abs(a) + abs(b) > most)
            most = abs(a) + abs(b);
    }
    return most;
}

struct made {
    float x[MOST];
    int16_t integers[MOST]; /* in C order */
    int64_t memory[RANK], order[RANK];
    struct qdqi_constant w;
    struct qdqi_params p;
    struct qdqi_arena *arena;
};

static void
make(const struct shape *s, struct made *m)
{
    *m = (struct made){.arena = qdqi_arena_new()};
    const size_t n = size_of(s);
    ck_assert_uint_le(n, MOST);
    for (size_t i = 0; i < n; i++)
        m->x[i] = draw();
    make_strides(s, m->memory, m->order);
    m->w = (struct qdqi_constant){.dtype = QDQI_FLOAT32,
                                  .rank = s->rank,
                                  .dims = s->dims,
                                  .n = n,
                                  .bytes = (const uint8_t *)m->x,
                                  .strides = s->is_turned ? m->memory : NULL};
    m->p = (struct qdqi_params){.format = QDQI_TO_INT8, .axis = s->outputs};
    ck_assert_int_eq(weight_params(&m->w, "w", m->arena, &m->p, NULL), 0);
}

/* Rounds to the nearest integers. */
static void
quantize(const struct shape *s, struct made *m)
{
    const size_t each = m->w.n / m->p.n;
    for (size_t o = 0; o < m->p.n; o++)
        for (size_t i = 0; i < each; i++) {
            const float x = m->x[place(s, m->memory, o, i)];
            m->integers[place(s, m->order, o, i)] = (int16_t)lrintf(x / m->p.scales[o]);
        }
}

static int
largest(const struct shape *s, const struct made *m, size_t output)
{
    int most = 0;
    for (size_t i = 0; i < m->w.n / m->p.n; i++) {
        const int x = abs(m->integers[place(s, m->order, output, i)]);
        most = x > most ? x : most;
    }
    return most;
}

UNIT_ROWS(no_sum_saturates, shapes)
{
    const struct shape *s = &shapes[_i];
    static struct made m;
    bool any_wider = false;
    state = (uint64_t)_i;
    make(s, &m);
    float before[MOST];
    memcpy(before, m.p.scales, m.p.n * sizeof *before);
    qdqi_pairs_widen(&m.w, s->inputs, &m.p);
    quantize(s, &m);
    for (size_t o = 0; o < m.p.n; o++) {
        const int sum = largest_sum(s, m.order, m.integers, o);
        ck_assert_msg(sum <= MOST_SUM, "%s: %d", s->name, sum);
        ck_assert_msg(m.p.scales[o] <= before[o] * 2, "%s", s->name);
        if (m.p.scales[o] == before[o])
            ck_assert_int_eq(largest(s, &m, o), 127);
        any_wider |= m.p.scales[o] > before[o];
        /* An even number of inputs has the same neighbours in all kernels. */
        if (m.p.scales[o] > before[o] && s->dims[s->inputs] % 2 == 0)
            ck_assert_msg(sum >= MOST_SUM - 2, "%s: %d", s->name, sum);
    }
    ck_assert_msg(any_wider, "%s", s->name);
    qdqi_arena_free(&m.arena);
}

UNIT_ROWS(other_integers_are_made_to_fit, shapes)
{
    const struct shape *s = &shapes[_i];
    static struct made m, fitted;
    size_t changed = 0;
    state = (uint64_t)_i + 100;
    make(s, &m);
    quantize(s, &m);
    fitted = m;
    qdqi_pairs_fit(&m.w, s->inputs, s->outputs, fitted.integers);
    for (size_t o = 0; o < m.p.n; o++)
        ck_assert_msg(largest_sum(s, m.order, fitted.integers, o) <= MOST_SUM, "%s",
                      s->name);
    for (size_t i = 0; i < m.w.n; i++) {
        changed += fitted.integers[i] != m.integers[i];
        ck_assert_int_le(abs(fitted.integers[i]), abs(m.integers[i]));
    }
    ck_assert_msg(changed > 0 && changed < m.w.n / 4, "%s: %zu", s->name, changed);
    memcpy(m.integers, fitted.integers, sizeof m.integers);
    qdqi_pairs_fit(&m.w, s->inputs, s->outputs, fitted.integers);
    ck_assert_mem_eq(m.integers, fitted.integers, sizeof m.integers);
    qdqi_arena_free(&m.arena);
}

/* The file does not store its elements one by one, so its integers are at most 64. */
UNIT_TEST(a_weight_that_repeats_one_element_is_halved)
{
    const int64_t dims[] = {4, 6}, strides[] = {0, 0};
    const float x = -3;
    const struct qdqi_constant w = {QDQI_FLOAT32,        2,      dims, 24,
                                    (const uint8_t *)&x, strides};
    struct qdqi_params p = {.format = QDQI_TO_INT8, .axis = 0};
    struct qdqi_arena *arena = qdqi_arena_new();
    ck_assert_int_eq(weight_params(&w, "w", arena, &p, NULL), 0);
    qdqi_pairs_widen(&w, 1, &p);
    for (size_t i = 0; i < p.n; i++)
        ck_assert_int_eq((int)lrintf(x / p.scales[i]), -64);
    qdqi_arena_free(&arena);
}

UNIT_SUITE("pairs")
