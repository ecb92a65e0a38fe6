/* SPDX-License-Identifier: Apache-2.0 */
/* Several reports in one table and in pictures. */
#include "config.h"
#include "api/overview.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "documents/html.h"
#include "documents/output_rows.h"
#include "qdq/targets.h"

/* --- the figures of a report ------------------------------------------------------ */

static void
copy_text(char *to, size_t size, const json_t *value)
{
    *to = '\0';
    if (json_is_string(value))
        api_text_add(to, size, json_string_value(value));
}

/* Returns the number, or NAN where it is none. */
static double
number(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static int
count(const json_t *object, const char *name)
{
    return (int)json_integer_value(json_object_get(object, name));
}

/* Returns the lower number, where NAN is none. */
static double
lower(double a, double b)
{
    return isnan(a) || b < a ? b : a;
}

static void
read_outputs(const json_t *outputs, struct api_overview_row *ret)
{
    ret->sqnr_db = ret->p5_db = (double)NAN;
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *output = json_array_get(outputs, i);
        const json_t *samples = json_object_get(output, "samples");
        ret->sqnr_db = lower(ret->sqnr_db, number(json_object_get(output, "sqnr_db")));
        ret->p5_db = lower(ret->p5_db, number(json_object_get(samples, "p5_db")));
    }
}

static bool
read_evaluation(const json_t *evaluation, struct api_overview_row *ret)
{
    const json_t *deployed = json_object_get(evaluation, "deployed");
    bool runs = json_is_object(deployed);
    json_t *runtime = api_runtime_text(json_object_get(deployed, "runtime"));
    ret->samples = count(evaluation, "samples");
    copy_text(ret->runtime, sizeof ret->runtime, runtime);
    read_outputs(json_object_get(runs ? deployed : evaluation, "outputs"), ret);
    json_decref(runtime);
    return runtime;
}

/* Sets why there is no latency: what a warning says, or else that nobody asked for one. */
static void
say_why_none(const json_t *report, struct api_overview_row *ret)
{
    const json_t *warnings = json_object_get(report, "warnings");
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        const json_t *warning = json_array_get(warnings, i);
        const char *code = json_string_value(json_object_get(warning, "code"));
        if (code && strcmp(code, "profile_skipped") == 0)
            copy_text(ret->latency_omitted, sizeof ret->latency_omitted,
                      json_object_get(warning, "detail"));
    }
    if (!*ret->latency_omitted)
        snprintf(ret->latency_omitted, sizeof ret->latency_omitted, "%s",
                 json_is_object(json_object_get(report, "profile"))
                     ? "the profile has no ratio"
                     : "no profile was asked for");
}

/* Returns whether one of the points has a latency. */
static bool
is_timed(const json_t *frontier)
{
    for (size_t i = 0; i < json_array_size(frontier); i++)
        if (json_is_number(
                json_object_get(json_array_get(frontier, i), "latency_ratio")))
            return true;
    return false;
}

/* Sets the runtime of the frontier's latencies: the one that judges the target's results. */
static void
read_frontier_runtime(const json_t *report, struct api_overview_row *ret)
{
    const struct qdq_target *target = qdq_target_find(ret->target);
    const json_t *deployed =
        json_object_get(json_object_get(report, "evaluation"), "deployed");
    snprintf(ret->latency_runtime, sizeof ret->latency_runtime, "%s",
             *ret->runtime               ? ret->runtime
             : target && target->runtime ? target->runtime
                                         : "a runtime without a name");
    copy_text(ret->processor, sizeof ret->processor,
              json_object_get(deployed, "processor"));
}

/* Reads the latency, unless another runtime took it than the one that judged the result. */
static bool
read_latency(const json_t *report, struct api_overview_row *ret)
{
    const json_t *profile = json_object_get(report, "profile");
    json_t *runtime = api_runtime_text(json_object_get(profile, "runtime"));
    char *by = ret->latency_runtime;
    copy_text(by, sizeof ret->latency_runtime, runtime);
    copy_text(ret->processor, sizeof ret->processor,
              json_object_get(profile, "processor"));
    ret->latency_ratio = number(json_object_get(profile, "ratio"));
    if (*ret->runtime && *by && strcmp(by, ret->runtime) != 0) {
        snprintf(ret->latency_omitted, sizeof ret->latency_omitted,
                 "%s took it, and the result was judged by %s", by, ret->runtime);
        ret->latency_ratio = (double)NAN;
    } else if (isnan(ret->latency_ratio)) {
        say_why_none(report, ret);
    }
    if (isnan(ret->latency_ratio))
        *by = *ret->processor = '\0';
    if (!*by && is_timed(json_object_get(report, "frontier")))
        read_frontier_runtime(report, ret);
    json_decref(runtime);
    return runtime;
}

static bool
read_report(const json_t *report, struct api_overview_row *ret)
{
    const json_t *summary = json_object_get(report, "summary");
    double before = number(json_object_get(summary, "size_before"));
    double after = number(json_object_get(summary, "size_after"));
    *ret = (struct api_overview_row){.layers = count(summary, "layers")};
    if (!json_is_object(summary))
        return false;
    ret->quantized_layers = count(summary, "quantized_layers");
    ret->size_ratio = before > 0 ? after / before : (double)NAN;
    copy_text(ret->target, sizeof ret->target,
              json_object_get(json_object_get(report, "spec"), "target"));
    copy_text(ret->verdict, sizeof ret->verdict, json_object_get(summary, "verdict"));
    return read_evaluation(json_object_get(report, "evaluation"), ret) &&
           read_latency(report, ret);
}

bool
api_overview_read(const struct api_overviewed *report, struct api_overview_row *ret)
{
    json_t *json = json_loadb(report->json, report->len, 0, NULL);
    bool ok = read_report(json, ret);
    json_decref(json);
    return ok;
}

const char api_overview_differ[] =
    "The latencies are by different runtimes or processors, each a part of what the "
    "float model takes "
    "there: they cannot be compared with each other.";

/* Returns whether two texts are there and are not the same. */
static bool
are_other(const char *a, const char *b)
{
    return a && b && *a && *b && strcmp(a, b) != 0;
}

bool
api_overview_differs(const struct api_overview_row *a, const struct api_overview_row *b)
{
    return are_other(a->latency_runtime, b->latency_runtime) ||
           are_other(a->processor, b->processor);
}

/* --- rows ---------------------------------------------------------------------------- */

/* Returns the figures of a report's frontier; null where it has none. */
static json_t *
encode_frontier(const json_t *frontier)
{
    json_t *points = json_is_array(frontier) ? json_array() : json_null();
    bool ok = points;
    for (size_t i = 0; ok && i < json_array_size(frontier); i++) {
        const json_t *point = json_array_get(frontier, i);
        ok = json_array_append_new(
                 points, api_pack("sqnr_db:r latency_ratio:r size_ratio:r",
                                  number(json_object_get(point, "sqnr_db")),
                                  number(json_object_get(point, "latency_ratio")),
                                  number(json_object_get(point, "size_ratio")))) == 0;
    }
    return api_json_if(ok, points);
}

/* Returns the text, or NULL where it is empty. */
static const char *
text_or_null(const char *text)
{
    return *text ? text : NULL;
}

enum { SHORT_ID = 12 };

/* Returns what the row is called. */
static json_t *
encode_name(const struct api_overviewed *from)
{
    if (from->name)
        return json_string(from->name);
    json_t *labels = from->labels ? json_loads(from->labels, 0, NULL) : NULL;
    const char *label = json_string_value(json_object_get(labels, "name"));
    json_t *name = json_sprintf("%s%s%.*s", label ? label : "", label ? " " : "",
                                SHORT_ID, from->job);
    json_decref(labels);
    return name;
}

static json_t *
encode_row(const struct api_overviewed *from, const json_t *report,
           const struct api_overview_row *row)
{
    return api_pack(
        "name:j target:t verdict:t quantized_layers:d layers:d size_ratio:r "
        "sqnr_db:r p5_db:r latency_ratio:r runtime:t samples:d latency_runtime:t "
        "latency_omitted:t processor:t frontier:j job:t",
        encode_name(from), row->target, text_or_null(row->verdict),
        row->quantized_layers, row->layers, row->size_ratio, row->sqnr_db, row->p5_db,
        row->latency_ratio, *row->runtime ? row->runtime : "literal arithmetic",
        row->samples, text_or_null(row->latency_runtime),
        text_or_null(row->latency_omitted), text_or_null(row->processor),
        encode_frontier(json_object_get(report, "frontier")), from->job);
}

/* Adds the row of a report. */
static bool
add_row(json_t *rows, const struct api_overviewed *from)
{
    struct api_overview_row row;
    json_t *report = json_loadb(from->json, from->len, 0, NULL);
    bool ok = read_report(report, &row) &&
              json_array_append_new(rows, encode_row(from, report, &row)) == 0;
    json_decref(report);
    return ok;
}

/* Returns the rows, or NULL. */
static json_t *
encode_rows(const struct api_overviewed *reports, size_t n)
{
    json_t *rows = json_array();
    bool ok = rows;
    for (size_t i = 0; ok && i < n; i++)
        ok = !reports[i].json || add_row(rows, &reports[i]);
    return api_json_if(ok, rows);
}

/* Returns what failed and why, or NULL. */
static json_t *
encode_failed(const struct api_overviewed *reports, size_t n)
{
    json_t *rows = json_array();
    bool ok = rows;
    for (size_t i = 0; ok && i < n; i++)
        if (reports[i].problem)
            ok = json_array_append_new(
                     rows, api_pack("name:j code:t detail:t job:t",
                                    encode_name(&reports[i]), reports[i].problem,
                                    reports[i].detail, reports[i].job)) == 0;
    return api_json_if(ok, rows);
}

static json_t *
encode_overview(const struct api_overviewed *reports, size_t n)
{
    return api_pack("results:j failed:j", encode_rows(reports, n),
                    encode_failed(reports, n));
}

/* --- the page ---------------------------------------------------------------------- */

static const struct html_column columns[] = {
    {"result", "name", HTML_NAME},
    {"target", "target", HTML_TEXT},
    {"verdict", "verdict", HTML_TEXT},
    {"layers in integers", "quantized_layers", HTML_NUMBER},
    {"of", "layers", HTML_NUMBER},
    {"size (ratio)", "size_ratio", HTML_NUMBER},
    {"SQNR (dB)", "sqnr_db", HTML_NUMBER},
    {"5th percentile (dB)", "p5_db", HTML_NUMBER},
    {"latency (ratio)", "latency_ratio", HTML_NUMBER},
    {"timed by", "latency_runtime", HTML_TEXT},
    {"judged by", "runtime", HTML_TEXT},
    {"samples", "samples", HTML_NUMBER},
};

/* Returns the name of a row for a picture, with the runtime of its figure: of the version only what
   stands before the first dash, because a build's number and branch are wider than the picture. */
static json_t *
name_point(const char *name, const char *runtime)
{
    const char *version = strchr(runtime, ' ');
    const size_t before = version ? (size_t)(version - runtime) : 0;
    const size_t n = before + strcspn(runtime + before, "-");
    return json_sprintf("%s, %.*s", name, (int)n, runtime);
}

static bool
set_anchor(json_t *row, json_int_t number)
{
    return json_object_set_new(row, HTML_ANCHOR, json_integer(number)) == 0;
}

/* Gives each row its names for the two pictures, and numbers to the rows and to the points of their
   frontiers. */
static bool
name_points(json_t *rows)
{
    bool ok = true;
    json_int_t number = 0;
    for (size_t i = 0; ok && i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        const char *name = json_string_value(json_object_get(row, "name"));
        const char *judge = json_string_value(json_object_get(row, "runtime"));
        const char *timer = json_string_value(json_object_get(row, "latency_runtime"));
        ok = json_object_set_new(row, "judged", name_point(name, judge)) == 0 &&
             json_object_set_new(row, "timed", name_point(name, timer ? timer : "")) ==
                 0 &&
             set_anchor(row, number++);
        const json_t *points = json_object_get(row, "frontier");
        for (size_t k = 0; ok && k < json_array_size(points); k++)
            ok = set_anchor(json_array_get(points, k), number++);
    }
    return ok;
}

/* Returns whether two rows have different texts of that name. */
static bool
have_other(const json_t *rows, const char *name)
{
    const char *first = NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *text =
            json_string_value(json_object_get(json_array_get(rows, i), name));
        if (are_other(first, text))
            return true;
        first = text ? text : first;
    }
    return false;
}

/* Says of each row without a latency why it has none. */
static void
add_reasons(struct api_markup *page, const json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *reason = json_object_get(row, "latency_omitted");
        if (!json_is_string(reason))
            continue;
        api_markup_add(page, "<p class=\"note\"><code>");
        api_markup_value(page, json_object_get(row, "name"));
        api_markup_add(page, "</code> has no latency: ");
        api_markup_value(page, reason);
        api_markup_add(page, ".</p>\n");
    }
}

static void
add_latencies(struct api_markup *page, const json_t *rows)
{
    html_begin_section(page, "latency", "Accuracy against latency");
    if (have_other(rows, "latency_runtime") || have_other(rows, "processor"))
        html_note(page, api_overview_differ);
    html_points(page, rows, "latency_ratio", "sqnr_db", "timed", "latency (ratio)",
                "SQNR (dB)");
    add_reasons(page, rows);
    html_end_section(page);
}

static void
add_sizes(struct api_markup *page, const json_t *rows)
{
    html_begin_section(page, "size", "Accuracy against size");
    html_points(page, rows, "size_ratio", "sqnr_db", "judged", "size (ratio)",
                "SQNR (dB)");
    html_end_section(page);
}

/* Adds a table of the points of all frontiers. */
static void
add_frontiers(struct api_markup *page, const json_t *rows)
{
    static const struct html_column of_points[] = {
        {"result", "name", HTML_NAME},
        {"latency (ratio)", "latency_ratio", HTML_NUMBER},
        {"timed by", "latency_runtime", HTML_TEXT},
        {"SQNR (dB)", "sqnr_db", HTML_NUMBER},
        {"size (ratio)", "size_ratio", HTML_NUMBER},
    };
    static const char *const shared[] = {"name", "latency_runtime"};
    json_t *all = json_array();
    bool ok = all;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *points = json_object_get(row, "frontier");
        for (size_t k = 0; ok && k < json_array_size(points); k++) {
            json_t *point = json_array_get(points, k);
            for (size_t m = 0; m < sizeof shared / sizeof *shared; m++)
                ok = ok && json_object_set(point, shared[m],
                                           json_object_get(row, shared[m])) == 0;
            ok = ok && json_array_append(all, point) == 0;
        }
    }
    page->failed |= !ok;
    html_table_section(page, "frontiers", "Frontiers", all, HTML_COLUMNS(of_points));
    json_decref(all);
}

static void
add_results(struct api_markup *page, json_t *rows)
{
    page->failed |= !name_points(rows);
    html_table_section(page, "results", "Results", rows, HTML_COLUMNS(columns));
    html_note(page, "A ratio is that to the float model. A latency is given where the "
                    "runtime ran both; one of another runtime or processor is not "
                    "comparable.");
    add_latencies(page, rows);
    add_sizes(page, rows);
    add_frontiers(page, rows);
}

static void
add_page(struct api_markup *page, json_t *overview)
{
    static const struct html_column of_failed[] = {
        {"result", "name", HTML_NAME},
        {"error", "code", HTML_TEXT},
        {"why", "detail", HTML_TEXT},
    };
    json_t *rows = json_object_get(overview, "results");
    html_begin(page, "Results compared");
    api_markup_add(page, "<h1>Results compared</h1>\n");
    html_table_section(page, "failed", "Failed", json_object_get(overview, "failed"),
                       HTML_COLUMNS(of_failed));
    if (json_array_size(rows) > 0)
        add_results(page, rows);
    html_end(page);
}

char *
api_overview_html(const struct api_overviewed *reports, size_t n)
{
    return api_markup_render(encode_overview(reports, n), add_page);
}

char *
api_overview_encode(const struct api_overviewed *reports, size_t n)
{
    return api_json_dump(encode_overview(reports, n), 0);
}
