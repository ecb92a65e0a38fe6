/* SPDX-License-Identifier: Apache-2.0 */
/* The gates of spec.accept: which outputs they concern, and which results miss them. */
#include "config.h"

#include "plan/gates/gates.h"
#include "plan/gates/verdict.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static const struct qdq_value values[] = {
    {"y", "float32", false, 0, NULL},      {"one/of~two", "float32", false, 0, NULL},
    {"index", "int64", false, 0, NULL},    {"half", "float16", false, 0, NULL},
    {"double", "float64", false, 0, NULL}, {"brain", "bfloat16", false, 0, NULL},
};
static const struct qdq_model_info model = {.n_outputs = 6, .outputs = values};

/* The figures of an output that is not divided, and whose samples are not known. */
#define NO_SLICES .worst_slice_db = NAN, .centred_db = NAN, .samples = {.p5_db = NAN}

static struct qdqi_arena *arena;
static struct qdq_error err;
static struct qdqi_warnings warnings;
static struct qdq_spec spec;
static struct qdq_output_gate named;

static void
set_up(void)
{
    arena = qdqi_arena_new();
    err = (struct qdq_error){0};
    warnings = (struct qdqi_warnings){0};
    qdq_spec_init(&spec);
    named = (struct qdq_output_gate){"y", spec.accept.all};
}

static void
tear_down(void)
{
    qdqi_arena_free(&arena);
}

static void
name(const char *output)
{
    named.output = output;
    spec.accept.outputs = &named;
    spec.accept.n_outputs = 1;
}

/* --- whether a spec has gates --------------------------------------------- */

UNIT_TEST(asks)
{
    ck_assert(!qdqi_gates_ask(&spec.accept));
    name("y");
    ck_assert(!qdqi_gates_ask(&spec.accept)); /* an empty gate sets no bound */
    named.gate.max_abs_error = 0;
    ck_assert(qdqi_gates_ask(&spec.accept));
    spec.accept.n_outputs = 0;
    spec.accept.all.min_top1_agreement = 1;
    ck_assert(qdqi_gates_ask(&spec.accept));
    spec.accept.all.min_top1_agreement = NAN;
    spec.accept.max_size_ratio = 0.5; /* needs no evaluation */
    ck_assert(!qdqi_gates_ask(&spec.accept));
}

/* --- before the work ------------------------------------------------------ */

static enum qdq_code
check(const struct qdq_model_info *of)
{
    return qdqi_gates_check(&spec, of, &warnings, arena, &err);
}

static const struct {
    const char *output;
    bool warn;
    enum qdq_code code;
    const char *where;
} names[] = {
    {"y", false, QDQ_OK, ""},
    {"one/of~two", false, QDQ_OK, ""},
    {"z", false, QDQ_UNMATCHED, "/accept/outputs/z"},
    {"a/b~c", false, QDQ_UNMATCHED, "/accept/outputs/a~1b~0c"},
    {"z", true, QDQ_OK, ""},
    {"index", true, QDQ_INVALID_SPEC, "/accept/outputs/index"},
    {"half", false, QDQ_OK, ""},
    {"double", false, QDQ_OK, ""},
    {"brain", false, QDQ_UNSUPPORTED, "/accept"},
};

UNIT_ROWS(named_outputs, names)
{
    spec.unmatched_is_error = !names[_i].warn;
    name(names[_i].output);
    named.gate.min_cosine = 0.9;
    ck_assert_msg(check(&model) == names[_i].code, "%s: %s", names[_i].output,
                  err.text);
    ck_assert_str_eq(err.where, names[_i].where);
    bool warned = names[_i].warn && names[_i].code == QDQ_OK;
    ck_assert_uint_eq(warnings.n, warned);
    if (warned)
        ck_assert_str_eq(warnings.rows[0].code, "unmatched");
}

UNIT_TEST(cut_pointer)
{
    char long_name[1024];
    memset(long_name, '/', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    name(long_name);
    ck_assert_int_eq(check(&model), QDQ_UNMATCHED);
    ck_assert_uint_lt(strlen(err.where), sizeof err.where);
}

/* A gate for all outputs needs an output that can be measured, and concerns only
   such outputs. */
UNIT_TEST(bound_for_all)
{
    const struct qdq_model_info integer = {.n_outputs = 1, .outputs = values + 2};
    ck_assert_int_eq(check(&integer), QDQ_OK); /* the spec has no gate */
    spec.accept.all.min_sqnr_db = 20;
    ck_assert_int_eq(check(&integer), QDQ_INVALID_SPEC);
    ck_assert_str_eq(err.where, "/accept");
    err = (struct qdq_error){0};
    ck_assert_int_eq(check(&model), QDQ_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "'brain'"));
    err = (struct qdq_error){0};
    name("brain"); /* an empty gate of its own exempts an output */
    ck_assert_int_eq(check(&model), QDQ_OK);
}

/* --- after the evaluation ------------------------------------------------- */

static const struct {
    struct qdq_gate gate;
    struct qdq_output_report figures;
    const char *missed; /* the missed gates, in their order */
} judged[] = {
    {{30, NAN, NAN, NAN, NAN, NAN}, {"y", 30, 1, 0, 1, false, 0, NO_SLICES}, ""},
    {{30, NAN, NAN, NAN, NAN, NAN},
     {"y", 29.999999, 1, 0, 1, false, 0, NO_SLICES},
     "min_sqnr_db "},
    {{30, NAN, NAN, NAN, NAN, NAN}, {"y", INFINITY, 1, 0, 1, false, 0, NO_SLICES}, ""},
    {{30, NAN, NAN, NAN, NAN, NAN},
     {"y", NAN, 1, 0, 1, false, 0, NO_SLICES},
     "min_sqnr_db "},
    {{NAN, 0.99, NAN, NAN, NAN, NAN}, {"y", 0, 0.99, 9, 0, false, 0, NO_SLICES}, ""},
    {{NAN, 0.99, NAN, NAN, NAN, NAN},
     {"y", 0, NAN, 9, 0, false, 0, NO_SLICES},
     "min_cosine "},
    {{NAN, NAN, 0.5, NAN, NAN, NAN}, {"y", 0, 0, 0.5, 0, false, 0, NO_SLICES}, ""},
    {{NAN, NAN, 0.5, NAN, NAN, NAN},
     {"y", 0, 0, 0.5000001, 0, false, 0, NO_SLICES},
     "max_abs_error "},
    {{NAN, NAN, 0.5, NAN, NAN, NAN},
     {"y", 0, 0, NAN, 0, false, 0, NO_SLICES},
     "max_abs_error "},
    {{NAN, NAN, NAN, 0.9, NAN, NAN}, {"y", 0, 0, 0, 0.9, false, 0, NO_SLICES}, ""},
    {{NAN, NAN, NAN, 0.9, NAN, NAN},
     {"y", 0, 0, 0, NAN, false, 0, NO_SLICES},
     "min_top1_agreement "},
    {{30, 0.9, 0.1, 0.9, NAN, NAN},
     {"y", 10, 0.8, 0.2, 0.5, false, 0, NO_SLICES},
     "min_sqnr_db min_cosine max_abs_error min_top1_agreement "},
    {{30, NAN, NAN, NAN, NAN, NAN},
     {"y", 50, 1, 0, 1, .worst_slice_db = 29, .centred_db = 50},
     "min_sqnr_db "},
    {{30, NAN, NAN, NAN, 25, NAN},
     {"y", 50, 1, 0, 1, .worst_slice_db = 29, .centred_db = 50},
     ""},
    {{30, NAN, NAN, NAN, 29.5, NAN},
     {"y", 50, 1, 0, 1, .worst_slice_db = 29, .centred_db = 50},
     "min_slice_sqnr_db "},
    {{30, NAN, NAN, NAN, NAN, NAN},
     {"y", 50, 1, 0, 1, .worst_slice_db = NAN, .centred_db = 12},
     ""},
    {{25, NAN, NAN, NAN, NAN, NAN},
     {"y", 50, 1, 0, 1, .worst_slice_db = NAN, .centred_db = 9},
     "min_sqnr_db "},
    {{NAN, NAN, NAN, NAN, NAN, NAN},
     {"y", NAN, NAN, NAN, NAN, false, 0, NO_SLICES},
     ""},
};

/* Returns the bounds that were missed, in their order, and their number. */
static size_t
collect_missed(const struct qdq_report *report, const struct qdq_gate_report *ret[8])
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_gates; i++)
        if (!report->gates[i].met)
            ret[n++] = &report->gates[i];
    return n;
}

static struct qdq_report
judge(const struct qdq_model_info *of, const struct qdq_output_report *measured,
      size_t n, const bool *not_float)
{
    struct qdq_report report = {.outputs = measured, .n_outputs = n};
    ck_assert_int_eq(
        qdqi_gates_judge(&spec.accept, of, not_float, &report, arena, &err), QDQ_OK);
    return report;
}

UNIT_ROWS(judges, judged)
{
    const struct qdq_model_info one = {.n_outputs = 1, .outputs = values};
    spec.accept.all = judged[_i].gate;
    spec.accept.all.max_kl = NAN;
    struct qdq_report report = judge(&one, &judged[_i].figures, 1, (bool[]){false});
    char missed[128] = "";
    size_t len = 0, asked = 0;
    const double bounds[] = {judged[_i].gate.min_sqnr_db, judged[_i].gate.min_cosine,
                             judged[_i].gate.max_abs_error,
                             judged[_i].gate.min_top1_agreement,
                             judged[_i].gate.min_slice_sqnr_db};
    for (size_t i = 0; i < 5; i++)
        asked += !isnan(bounds[i]);
    ck_assert_uint_eq(report.n_gates, asked); /* also those that are met */
    for (size_t i = 0; i < report.n_gates; i++) {
        const struct qdq_gate_report *m = &report.gates[i];
        if (!m->met)
            len += (size_t)snprintf(missed + len, sizeof missed - len, "%s ", m->gate);
        ck_assert_str_eq(m->output, "y");
        ck_assert_int_eq(m->why != NULL, isnan(m->value));
        ck_assert_int_eq(m->at_most, strcmp(m->gate, "max_abs_error") == 0);
        ck_assert(!m->own);
    }
    ck_assert_str_eq(missed, judged[_i].missed);
}

/* An output's own gate replaces the gate for all. */
UNIT_TEST(own_gate)
{
    const struct qdq_model_info two = {.n_outputs = 2, .outputs = values};
    const struct qdq_output_report measured[] = {
        {"y", 20, 1, 0, 1, false, 0, NO_SLICES},
        {"one/of~two", 20, 1, 0, 1, false, 0, NO_SLICES}};
    spec.accept.all.min_sqnr_db = 10;
    spec.accept.all.min_top1_agreement = 1;
    name("one/of~two");
    named.gate.min_sqnr_db = 25;
    struct qdq_report report = judge(&two, measured, 2, (bool[2]){false});
    const struct qdq_gate_report *missed[8];
    ck_assert_uint_eq(collect_missed(&report, missed), 1);
    ck_assert_str_eq(missed[0]->output, "one/of~two");
    ck_assert(missed[0]->own);
    ck_assert(missed[0]->bound == 25 && missed[0]->value == 20);
    named.gate.min_sqnr_db = NAN; /* an empty gate exempts the output */
    spec.accept.all.min_sqnr_db = 20.5;
    report = judge(&two, measured, 2, (bool[2]){false});
    ck_assert_uint_eq(collect_missed(&report, missed), 1);
    ck_assert_str_eq(missed[0]->output, "y");
}

/* An output that was not measured misses its gate; integer outputs have none. */
UNIT_TEST(not_measured)
{
    const struct qdq_model_info three = {.n_outputs = 3, .outputs = values};
    spec.accept.all.min_sqnr_db = -100;
    struct qdq_report report = judge(&three, NULL, 0, (bool[]){false, false, true});
    const struct qdq_gate_report *missed[8];
    ck_assert_uint_eq(collect_missed(&report, missed), 2);
    ck_assert_str_eq(missed[1]->output, "one/of~two");
    ck_assert_ptr_nonnull(missed[1]->why);
}

/* --- the whole model ------------------------------------------------------ */

static const struct {
    double bound;
    uint64_t before, after;
    bool met;
} sizes[] = {
    {0.5, 1000, 500, true}, {0.5, 1000, 501, false}, {0, 1000, 1, false},
    {2, 1000, 1999, true},  {1, 0, 0, false},
};

UNIT_ROWS(whole_model, sizes)
{
    struct qdq_report report = {.size_before = sizes[_i].before,
                                .size_after = sizes[_i].after};
    spec.accept.max_size_ratio = sizes[_i].bound;
    spec.accept.all.min_cosine = 0.5; /* no output was run, so none is judged */
    ck_assert_int_eq(qdqi_gates_judge(&spec.accept, &model, NULL, &report, arena, &err),
                     QDQ_OK);
    ck_assert_uint_eq(report.n_gates, 1);
    const struct qdq_gate_report *gate = &report.gates[0];
    ck_assert_ptr_null(gate->output);
    ck_assert_str_eq(gate->gate, "max_size_ratio");
    ck_assert(gate->bound == sizes[_i].bound && gate->at_most);
    ck_assert_int_eq(gate->met, sizes[_i].met);
    ck_assert_int_eq(isnan(gate->value), gate->why != NULL);
}

/* --- the verdict ---------------------------------------------------------- */

static const struct {
    double sqnr_db, top1_agreement;
    const char *verdict;
    int64_t rows;
} verdicts[] = {
    {25, 0.99, "good", 0},          {25, NAN, "good", 0},
    {INFINITY, 1, "good", 0},       {24.999, 1, "fair", 0},
    {40, 0.9899, "fair", 0},        {15, 0.95, "fair", 0},
    {15, NAN, "fair", 0},           {14.999, 1, "poor", 0},
    {40, 0.9499, "poor", 0},        {NAN, 1, "poor", 0},
    {-INFINITY, NAN, "poor", 0},    {40, 15.0 / 16, "good", 16},
    {20, 15.0 / 16, "fair", 16},    {40, 14.0 / 16, "poor", 16},
    {40, 0.9, "good", 10},          {40, 8.0 / 9, "poor", 9},
    {40, 126.0 / 128, "fair", 128},
};

/* The worst output decides, and a missed bound of any kind; top-1 of an output without
   classes does not count, nor does a single row of few. */
UNIT_ROWS(verdict, verdicts)
{
    const struct qdq_output_report outputs[] = {
        {"y", 50, 1, 0, 0.5, true, 0, NO_SLICES},
        {"z", verdicts[_i].sqnr_db, 1, 0, verdicts[_i].top1_agreement, false,
         verdicts[_i].rows, NO_SLICES},
    };
    struct qdq_gate_report gates[] = {{.met = true}, {.met = true}};
    struct qdq_report report = {
        .n_outputs = 2, .outputs = outputs, .n_gates = 2, .gates = gates};
    ck_assert_str_eq(qdqi_verdict_name(qdqi_verdict(&report)), verdicts[_i].verdict);
    gates[1].met = false;
    ck_assert_int_eq(qdqi_verdict(&report), QDQI_POOR);
    report.n_outputs = 0;
    ck_assert_int_eq(qdqi_verdict(&report), QDQI_POOR);
    gates[1].met = true;
    ck_assert_int_eq(qdqi_verdict(&report), QDQI_NO_VERDICT);
    ck_assert_ptr_null(qdqi_verdict_name(QDQI_NO_VERDICT));
}

static const struct {
    double slice_db, centred_db, p5_db;
    const char *verdict;
    int64_t samples;
    bool is_seen;
} capped[] = {
    {NAN, NAN, NAN, "good", 128, false}, {15, 40, 15, "good", 128, false},
    {14.9, 40, 40, "fair", 128, false},  {9.9, 40, 40, "poor", 128, false},
    {NAN, 9.9, 40, "poor", 128, false},  {NAN, 12, 40, "good", 128, false},
    {NAN, 40, 14.9, "fair", 128, false}, {NAN, 40, 4.9, "poor", 128, false},
    {NAN, 40, 40, "good", 16, false},    {NAN, 40, 40, "fair", 15, false},
    {NAN, 40, 40, "fair", 63, true},     {NAN, 40, 40, "good", 64, true},
};

/* A slice that is lost makes the result poor, and so does the whole output where its mean hides
   it; few samples, or few that calibration read, are not enough for `good`. */
UNIT_ROWS(slices_and_samples, capped)
{
    const struct qdq_output_report y = {
        .name = "y",
        .sqnr_db = 50,
        .top1_agreement = NAN,
        .worst_slice_db = capped[_i].slice_db,
        .centred_db = capped[_i].centred_db,
        .samples = {.p5_db = capped[_i].p5_db},
    };
    const struct qdq_report report = {.n_outputs = 1,
                                      .outputs = &y,
                                      .evaluated_samples = capped[_i].samples,
                                      .evaluated_on_calibration = capped[_i].is_seen};
    ck_assert_str_eq(qdqi_verdict_name(qdqi_verdict(&report)), capped[_i].verdict);
}

/* A result of which nothing was quantized is the model: it has no verdict, unless it misses a
   bound, such as one for the number of layers. */
UNIT_TEST(nothing_quantized)
{
    const struct qdq_output_report y = {"y", INFINITY, 1, 0, 1, false, 0, NO_SLICES};
    const struct qdq_plan_view plan = {.n_layers = 3};
    struct qdq_report report = {.n_outputs = 1, .outputs = &y, .plan = &plan};
    ck_assert_int_eq(qdqi_verdict(&report), QDQI_NO_VERDICT);
    spec.accept.min_quantized_layers = 1;
    ck_assert_int_eq(qdqi_gates_judge(&spec.accept, &model, NULL, &report, arena, &err),
                     QDQ_OK);
    ck_assert_uint_eq(report.n_gates, 1);
    ck_assert_str_eq(report.gates[0].gate, "min_quantized_layers");
    ck_assert(!report.gates[0].met && !report.gates[0].at_most);
    ck_assert_int_eq(qdqi_verdict(&report), QDQI_POOR);
    const struct qdq_plan_view some = {.n_layers = 3, .n_quantized = 1};
    report.plan = &some;
    ck_assert_int_eq(qdqi_gates_judge(&spec.accept, &model, NULL, &report, arena, &err),
                     QDQ_OK);
    ck_assert(report.gates[0].met);
    ck_assert_int_eq(qdqi_verdict(&report), QDQI_GOOD);
}

UNIT_SUITE("engine/gates", .setup = set_up, .teardown = tear_down)
