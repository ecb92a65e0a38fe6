/* SPDX-License-Identifier: Apache-2.0 */
/* The signs of data that cannot be right, in made figures; and the interval of a task. */
#include "config.h"

#include "stages/plausible/checks.h"
#include "stages/task/resampling.h"
#include "unit.h"

#include <math.h>
#include <string.h>

enum { CLASSES = 45, ELEMENTS = 2 * 8 * 8 * 8 };

/* Figures of one input, one output of classes and one activation of eight channels. */
struct made {
    struct qdqi_arena *arena;
    struct qdqi_input_figures input;
    struct qdqi_answer_figures answer;
    struct qdqi_data_figures all;
};

static void
make(struct made *m, bool lists_classes)
{
    m->arena = qdqi_arena_new();
    m->input =
        (struct qdqi_input_figures){.name = "x", .low = INFINITY, .high = -INFINITY};
    m->answer =
        (struct qdqi_answer_figures){.name = "y", .lists_classes = lists_classes};
    m->all = (struct qdqi_data_figures){.arena = m->arena,
                                        .n_inputs = 1,
                                        .n_answers = 1,
                                        .n_probes = 1,
                                        .inputs = &m->input,
                                        .answers = &m->answer};
    m->all.probes[0].probe = (struct qdqi_probe){"relu", 0, INFINITY};
}

/* One sample: an input of four axes, the class that is the answer, and how many of eight channels
   are dead. */
struct sample {
    float x[ELEMENTS / 2];
    size_t class;
    size_t dead;
    bool is_vector; /* the input has two axes */
};

static void
add(struct made *m, const struct sample *s)
{
    float y[CLASSES] = {0}, a[8 * 4];
    const int64_t shape[] = {1, 8, 8, 8}, vector[] = {1, ELEMENTS / 2},
                  row[] = {1, CLASSES}, map[] = {1, 8, 2, 2};
    const struct qdqi_input input = {
        "x",  QDQI_FLOAT32, s->is_vector ? 2 : 4, s->is_vector ? vector : shape,
        s->x, sizeof s->x};
    struct qdq_error err = {0};
    y[s->class] = 3;
    for (size_t i = 0; i < 32; i++)
        a[i] = i / 4 < s->dead ? 0 : 1;
    const struct qdqi_output outputs[] = {{QDQI_FLOAT32, 2, row, CLASSES, y},
                                          {QDQI_FLOAT32, 4, map, 32, a}};
    ck_assert_int_eq(qdqi_data_figures_add(&m->all, 1, &input, outputs, &err), QDQ_OK);
}

/* Returns the text of the only finding, or NULL. */
static const char *
only_finding(const struct made *m, struct qdqi_finding *ret)
{
    struct qdqi_finding finding;
    size_t n = 0;
    for (size_t i = 0; i < qdqi_data_checks(); i++)
        if (qdqi_data_check(&m->all, i, &finding)) {
            *ret = finding;
            n++;
        }
    ck_assert_msg(n <= 1, "%zu findings, the last one: %s", n, ret->text);
    return n ? ret->text : NULL;
}

/* Fills an image whose channels, the axis that is the last one or the first one, are far
   apart. */
static void
draw(struct sample *s, size_t number, bool channels_last)
{
    for (size_t i = 0; i < ELEMENTS / 2; i++) {
        const size_t axis[] = {i / 64, i / 8 % 8, i % 8};
        const size_t channel = channels_last ? axis[2] : axis[0];
        const size_t place = channels_last ? axis[0] + axis[1] : axis[1] + axis[2];
        s->x[i] = (float)((channel * 37 + number) % 8) + 0.05F * (float)place;
    }
    s->class = number % CLASSES;
    s->dead = 0;
    s->is_vector = false;
}

static void
leave(struct sample *s, size_t number)
{
    (void)s;
    (void)number;
}

static void
repeat(struct sample *s, size_t number)
{
    draw(s, number / 4, false);
    s->class = number % CLASSES;
}

static void
kill(struct sample *s, size_t number)
{
    (void)number;
    s->dead = 5;
}

static void
answer_one(struct sample *s, size_t number)
{
    s->class = number % 10 < 8 ? 3 : number % CLASSES;
}

static void
answer_one_to_vectors(struct sample *s, size_t number)
{
    answer_one(s, number);
    s->is_vector = true;
}

static void
turn(struct sample *s, size_t number)
{
    draw(s, number, true);
    s->x[0] += (float)number;
}

static const struct fault {
    const char *text; /* NULL: nothing is found */
    void (*spoil)(struct sample *s, size_t number);
} faults[] = {
    {NULL, leave},
    {"equal to earlier ones", repeat},
    {"5 dead and 0 saturated channels of 8", kill},
    {"of 45 classes in the first 40 samples", answer_one},
    {"check the range and the layout of the data, and whether", answer_one},
    {"check the range of the data, and whether", answer_one_to_vectors},
    {"NHWC", turn},
};

UNIT_ROWS(finding, faults)
{
    struct made m;
    struct sample s;
    struct qdqi_finding ret = {0};
    make(&m, true);
    for (size_t i = 0; i < 40; i++) {
        draw(&s, i, false);
        s.x[0] += (float)i; /* no two are equal */
        faults[_i].spoil(&s, i);
        add(&m, &s);
    }
    const char *text = only_finding(&m, &ret);
    if (faults[_i].text)
        ck_assert_msg(text && strstr(text, faults[_i].text), "%s: %s", faults[_i].text,
                      text ? text : "nothing");
    else
        ck_assert_msg(!text, "%s", text);
    qdqi_arena_free(&m.arena);
}

/* --- the interval ----------------------------------------------------------- */

UNIT_TEST(interval_of_equal_figures)
{
    struct qdqi_fraction same[50];
    for (size_t i = 0; i < 50; i++)
        same[i] = (struct qdqi_fraction){i % 3 == 0, 1};
    const struct qdqi_interval interval = qdqi_bootstrap(same, same, 50);
    ck_assert(interval.low == 0 && interval.high == 0);
    ck_assert(isnan(qdqi_bootstrap(same, same, 1).low));
}

/* 1,000 samples of which 100 are lost: the standard error of the share is 0.0095, and 1.96 of them
   lie on each side of 0.1. */
UNIT_TEST(interval_of_a_drop)
{
    static struct qdqi_fraction before[1000], after[1000];
    for (size_t i = 0; i < 1000; i++) {
        before[i] = (struct qdqi_fraction){1, 1};
        after[i] = (struct qdqi_fraction){i % 10 != 0, 1};
    }
    const struct qdqi_interval interval = qdqi_bootstrap(before, after, 1000);
    ck_assert_double_eq_tol(interval.low, 0.1 - 1.96 * 0.0095, 0.003);
    ck_assert_double_eq_tol(interval.high, 0.1 + 1.96 * 0.0095, 0.003);
    ck_assert_double_eq_tol(qdqi_quotient(after, 1000), 0.9, 1e-12);
}

/* The figures of a mean without each group of five samples have the standard error of that mean. */
UNIT_TEST(interval_by_groups)
{
    static struct qdqi_fraction samples[100], first[QDQI_TASK_GROUPS],
        second[QDQI_TASK_GROUPS];
    unsigned char groups[100];
    size_t of_group[QDQI_TASK_GROUPS] = {0};
    qdqi_draw_groups(groups, 100, QDQI_TASK_GROUPS);
    for (size_t i = 0; i < 100; i++) {
        samples[i].numerator = i % 10 == 0;
        of_group[groups[i]]++;
        for (size_t g = 0; g < QDQI_TASK_GROUPS; g++)
            if (g != groups[i])
                first[g].numerator += samples[i].numerator;
    }
    for (size_t g = 0; g < QDQI_TASK_GROUPS; g++) {
        ck_assert_uint_eq(of_group[g], 5);
        first[g].denominator = 95;
        second[g].denominator = 1;
    }
    const struct qdqi_interval interval = qdqi_jackknife(0.1, first, second);
    ck_assert_double_eq_tol(interval.high - 0.1, 2.093 * 0.03, 0.02);
    ck_assert_double_eq_tol(0.1 - interval.low, interval.high - 0.1, 1e-12);
    second[3].denominator = 0;
    ck_assert(isnan(qdqi_jackknife(0.1, first, second).low));
}

UNIT_SUITE("data_checks")
