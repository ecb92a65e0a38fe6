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
    ret->latency_ratio =
        number(json_object_get(json_object_get(report, "profile"), "ratio"));
    copy_text(ret->target, sizeof ret->target,
              json_object_get(json_object_get(report, "spec"), "target"));
    copy_text(ret->verdict, sizeof ret->verdict, json_object_get(summary, "verdict"));
    return read_evaluation(json_object_get(report, "evaluation"), ret);
}

bool
api_overview_read(const struct api_overviewed *report, struct api_overview_row *ret)
{
    json_t *json = json_loadb(report->json, report->len, 0, NULL);
    bool ok = read_report(json, ret);
    json_decref(json);
    return ok;
}

/* --- the page ---------------------------------------------------------------------- */

static json_t *
encode_row(const char *name, const struct api_overview_row *row)
{
    return api_pack(
        "name:t target:t verdict:t quantized_layers:d layers:d size_ratio:r "
        "sqnr_db:r p5_db:r latency_ratio:r runtime:t samples:d",
        name, row->target, *row->verdict ? row->verdict : NULL, row->quantized_layers,
        row->layers, row->size_ratio, row->sqnr_db, row->p5_db, row->latency_ratio,
        *row->runtime ? row->runtime : "literal arithmetic", row->samples);
}

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
    {"judged by", "runtime", HTML_TEXT},
    {"samples", "samples", HTML_NUMBER},
};

static void
add_picture(struct api_markup *page, const char *id, const char *title,
            const json_t *rows, const char *member, const char *axis)
{
    html_begin_section(page, id, title);
    html_points(page, rows, member, "sqnr_db", "name", axis, "SQNR (dB)");
    html_end_section(page);
}

static void
add_page(struct api_markup *page, json_t *rows)
{
    html_begin(page, "Results compared");
    api_markup_add(page, "<h1>Results compared</h1>\n");
    html_table_section(page, "results", "Results", rows, HTML_COLUMNS(columns));
    html_note(page, "A ratio is that to the float model. A latency is given where the "
                    "runtime ran both; one of another runtime or processor is not "
                    "comparable.");
    add_picture(page, "latency", "Accuracy against latency", rows, "latency_ratio",
                "latency (ratio)");
    add_picture(page, "size", "Accuracy against size", rows, "size_ratio",
                "size (ratio)");
    html_end(page);
}

/* Returns the rows, or NULL. */
static json_t *
encode_rows(const struct api_overviewed *reports, size_t n)
{
    json_t *rows = json_array();
    bool ok = rows;
    for (size_t i = 0; ok && i < n; i++) {
        struct api_overview_row row;
        ok = api_overview_read(&reports[i], &row) &&
             json_array_append_new(rows, encode_row(reports[i].name, &row)) == 0;
    }
    return api_json_if(ok, rows);
}

char *
api_overview_html(const struct api_overviewed *reports, size_t n)
{
    return api_markup_render(encode_rows(reports, n), add_page);
}

char *
api_overview_encode(const struct api_overviewed *reports, size_t n)
{
    return api_json_dump(api_pack("results:j", encode_rows(reports, n)), 0);
}
