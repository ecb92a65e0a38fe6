/* SPDX-License-Identifier: Apache-2.0 */
/* The slices of an output: found in the graph, or by the values, and which carry information. */
#include "config.h"

#include "builder.h"
#include "stages/evaluate/metrics.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct builder b;
static struct qdq_model *model;
static struct qdqi_arena *arena;
static struct qdq_error err;

static void
set_up(void)
{
    arena = qdqi_arena_new();
    builder_init(&b, 17);
    builder_input(&b, "p", QDQI_FLOAT32);
    builder_shape(&b, 3, (const int64_t[]){2, 4, 6});
    builder_input(&b, "q", QDQI_FLOAT32);
    builder_shape(&b, 3, (const int64_t[]){2, 8, 6});
    builder_ints_weight(&b, "first_axis", 1, (const int64_t[]){1});
    builder_ints_weight(&b, "rows", 2, (const int64_t[]){2, 72});
    builder_ints_weight(&b, "folded", 4, (const int64_t[]){2, 3, 4, 6});
    builder_ints_weight(&b, "pads", 6, (const int64_t[]){0, 2, 0, 0, 1, 0});
    builder_ints_weight(&b, "nought", 1, (const int64_t[]){0});
    builder_ints_weight(&b, "last", 1, (const int64_t[]){-1});
    builder_ints_weight(&b, "two", 1, (const int64_t[]){2});
    builder_ints_weight(&b, "ten", 1, (const int64_t[]){10});
    builder_ints_weight(&b, "order", 6, (const int64_t[]){5, 6, 0, 1, 7, 8});
}

static void
tear_down(void)
{
    qdq_model_free(&model);
    qdqi_arena_free(&arena);
    builder_fini(&b);
}

/* Writes the cuts of the output y as text: "axis/period: name begin, …". */
static void
print_cuts(char *to, size_t size)
{
    struct qdqi_cuts cuts;
    size_t n = 0;
    builder_output(&b, "y", QDQI_FLOAT32);
    ck_assert_msg(builder_open(&b, &model, &err) == QDQ_OK, "%s", err.text);
    ck_assert_int_eq(qdqi_output_cuts(model, 0, arena, &cuts, &err), QDQ_OK);
    to[0] = '\0';
    for (size_t i = 0; i < cuts.n; i++) {
        const struct qdqi_cut *cut = &cuts.cuts[i];
        n += (size_t)snprintf(to + n, size - n, "%s%zu/%lld:", i ? "; " : "", cut->axis,
                              (long long)cut->period);
        for (size_t k = 0; !cut->by_values && k < cut->n; k++)
            n += (size_t)snprintf(to + n, size - n, " %s %lld", cut->names[k],
                                  (long long)cut->begins[k]);
    }
}

static void
join(const char *inputs, const char *output, int64_t axis)
{
    builder_int(&b, builder_node(&b, "Concat", "join", inputs, output), "axis", axis);
}

static void
turn(const char *input, const char *output, const int64_t perm[3])
{
    builder_ints(&b, builder_node(&b, "Transpose", "turn", input, output), "perm", 3,
                 perm);
}

static void
concat(void)
{
    join("p,q", "y", 1);
}

static void
concat_of_concat(void)
{
    join("p,p", "a", 1);
    join("a,q", "y", 1);
}

static void
element_by_element(void)
{
    join("p,q", "a", 1);
    builder_node(&b, "Sigmoid", "s", "a", "y");
}

static void
transposed(void)
{
    join("p,q", "a", 1);
    turn("a", "y", (const int64_t[]){0, 2, 1});
}

static void
flattened(void)
{
    join("p,q", "a", 1);
    builder_node(&b, "Reshape", "r", "a,rows", "y");
}

static void
flattened_behind_a_turn(void)
{
    join("p,q", "a", 1);
    turn("a", "t", (const int64_t[]){0, 2, 1});
    builder_node(&b, "Reshape", "r", "t,rows", "y");
}

static void
folded(void)
{
    join("p,q", "a", 1);
    builder_node(&b, "Reshape", "r", "a,folded", "y");
}

static void
stacked(void)
{
    builder_node(&b, "Unsqueeze", "u", "p,first_axis", "up");
    builder_node(&b, "Unsqueeze", "v", "p,first_axis", "vp");
    join("up,vp", "y", 1);
}

static void
padded(void)
{
    join("p,q", "a", 1);
    builder_node(&b, "Pad", "pad", "a,pads", "y");
}

static void
sliced(void)
{
    join("p,q", "a", 1);
    builder_node(&b, "Slice", "s", "a,two,ten,first_axis", "y");
}

static void
gathered(void)
{
    join("p,q", "a", 1);
    builder_int(&b, builder_node(&b, "Gather", "g", "a,order", "y"), "axis", 1);
}

static void
join_sequence(const char *sequence, int64_t axis, int64_t new_axis)
{
    Onnx__NodeProto *node =
        builder_node(&b, "ConcatFromSequence", "join", sequence, "y");
    builder_int(&b, node, "axis", axis);
    builder_int(&b, node, "new_axis", new_axis);
}

static void
sequence(void)
{
    builder_node(&b, "SequenceConstruct", "s", "p,q", "parts");
    join_sequence("parts", -2, 0);
}

static void
sequence_of_inserts(void)
{
    builder_node(&b, "SequenceEmpty", "e", "", "none");
    builder_node(&b, "SequenceInsert", "s", "none,p", "one");
    builder_node(&b, "SequenceInsert", "t", "one,q,nought", "parts");
    join_sequence("parts", 1, 0);
}

static void
sequence_stacked(void)
{
    join("p,q", "a", 1);
    builder_node(&b, "Sigmoid", "g", "a", "c");
    builder_node(&b, "SequenceConstruct", "s", "a,c", "parts");
    join_sequence("parts", 1, 1);
}

static void
taken_from_a_sequence(void)
{
    join("p,q", "a", 1);
    builder_node(&b, "SequenceConstruct", "s", "q,a", "parts");
    builder_node(&b, "SequenceAt", "at", "parts,last", "y");
}

static void
inserted_anywhere(void)
{
    builder_node(&b, "SequenceConstruct", "s", "p", "one");
    builder_int(&b, builder_node(&b, "ReduceMax", "c", "p", "most"), "keepdims", 0);
    builder_int(&b, builder_node(&b, "Cast", "i", "most", "place"), "to", QDQI_INT64);
    builder_node(&b, "SequenceInsert", "t", "one,q,place", "parts");
    join_sequence("parts", 1, 0);
}

static void
of_nothing(void)
{
    builder_node(&b, "Relu", "r", "q", "y");
}

static const struct {
    const char *name;
    void (*make)(void);
    const char *cuts;
} graphs[] = {
    {"concat", concat, "1/12: p 0 q 4"},
    {"concat of concat", concat_of_concat, "1/16: p 0 p 4 q 8"},
    {"element by element", element_by_element, "1/12: p 0 q 4"},
    {"transposed", transposed, "2/12: p 0 q 4"},
    {"flattened", flattened, "1/72: p 0 q 24"},
    {"flattened behind a turn", flattened_behind_a_turn, "1/12: p 0 q 4"},
    {"folded", folded, "1/3: p 0 q 1"},
    {"stacked", stacked, "1/2: up 0 vp 1"},
    {"padded", padded, "1/15: pad 0 p 2 q 6 pad 14"},
    {"sliced", sliced, "1/8: p 0 q 2"},
    {"gathered", gathered, "1/6: q 0 p 2 q 4"},
    {"sequence", sequence, "1/12: p 0 q 4"},
    {"sequence of inserts", sequence_of_inserts, "1/12: q 0 p 8"},
    {"sequence stacked", sequence_stacked, "1/2: a 0 c 1; 2/12: p 0 q 4"},
    {"taken from a sequence", taken_from_a_sequence, "1/12: p 0 q 4"},
    {"inserted anywhere", inserted_anywhere, ""},
    {"of nothing", of_nothing, ""},
};

UNIT_ROWS(the_graph_tells_slices, graphs)
{
    char text[256];
    graphs[_i].make();
    print_cuts(text, sizeof text);
    ck_assert_msg(strcmp(text, graphs[_i].cuts) == 0, "%s: %s", graphs[_i].name, text);
}

/* A Concat may join any number of tensors. */
UNIT_TEST(many_parts_are_slices)
{
    char inputs[160] = "", text[1024];
    for (size_t i = 0; i < 159; i++)
        inputs[i] = i % 2 ? ',' : 'p';
    join(inputs, "y", 0);
    print_cuts(text, sizeof text);
    ck_assert_int_eq(strncmp(text, "0/160: p 0 p 2 ", 15), 0);
    ck_assert_ptr_nonnull(strstr(text, " p 158"));
}

UNIT_TEST(a_reader_tells_slices)
{
    static const int64_t parts[] = {3, 5};
    char text[256];
    builder_ints_weight(&b, "sizes", 2, parts);
    builder_node(&b, "Relu", "r", "q", "y");
    builder_int(&b, builder_node(&b, "Split", "s", "y,sizes", "one,other"), "axis", 1);
    print_cuts(text, sizeof text);
    ck_assert_str_eq(text, "1/8: one 0 other 3");
}

/* --- values ------------------------------------------------------------------- */

enum { SAMPLES = 32, CHANNELS = 12 };

/* The standard deviation of each channel, and of its noise; the SQNR of the worst slice. */
static const struct {
    const char *name;
    double scales[CHANNELS], noise;
    double worst_db; /* NAN: there are no slices */
} values[] = {
    {"scores of one magnitude", {1, 3, 2, 1, 4, 2, 1, 1, 3, 2, 1, 2}, 0.5, NAN},
    {"boxes and scores", {600, 500, 600, 550, 1, 1, 1, 1, 1, 1, 1, 1}, 5, -14},
    {"boxes and scores that live",
     {600, 500, 600, 550, 1, 1, 1, 1, 1, 1, 1, 1},
     .1,
     20},
    {"magnitudes of single channels",
     {1, 100, 2, 50, 1, 200, 1, 30, 4, 90, 1, 300},
     0.5,
     NAN},
    {"one small channel among scores", {2, 3, 2, 2, .1, 2, 3, 2, 2, 3, 2, 2}, 0.1, -1},
    {"a dead channel among features", {2, 3, 2, 2, 1e-6, 2, 3, 2, 2, 3, 2, 2}, 0.1, 27},
    {"a constant channel beside scores",
     {2, 3, 2, 2, 0, 2, 3, 2, 2, 3, 2, 2},
     0.1,
     NAN},
};

static double
wave(int i, int k)
{
    return sin(i * 12.9898 + k * 78.233) * sqrt(2);
}

UNIT_ROWS(the_values_tell_slices, values)
{
    static float f[SAMPLES * CHANNELS], q[SAMPLES * CHANNELS];
    struct qdqi_cuts cuts = {
        1, {{.axis = 1, .period = CHANNELS, .by_values = true, .n = CHANNELS}}};
    struct qdqi_slice_sums sums;
    const int64_t shape[] = {SAMPLES, CHANNELS};
    ck_assert_int_eq(qdqi_slice_sums_init(&sums, &cuts, arena, &err), QDQ_OK);
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < CHANNELS; k++) {
            const double v = values[_i].scales[k] * wave(i, k);
            f[i * CHANNELS + k] = (float)v;
            q[i * CHANNELS + k] = (float)(v + values[_i].noise * wave(i + 7, k + 5));
        }
    qdqi_slice_sums_add(&sums, f, q, shape, 2, SAMPLES);
    const double db = qdqi_slice_sums_worst(&sums);
    if (isnan(values[_i].worst_db))
        ck_assert_msg(isnan(db), "%s: %g", values[_i].name, db);
    else
        ck_assert_msg(fabs(db - values[_i].worst_db) < 2, "%s: %g", values[_i].name,
                      db);
}

/* A slice that has become a constant has a good SQNR about zero, and none about its mean. One
   that is a constant in float, or noise beside the others, is left out, and the report says so. */
UNIT_TEST(slices_that_carry_information)
{
    enum { N = 64 };
    static float f[4 * N], q[4 * N];
    int64_t begins[] = {0, 1, 2, 3};
    const char *names[] = {"boxes", "scores", "constant", "noise"};
    struct qdqi_cuts cuts = {
        1, {{.axis = 0, .period = 4, .n = 4, .begins = begins, .names = names}}};
    struct qdqi_slice_sums sums;
    const struct qdq_slice_report *rows;
    size_t n;
    for (int i = 0; i < N; i++) {
        f[i] = (float)(300 + 100 * wave(i, 1));
        q[i] = f[i] + (float)wave(i, 2);
        f[N + i] = (float)(0.5 + 0.01 * wave(i, 3));
        q[N + i] = 0.5F;
        f[2 * N + i] = q[2 * N + i] = 0.125F;
        f[3 * N + i] = (float)(1e-7 * wave(i, 4));
        q[3 * N + i] = 0;
    }
    ck_assert_int_eq(qdqi_slice_sums_init(&sums, &cuts, arena, &err), QDQ_OK);
    qdqi_slice_sums_add(&sums, f, q, (const int64_t[]){4, N}, 2, 1);
    ck_assert_int_eq(qdqi_slice_sums_report(&sums, arena, &rows, &n, &err), QDQ_OK);
    ck_assert_uint_eq(n, 4);
    ck_assert_double_eq_tol(rows[0].sqnr_db, 40, 1);
    ck_assert_double_eq_tol(rows[1].sqnr_db, 0, 0.5);
    ck_assert_double_eq_tol(rows[0].share, 1, 1e-4);
    ck_assert_str_eq(rows[2].left_out, "constant");
    ck_assert_str_eq(rows[3].left_out, "noise");
    ck_assert_ptr_null(rows[1].left_out);
    ck_assert(rows[1].begin == 1 && rows[1].end == 2);
    ck_assert_double_eq_tol(qdqi_slice_sums_worst(&sums), 0, 0.5);
}

/* --- samples ------------------------------------------------------------------- */

/* Ranks and levels as sums of binomial coefficients give them:
   sum(j <= n / 20) C(j + r - 1, r - 1) C(2 n - j - r, n - r) / C(2 n, n). */
static const struct {
    size_t n, rank;
    double level;
} ranks[] = {
    {1, 1, 0.5},
    {16, 1, 0.5},
    {32, 1, 0.7540},
    {64, 1, 0.9404},
    {79, 1, 0.9399},
    {80, 1, 0.9707},
    {119, 1, 0.9854},
    {120, 2, 0.9671},
    {140, 2, 0.9820},
    {192, 4, 0.9566},
    {256, 6, 0.9548},
    {500, 15, 0.9627},
    {100000, 4841, 0.9509},
};

UNIT_ROWS(ranks_are_those_of_the_sums, ranks)
{
    double level;
    ck_assert_uint_eq(qdqi_tolerance_rank(ranks[_i].n, &level), ranks[_i].rank);
    ck_assert(level >= 0.95 || ranks[_i].n < 80);
    if (!isnan(ranks[_i].level))
        ck_assert_double_eq_tol(level, ranks[_i].level, 1e-3);
}

UNIT_TEST(a_few_samples_carry_the_noise)
{
    struct qdqi_samples s = {.arena = arena};
    struct qdq_sample_report r;
    for (int i = 0; i < 100; i++)
        qdqi_samples_add(&s, 1, i < 10 ? 0.1 : 1e-4);
    qdqi_samples_add(&s, 0, 1e-5); /* silence counts as a hundredth of the mean */
    qdqi_samples_finish(&s, &r);
    ck_assert_int_eq(r.n, 101);
    ck_assert_double_eq_tol(r.median_db, 40, 1e-9);
    ck_assert_double_eq_tol(r.p5_db, 10, 1e-9);
    ck_assert_double_eq_tol(r.worst_db, 10, 1e-9);
    ck_assert_double_eq_tol(r.confidence_db, 10, 1e-9);
}

UNIT_SUITE("engine/output_slices", .setup = set_up, .teardown = tear_down)
