/* SPDX-License-Identifier: Apache-2.0 */
/* The report for a browser: its JSON is turned into one page of HTML that needs no other
   file. */
#include "config.h"
#include "api/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "documents/output_rows.h"
#include "documents/tables.h"

static const json_t *
member(const json_t *object, const char *name)
{
    return json_object_get(object, name);
}

/* --- the verdict -------------------------------------------------------------- */

/* Adds a tile, whose value the caller adds between the two calls. */
static void
begin_tile(struct api_markup *page, const char *title, const char *cls)
{
    api_markup_format(page, "<div class=\"tile %s\"><dt>%s</dt><dd>", cls, title);
}

static void
end_tile(struct api_markup *page)
{
    api_markup_add(page, "</dd></div>\n");
}

/* Adds a tile with the lowest figure of the outputs. Adds nothing where none has it. */
static void
add_lowest(struct api_markup *page, const json_t *outputs, const char *name,
           const char *title, double factor, const char *unit)
{
    double lowest = INFINITY;
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *value = member(json_array_get(outputs, i), name);
        if (json_is_number(value))
            lowest = fmin(lowest, json_number_value(value));
    }
    if (!isfinite(lowest))
        return;
    begin_tile(page, title, "");
    api_markup_format(page, "%.4g&nbsp;%s", factor * lowest, unit);
    end_tile(page);
}

static void
add_size_tile(struct api_markup *page, const json_t *summary)
{
    double before = json_number_value(member(summary, "size_before"));
    double after = json_number_value(member(summary, "size_after"));
    if (before <= 0 || after <= 0)
        return;
    begin_tile(page, "size", "");
    api_markup_format(page, "%.1f&nbsp;%%<small>", 100 * after / before);
    api_markup_bytes(page, before);
    api_markup_add(page, " became ");
    api_markup_bytes(page, after);
    api_markup_add(page, "</small>");
    end_tile(page);
}

/* Names the runtime and the processor of a latency. */
static void
add_timed_by(struct api_markup *page, const char *before, const json_t *profile)
{
    json_t *runtime = api_runtime_text(member(profile, "runtime"));
    page->failed |= !runtime;
    api_markup_add(page, before);
    api_markup_value(page, runtime);
    api_markup_add(page, " on ");
    api_markup_value(page, member(profile, "processor"));
    json_decref(runtime);
}

static void
add_latency_tile(struct api_markup *page, const json_t *profile)
{
    const json_t *ratio = member(profile, "ratio");
    if (!json_is_number(ratio))
        return;
    begin_tile(page, "latency", "");
    api_markup_format(page, "%.3g&nbsp;&times;<small>of float, between %.3g and %.3g",
                      json_number_value(ratio),
                      json_number_value(member(profile, "ratio_low")),
                      json_number_value(member(profile, "ratio_high")));
    add_timed_by(page, ", in ", profile);
    api_markup_add(page, "</small>");
    end_tile(page);
}

static void
add_verdict_tile(struct api_markup *page, const json_t *summary, bool is_deployed)
{
    static const struct {
        const char *name, *cls;
    } verdicts[] = {{"good", "good"}, {"fair", "fair"}, {"poor", "poor"}};
    const char *verdict = json_string_value(member(summary, "verdict"));
    for (size_t i = 0; verdict && i < sizeof verdicts / sizeof *verdicts; i++)
        if (strcmp(verdict, verdicts[i].name) == 0) {
            begin_tile(page, "verdict", verdicts[i].cls);
            api_markup_add(page, verdicts[i].name);
            if (!is_deployed)
                api_markup_add(page, "<small>not run in the target's runtime</small>");
            end_tile(page);
            return;
        }
    begin_tile(page, "verdict", "");
    api_markup_add(page, "not measured");
    end_tile(page);
}

static void
add_gates_tile(struct api_markup *page, const json_t *gates)
{
    size_t met = 0, n = json_array_size(gates);
    for (size_t i = 0; i < n; i++)
        met += json_is_true(member(json_array_get(gates, i), "met"));
    if (n == 0)
        return;
    begin_tile(page, "bounds", met == n ? "good" : "poor");
    api_markup_format(page, "%zu of %zu met", met, n);
    end_tile(page);
}

static void
add_verdict(struct api_markup *page, const json_t *report)
{
    const json_t *summary = member(report, "summary");
    const json_t *evaluation = member(report, "evaluation");
    const json_t *deployed = member(member(evaluation, "deployed"), "outputs");
    const json_t *outputs = deployed ? deployed : member(evaluation, "outputs");
    html_begin_section(page, "verdict", "Verdict");
    api_markup_add(page, "<dl class=\"tiles\">\n");
    add_verdict_tile(page, summary, deployed);
    add_gates_tile(page, member(report, "gates"));
    add_lowest(page, outputs, "sqnr_db", deployed ? "SQNR as deployed" : "SQNR", 1,
               "dB");
    add_lowest(page, outputs, "top1_agreement", "same top 1", 100, "%");
    add_size_tile(page, summary);
    add_latency_tile(page, member(report, "profile"));
    begin_tile(page, "quantized", "");
    api_markup_value(page, member(summary, "quantized_layers"));
    api_markup_add(page, " of ");
    api_markup_value(page, member(summary, "layers"));
    api_markup_add(page, "<small>layers, with ");
    api_markup_value(page, member(summary, "qdq_pairs"));
    api_markup_add(page, " Q/DQ pairs</small>");
    end_tile(page);
    api_markup_add(page, "</dl>\n");
    if (json_array_size(member(report, "gates")))
        html_table(page, "Bounds of accept", member(report, "gates"),
                   HTML_COLUMNS(html_gates));
    html_end_section(page);
}

/* --- facts --------------------------------------------------------------------- */

static void
add_fact(struct api_markup *page, const char *name, const json_t *value)
{
    if (!value || json_is_null(value))
        return;
    api_markup_format(page, "<div><dt>%s</dt><dd>", name);
    api_markup_value(page, value);
    api_markup_add(page, "</dd></div>\n");
}

static void
add_facts(struct api_markup *page, const json_t *report)
{
    const json_t *model = member(report, "model");
    const json_t *calibration = member(report, "calibration");
    const json_t *host = member(report, "host");
    html_begin_section(page, "facts", "Facts");
    api_markup_add(page, "<dl class=\"facts\">\n");
    add_fact(page, "model", member(model, "name"));
    add_fact(page, "model id", member(model, "id"));
    add_fact(page, "producer", member(model, "producer"));
    add_fact(page, "opset", member(model, "opset"));
    add_fact(page, "nodes", member(model, "nodes"));
    add_fact(page, "calibration data", member(calibration, "id"));
    add_fact(page, "calibration samples", member(calibration, "samples"));
    add_fact(page, "target", member(member(report, "spec"), "target"));
    add_fact(page, "device", member(report, "device"));
    add_fact(page, "kernels of", member(host, "name"));
    add_fact(page, "processor", member(host, "processor"));
    add_fact(page, "engine", member(report, "engine"));
    api_markup_add(page, "</dl>\n");
    html_end_section(page);
}

/* --- accuracy ------------------------------------------------------------------ */

/* Adds a table of rows, which it frees, where there are any. */
static void
add_rows(struct api_markup *page, const char *label, json_t *rows,
         const struct html_column *columns, size_t n)
{
    page->failed |= !rows;
    if (json_array_size(rows) > 0)
        html_table(page, label, rows, columns, n);
    json_decref(rows);
}

/* Adds a drawing of an output's elements, where the report has some. */
static void
add_output_points(struct api_markup *page, const json_t *output)
{
    const json_t *points = member(output, "points");
    if (json_array_size(points) == 0)
        return;
    api_markup_format(page, "<p class=\"note\">%zu elements of <code>",
                      json_array_size(points));
    api_markup_value(page, member(output, "name"));
    api_markup_add(page, "</code>, which stand for all. On the line both models are "
                         "equal.</p>\n");
    html_pairs(page, points, "float", "quantized");
}

static void
add_points(struct api_markup *page, const json_t *outputs)
{
    for (size_t i = 0; i < json_array_size(outputs); i++)
        add_output_points(page, json_array_get(outputs, i));
}

/* Adds the slices of outputs, and the figures of single samples. */
static void
add_below_outputs(struct api_markup *page, const json_t *outputs)
{
    add_rows(page, "Slices", api_slice_rows(outputs), HTML_COLUMNS(html_slices));
    add_rows(page, "Samples", api_sample_rows(outputs), HTML_COLUMNS(html_samples));
}

/* Adds the classes that the result confuses where the float model does not. */
static void
add_confusions(struct api_markup *page, const json_t *task)
{
    static const struct html_column columns[] = {
        {"label", "label", HTML_NUMBER},
        {"float says", "float", HTML_NUMBER},
        {"quantized says", "quantized", HTML_NUMBER},
        {"rows", "rows", HTML_BAR},
    };
    const json_t *rows = member(task, "confusions");
    if (!json_is_array(rows))
        return;
    api_markup_add(page,
                   "<p class=\"note\">The result gives another class than float to ");
    api_markup_value(page, member(task, "changed"));
    api_markup_add(page, " of ");
    api_markup_value(page, member(task, "rows"));
    api_markup_add(page, " rows.</p>\n");
    if (json_array_size(rows) > 0)
        html_table(page, "Confused classes", rows, HTML_COLUMNS(columns));
}

/* Adds the figures of the user's task, with the runtime that ran the result. */
static void
add_task(struct api_markup *page, const json_t *task)
{
    json_t *rows = json_is_object(task) ? json_pack("[O]", task) : NULL;
    const json_t *interval = member(task, "interval");
    page->failed |= json_is_object(task) && !rows;
    if (!rows)
        return;
    api_markup_add(page, "<h3>The task</h3>\n<p class=\"note\">");
    api_markup_add(page, json_is_true(member(task, "deployed"))
                             ? "As deployed, by "
                             : "By the literal arithmetic of the pairs, by ");
    api_markup_value(page, member(member(task, "runtime"), "name"));
    api_markup_add(page, " ");
    api_markup_value(page, member(member(task, "runtime"), "version"));
    api_markup_add(page, " on ");
    api_markup_value(page, member(task, "processor"));
    if (json_array_size(interval) == 2) {
        api_markup_add(page, ". With 95 % confidence the drop is from ");
        api_markup_value(page, json_array_get(interval, 0));
        api_markup_add(page, " to ");
        api_markup_value(page, json_array_get(interval, 1));
    }
    api_markup_add(page, ".</p>\n");
    html_table(page, "The task", rows, HTML_COLUMNS(html_task));
    json_decref(rows);
    add_confusions(page, task);
}

static void
add_outputs(struct api_markup *page, const json_t *report)
{
    const json_t *evaluation = member(report, "evaluation");
    const json_t *deployed = member(evaluation, "deployed");
    const char *rule = json_string_value(member(evaluation, "rule"));
    if (!json_is_object(evaluation))
        return;
    html_begin_section(page, "outputs", "Outputs");
    api_markup_add(page, "<p class=\"note\">Float against quantized, on ");
    api_markup_value(page, member(evaluation, "samples"));
    const bool is_settled = rule && strcmp(rule, "settled") == 0;
    if (is_settled) {
        api_markup_add(page, " of ");
        api_markup_value(page, member(evaluation, "of"));
    }
    api_markup_add(page,
                   is_settled ? " samples, which settle the figures" : " samples");
    api_markup_add(page, ". Where there is no SQNR, both are equal.</p>\n");
    html_table(page, "Outputs", member(evaluation, "outputs"),
               HTML_COLUMNS(html_outputs));
    add_below_outputs(page, member(evaluation, "outputs"));
    if (json_is_object(deployed)) {
        api_markup_add(page, "<h3>As deployed</h3>\n<p class=\"note\">As ");
        api_markup_value(page, member(member(deployed, "runtime"), "name"));
        api_markup_add(page, " ");
        api_markup_value(page, member(member(deployed, "runtime"), "version"));
        api_markup_add(page, " runs the result on ");
        api_markup_value(page, member(deployed, "processor"));
        api_markup_add(page, ".</p>\n");
        html_table(page, "Outputs as deployed", member(deployed, "outputs"),
                   HTML_COLUMNS(html_outputs));
        add_below_outputs(page, member(deployed, "outputs"));
    }
    add_points(page,
               member(json_is_object(deployed) ? deployed : evaluation, "outputs"));
    add_task(page, member(evaluation, "task"));
    if (json_array_size(member(evaluation, "not_judged")) > 0) {
        api_markup_add(page, "<h3>Not judged</h3>\n");
        html_table(page, "Not judged", member(evaluation, "not_judged"),
                   HTML_COLUMNS(html_unjudged));
    }
    html_end_section(page);
}

static void
add_sensitivity(struct api_markup *page, const json_t *report)
{
    const json_t *costs = member(report, "sensitivity");
    if (json_array_size(costs) == 0)
        return;
    html_begin_section(page, "sensitivity", "Sensitivity");
    html_note(
        page,
        "The cost of each layer at the outputs. The layer with the largest loss by "
        "itself comes first; the gain is that of leaving it alone in float.");
    html_curve(page, costs, "sqnr_db_alone", "name", "layers by rank",
               "SQNR in dB with the layer alone");
    html_table(page, "Sensitivity", costs, HTML_COLUMNS(html_costs));
    html_end_section(page);
}

static void
add_search(struct api_markup *page, const json_t *report)
{
    static const struct html_column columns[] = {
        {"layers in float", "float_layers", HTML_NUMBER},
        {"last of them", "layer", HTML_NAME},
        {"SQNR (dB)", "sqnr_db", HTML_BAR},
        {"same top 1", "top1_agreement", HTML_NUMBER},
    };
    const json_t *search = member(report, "search");
    const json_t *names = member(search, "float_layers");
    if (!json_is_object(search))
        return;
    html_begin_section(page, "search", "Search");
    api_markup_add(page, json_is_true(member(search, "met"))
                             ? "<p>The goal is reached with "
                             : "<p>The goal is not reached with ");
    api_markup_format(page, "%zu layers in float", json_array_size(names));
    for (size_t i = 0; i < json_array_size(names); i++) {
        api_markup_add(page, i ? ", <code>" : ": <code>");
        api_markup_value(page, json_array_get(names, i));
        api_markup_add(page, "</code>");
    }
    api_markup_add(page, ".</p>\n");
    html_curve(page, member(search, "curve"), "sqnr_db", "layer", "steps",
               "SQNR in dB");
    html_table(page, "Steps of the search", member(search, "curve"),
               HTML_COLUMNS(columns));
    html_end_section(page);
}

/* --- cost ---------------------------------------------------------------------- */

static void
add_profile(struct api_markup *page, const json_t *report)
{
    static const char *const names[] = {"float", "default_float", "quantized"};
    static const struct html_column runs[] = {
        {"model", NULL, HTML_TEXT},
        {"p50 (ms)", NULL, HTML_NUMBER},
        {"p90 (ms)", NULL, HTML_NUMBER},
        {"peak memory", NULL, HTML_BYTES},
    };
    const json_t *profile = member(report, "profile");
    if (!json_is_object(profile))
        return;
    html_begin_section(page, "latency", "Latency");
    add_timed_by(page, "<p class=\"note\">Both models ran by turns in ", profile);
    api_markup_add(page, ".</p>\n");
    html_begin_table(page, "Latency", HTML_COLUMNS(runs), false);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *run = member(profile, names[i]);
        if (!json_is_object(run))
            continue;
        api_markup_format(page, "<tr><td>%s", names[i]);
        if (json_is_string(member(run, "precision"))) {
            api_markup_add(page, ", ");
            api_markup_value(page, member(run, "precision"));
        }
        api_markup_add(page, "</td>");
        html_cell(page, HTML_NUMBER, member(run, "p50_ms"), 0);
        html_cell(page, HTML_NUMBER, member(run, "p90_ms"), 0);
        html_cell(page, HTML_BYTES, member(run, "peak_bytes"), 0);
        api_markup_add(page, "</tr>\n");
    }
    html_end_table(page);
    if (json_array_size(member(profile, "operators")))
        html_table(page, "Time by operator", member(profile, "operators"),
                   HTML_COLUMNS(html_operators));
    html_end_section(page);
}

static void
add_timings(struct api_markup *page, json_t *report)
{
    static const struct html_column columns[] = {{"stage", NULL, HTML_TEXT},
                                                 {"seconds", NULL, HTML_BAR}};
    json_t *timings = json_object_get(report, "timings"), *seconds;
    double total = json_number_value(member(timings, "total"));
    const char *stage;
    /* the table of stages has them, in reports that have stages */
    if (json_object_size(timings) == 0 || json_array_size(member(report, "stages")) > 0)
        return;
    html_begin_section(page, "timings", "Timings");
    html_begin_table(page, "Timings", HTML_COLUMNS(columns), false);
    json_object_foreach (timings, stage, seconds) {
        api_markup_add(page, "<tr><td>");
        api_markup_text(page, stage);
        api_markup_add(page, "</td>");
        html_cell(page, HTML_BAR, seconds, total);
        api_markup_add(page, "</tr>\n");
    }
    html_end_table(page);
    html_end_section(page);
}

/* --- warnings ------------------------------------------------------------------ */

/* Returns what to do about a warning; NULL where its detail says all. */
static const char *
advice_for(const char *code)
{
    static const struct {
        const char *code, *text;
    } rows[] = {
#define ADVICE(code, text) {code, text},
#include "documents/advice.h"
#undef ADVICE
    };
    for (size_t i = 0; code && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(code, rows[i].code) == 0)
            return rows[i].text;
    return NULL;
}

static void
add_warnings(struct api_markup *page, const json_t *report)
{
    static const struct html_column columns[] = {
        {"code", NULL, HTML_NAME},
        {"node", NULL, HTML_NAME},
        {"detail", NULL, HTML_TEXT},
        {"what to do", NULL, HTML_TEXT},
    };
    const json_t *warnings = member(report, "warnings");
    if (json_array_size(warnings) == 0)
        return;
    html_begin_section(page, "warnings", "Warnings");
    html_begin_table(page, "Warnings", HTML_COLUMNS(columns), false);
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        const json_t *row = json_array_get(warnings, i);
        const char *advice = advice_for(json_string_value(member(row, "code")));
        api_markup_add(page, "<tr>");
        html_cell(page, HTML_NAME, member(row, "code"), 0);
        html_cell(page, HTML_NAME, member(row, "node"), 0);
        html_cell(page, HTML_TEXT, member(row, "detail"), 0);
        api_markup_format(page, "<td>%s</td></tr>\n", advice ? advice : "");
    }
    html_end_table(page);
    html_end_section(page);
}

/* --- the tables that need nothing of their own --------------------------------- */

static void
add_tables(struct api_markup *page, const json_t *report)
{
    static const struct html_column weights[] = {
        {"weight", "name", HTML_NAME},
        {"layer", "layer", HTML_NAME},
        {"axis", "axis", HTML_NUMBER},
        {"type", "dtype", HTML_TEXT},
        {"granularity", "granularity", HTML_TEXT},
        {"block", "block", HTML_NUMBER},
        {"scales", "scales", HTML_NUMBER},
        {"smallest", "scale_min", HTML_NUMBER},
        {"largest", "scale_max", HTML_BAR},
        {"by channel", "channel_scales", HTML_STEPS},
    };
    static const struct html_column chains[] = {
        {"first", "first", HTML_NAME},
        {"second", "second", HTML_NAME},
        {"channels", "channels", HTML_NUMBER},
        {"outcome", "reason", HTML_TEXT},
    };
    static const struct html_column kept[] = {{"node", "name", HTML_NAME},
                                              {"reason", "reason", HTML_TEXT}};
    static const struct {
        const char *id, *title, *in, *member;
        const struct html_column *columns;
        size_t n;
    } tables[] = {
        {"weights", "Weights", NULL, "weights", HTML_COLUMNS(weights)},
        {"equalization", "Equalization", NULL, "equalization", HTML_COLUMNS(chains)},
        {"kernels", "Nodes without an integer kernel", "kernels", "floats",
         HTML_COLUMNS(kept)},
        {"float", "Nodes that stay float32", "float", "kept", HTML_COLUMNS(kept)},
        {"stages", "Stages", NULL, "stages", HTML_COLUMNS(html_stages)},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const json_t *in = tables[i].in ? member(report, tables[i].in) : report;
        html_table_section(page, tables[i].id, tables[i].title,
                           member(in, tables[i].member), tables[i].columns,
                           tables[i].n);
    }
}

/* Adds a text of several lines. */
static void
add_lines(struct api_markup *page, const char *text)
{
    char *copy = strdup(text), *rest = copy;
    page->failed |= !copy;
    for (const char *line; copy && (line = strsep(&rest, "\n"));) {
        api_markup_text(page, line);
        api_markup_add(page, rest ? "\n" : "");
    }
    free(copy);
}

/* Adds the programs that run the result. */
static void
add_programs(struct api_markup *page, const json_t *report)
{
    const json_t *rows = member(report, "deploy");
    if (json_array_size(rows) == 0)
        return;
    html_begin_section(page, "deploy", "How to run it");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        api_markup_add(page, "<h3>");
        api_markup_text(page, api_text_at(row, "target"));
        api_markup_add(page, ", ");
        api_markup_text(page, api_text_at(row, "language"));
        api_markup_add(page, "</h3>\n<pre>");
        add_lines(page, api_text_at(row, "text"));
        api_markup_add(page, "</pre>\n");
    }
    html_end_section(page);
}

/* Adds the steps of a recipe; a step's spec is JSON. */
static void
add_recipe(struct api_markup *page, const json_t *report)
{
    static const struct html_column columns[] = {
        {"step", NULL, HTML_TEXT},
        {"spec", NULL, HTML_NAME},
        {"SQNR (dB)", NULL, HTML_BAR},
        {"kept", NULL, HTML_TEXT},
    };
    const json_t *recipe = member(report, "recipe");
    double largest = html_largest(recipe, "sqnr_db");
    if (json_array_size(recipe) == 0)
        return;
    html_begin_section(page, "recipe", "Recipe");
    html_note(page,
              "The steps that were tried, in this order, and those that were kept.");
    html_curve(page, recipe, "sqnr_db", "step", "steps", "SQNR in dB");
    html_begin_table(page, "Recipe", HTML_COLUMNS(columns), false);
    for (size_t i = 0; i < json_array_size(recipe); i++) {
        const json_t *row = json_array_get(recipe, i);
        json_t *spec = json_object_get(row, "spec");
        char *text = spec ? api_json_dump(json_incref(spec), JSON_ENCODE_ANY) : NULL;
        api_markup_add(page, "<tr>");
        html_cell(page, HTML_TEXT, member(row, "step"), 0);
        api_markup_add(page, "<td><code>");
        api_markup_text(page, text ? text : "");
        api_markup_add(page, "</code></td>");
        html_cell(page, HTML_BAR, member(row, "sqnr_db"), largest);
        html_cell(page, HTML_TEXT, member(row, "kept"), 0);
        api_markup_add(page, "</tr>\n");
        free(text);
    }
    html_end_table(page);
    html_end_section(page);
}

/* Adds the results that no other one beats, with a drawing of them. */
static void
add_frontier(struct api_markup *page, const json_t *report)
{
    const json_t *frontier = member(report, "frontier");
    if (json_array_size(frontier) == 0)
        return;
    html_begin_section(page, "frontier", "Frontier");
    const bool is_timed =
        json_is_number(json_object_get(json_array_get(frontier, 0), "latency_ratio"));
    html_note(page, is_timed
                        ? "Of the results that were measured, those that no other one "
                          "beats in both time and accuracy. The report as JSON has the "
                          "spec of each."
                        : "Of the results that were judged, those that no other one "
                          "beats in both size and accuracy. The report as JSON has the "
                          "spec of each.");
    html_curve(page, frontier, "sqnr_db", is_timed ? "latency_ratio" : "size_ratio",
               is_timed ? "results, the fastest first" : "results, the smallest first",
               "SQNR in dB");
    html_table(page, "Frontier", frontier, HTML_COLUMNS(html_frontier));
    html_end_section(page);
}

static void
add_report(struct api_markup *page, json_t *report)
{
    const char *name = json_string_value(member(member(report, "model"), "name"));
    html_begin(page, name ? name : "Quantization report");
    api_markup_add(page, "<h1>Quantization report");
    if (name && *name) {
        api_markup_add(page, ": <code>");
        api_markup_text(page, name);
        api_markup_add(page, "</code>");
    }
    api_markup_add(page, "</h1>\n");
    add_verdict(page, report);
    add_warnings(page, report);
    add_outputs(page, report);
    add_recipe(page, report);
    add_frontier(page, report);
    html_layers(page, report);
    html_graph(page, report);
    add_sensitivity(page, report);
    add_search(page, report);
    html_ranges(page, report);
    add_profile(page, report);
    add_tables(page, report);
    html_fused(page, report);
    add_timings(page, report);
    add_programs(page, report);
    add_facts(page, report);
    html_end(page);
}

bool
api_is_report(const char *json, size_t len)
{
    json_t *report = json_loadb(json, len, 0, NULL);
    bool is_report = json_is_integer(member(report, "schema")) &&
                     json_is_object(member(report, "summary"));
    json_decref(report);
    return is_report;
}

char *
api_report_html(const char *json, size_t len)
{
    return api_markup_render(json_loadb(json, len, 0, NULL), add_report);
}
