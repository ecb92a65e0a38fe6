/* SPDX-License-Identifier: Apache-2.0 */
/* The size of a report, whatever the model is. */
#include "config.h"
#include "api.h"

#include "api/report.h"
#include "qdq/targets.h"

static const struct qdq_model_info model = {.name = "graph", .producer = ""};
static const uint64_t counts[] = {3, 0, 1};
static const struct qdq_histogram_report histograms[] = {
    {"t", -3, 0, 3, counts, true, -1, 0, 0, 1},
    {"u", -3, 0, 3, counts, true, -1, 0, 0, 1}};

static struct qdq_report
make_report(const struct qdq_spec *spec)
{
    static struct qdq_plan_view plan;
    plan.target = spec->target;
    return (struct qdq_report){.model = &model,
                               .spec = spec,
                               .device = "cpu",
                               .plan = &plan,
                               .evaluated_samples = 1};
}

static json_t *
encoded(const struct qdq_report *report, size_t *ret_len)
{
    char *text = api_report_encode(report);
    ck_assert_ptr_nonnull(text);
    *ret_len = strlen(text);
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(json);
    free(text);
    return json;
}

static size_t
length_of(const json_t *report, const char *object, const char *member)
{
    const json_t *from = object ? json_object_get(report, object) : report;
    ck_assert(json_is_array(json_object_get(from, member)));
    return json_array_size(json_object_get(from, member));
}

/* A long name that many edges have: below 8 MiB they stand in `edges`, too. */
UNIT_LOOP(test_long_edges, 2)
{
    enum { LETTERS = 100000, EDGES = 1000 };
    static char name[LETTERS + 1];
    static struct qdq_edge edges[EDGES];
    static struct qdq_graph_edge numbers[EDGES];
    const char *nodes[] = {"a", name}, *made[] = {"t"};
    struct qdq_spec spec;
    size_t n = _i ? EDGES : 80, len;
    qdq_spec_init(&spec);
    struct qdq_report report = make_report(&spec);
    memset(name, 'n', LETTERS);
    for (size_t i = 0; i < n; i++) {
        edges[i] = (struct qdq_edge){"a", name, "t"};
        numbers[i] = (struct qdq_graph_edge){0, 1, 0};
    }
    report.edges = edges;
    report.n_edges = n;
    report.graph = (struct qdq_graph_report){2, 1, n, nodes, made, numbers, 0, NULL};
    json_t *json = encoded(&report, &len);
    ck_assert_uint_eq(length_of(json, NULL, "edges"), _i ? 0 : n);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "edges_omitted")),
                     _i ? EDGES : 0);
    ck_assert_uint_eq(length_of(json, "graph", "edges"), n);
    ck_assert_uint_lt(len, _i ? 200000 : 9 << 20);
    ck_assert_ptr_null(json_object_get(json, "omitted"));
    json_decref(json);
}

/* Lists go, the least missed first, until the report is small enough; a larger model has a larger
   report. */
UNIT_LOOP(test_a_report_has_a_bound, 2)
{
    enum { ROWS = 200, LETTERS = 180000 };
    static char name[LETTERS + 1];
    static struct qdq_layer_error errors[ROWS];
    static struct qdq_warning rows[20];
    struct qdq_spec spec;
    size_t len;
    qdq_spec_init(&spec);
    struct qdq_report report = make_report(&spec);
    memset(name, 'n', LETTERS);
    for (size_t i = 0; i < ROWS; i++)
        errors[i] = (struct qdq_layer_error){name, 1};
    for (size_t i = 0; i < 20; i++)
        rows[i] = (struct qdq_warning){"a", name, NULL, NULL};
    report.layer_errors = errors;
    report.n_layer_errors = ROWS;
    report.warnings = rows;
    report.n_warnings = 20;
    report.histograms = histograms;
    report.n_histograms = 2;
    report.size_before = _i ? 3 << 20 : 2 << 20;
    json_t *json = encoded(&report, &len);
    ck_assert_uint_gt(len, _i ? 30u << 20 : 3u << 20);
    ck_assert_uint_le(len, _i ? 45u << 20 : 30u << 20);
    ck_assert_uint_eq(length_of(json, "evaluation", "layers"), _i ? ROWS : 0);
    ck_assert_uint_eq(length_of(json, NULL, "histograms"), _i ? 2 : 0);
    ck_assert_uint_eq(length_of(json, NULL, "warnings"), 20);
    char *omitted = json_dumps(json_object_get(json, "omitted"), JSON_ENCODE_ANY);
    if (_i)
        ck_assert_ptr_null(omitted);
    else
        ck_assert(strstr(omitted, "\"/histograms\"") &&
                  strstr(omitted, "\"/evaluation/layers\"") &&
                  !strstr(omitted, "/weights"));
    free(omitted);
    json_decref(json);
}

UNIT_SUITE("api/report_bounds")
