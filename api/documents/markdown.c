/* SPDX-License-Identifier: Apache-2.0 */
/* The report for people. Its JSON is turned into Markdown (CommonMark with GitHub's
   tables). */
#include "config.h"
#include "api/report.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "documents/output_rows.h"
#include "documents/tables.h"

enum { WORST_LAYERS = 10 };

/* --- text ----------------------------------------------------------------- */

/* Adds a text of a stranger in one line and one cell, escaped so that it is shown
   unchanged. A "_" within a word has no meaning in Markdown and is not escaped. */
static void
add_escaped(struct api_markup *text, const char *piece)
{
    bool in_word = false;
    for (; *piece; piece++) {
        bool underscore = *piece == '_' && in_word;
        if ((unsigned char)*piece < ' ' || *piece == 0x7f) {
            api_markup_add(text, " ");
        } else {
            if (!underscore && strchr("\\`*_[]<>|~&", *piece))
                api_markup_add(text, "\\");
            api_markup_format(text, "%c", *piece);
        }
        in_word = underscore || isalnum((unsigned char)*piece);
    }
}

/* Adds a value in the form for a cell. A null or absent value is a dash. */
static void
add_value(struct api_markup *text, const json_t *value)
{
    if (json_is_string(value))
        add_escaped(text, json_string_value(value));
    else if (value && !json_is_null(value) && !json_is_array(value) &&
             !json_is_object(value))
        api_markup_value(text, value);
    else
        api_markup_add(text, "-");
}

/* --- tables --------------------------------------------------------------- */

static void
add_title(struct api_markup *text, const char *title)
{
    api_markup_format(text, "\n## %s\n\n", title);
}

static void
begin_table(struct api_markup *text, const struct html_column *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        api_markup_format(text, i == 0 ? "| %s" : " | %s", columns[i].title);
    api_markup_add(text, " |\n|");
    for (size_t i = 0; i < n; i++)
        api_markup_add(text, html_is_number(columns[i].kind) ? " ---: |" : " --- |");
    api_markup_add(text, "\n");
}

static void
add_cell(struct api_markup *text, enum html_kind kind, const json_t *value)
{
    if (kind == HTML_BYTES && json_is_number(value))
        api_markup_bytes(text, json_number_value(value));
    else
        add_value(text, value);
}

static void
add_row(struct api_markup *text, const struct html_column *columns, size_t n,
        const json_t *row)
{
    for (size_t i = 0; i < n; i++) {
        api_markup_add(text, i == 0 ? "| " : " | ");
        add_cell(text, columns[i].kind, json_object_get(row, columns[i].member));
    }
    api_markup_add(text, " |\n");
}

/* Adds a chapter with a table, whose rows are those of an array. Adds nothing for an
   empty one. */
static void
add_table(struct api_markup *text, const char *title, const json_t *rows,
          const struct html_column *columns, size_t n)
{
    if (json_array_size(rows) == 0)
        return;
    add_title(text, title);
    begin_table(text, columns, n);
    for (size_t i = 0; i < json_array_size(rows); i++)
        add_row(text, columns, n, json_array_get(rows, i));
}

/* --- chapters ------------------------------------------------------------- */

static void
add_fact(struct api_markup *text, const char *name, const json_t *value)
{
    if (!value || json_is_null(value))
        return;
    api_markup_format(text, "- %s: ", name);
    add_value(text, value);
    api_markup_add(text, "\n");
}

static void
add_head(struct api_markup *text, const json_t *report)
{
    const json_t *model = json_object_get(report, "model");
    const json_t *calibration = json_object_get(report, "calibration");
    api_markup_add(text, "# Quantization report\n\n");
    add_fact(text, "model", json_object_get(model, "name"));
    add_fact(text, "model id", json_object_get(model, "id"));
    add_fact(text, "producer", json_object_get(model, "producer"));
    add_fact(text, "opset", json_object_get(model, "opset"));
    add_fact(text, "nodes", json_object_get(model, "nodes"));
    add_fact(text, "calibration data", json_object_get(calibration, "id"));
    add_fact(text, "calibration samples", json_object_get(calibration, "samples"));
    add_fact(text, "device", json_object_get(report, "device"));
    add_fact(text, "engine", json_object_get(report, "engine"));
}

static void
add_summary(struct api_markup *text, const json_t *report)
{
    static const struct html_column columns[] = {
        {"layers", "layers", HTML_NUMBER},
        {"quantized layers", "quantized_layers", HTML_NUMBER},
        {"Q/DQ pairs", "qdq_pairs", HTML_NUMBER},
        {"bytes before", "size_before", HTML_NUMBER},
        {"bytes after", "size_after", HTML_NUMBER},
        {"verdict", "verdict", HTML_TEXT},
        {"judged by", "judged_by", HTML_TEXT},
    };
    const json_t *summary = json_object_get(report, "summary");
    double before = json_number_value(json_object_get(summary, "size_before"));
    double after = json_number_value(json_object_get(summary, "size_after"));
    add_title(text, "Summary");
    begin_table(text, HTML_COLUMNS(columns));
    add_row(text, HTML_COLUMNS(columns), summary);
    if (before > 0 && after > 0)
        api_markup_format(text, "\nThe file has %.1f %% of its size.\n",
                          100 * after / before);
}

/* Compares by SQNR, ascending. Layers whose outputs are equal (null) come last. */
static int
compare_layers(const void *a, const void *b)
{
    const json_t *left = json_object_get(*(json_t *const *)a, "sqnr_db");
    const json_t *right = json_object_get(*(json_t *const *)b, "sqnr_db");
    if (!json_is_number(left) || !json_is_number(right))
        return json_is_number(right) - json_is_number(left);
    double x = json_number_value(left), y = json_number_value(right);
    return (x > y) - (x < y);
}

static void
add_worst_layers(struct api_markup *text, const json_t *layers)
{
    static const struct html_column columns[] = {{"layer", "name", HTML_TEXT},
                                                 {"SQNR (dB)", "sqnr_db", HTML_NUMBER}};
    size_t n = json_array_size(layers);
    json_t **rows = calloc(n + 1, sizeof *rows);
    if (!rows)
        text->failed = true;
    if (!rows || n == 0) {
        free(rows);
        return;
    }
    for (size_t i = 0; i < n; i++)
        rows[i] = json_array_get(layers, i);
    qsort(rows, n, sizeof *rows, compare_layers);
    add_title(text, "Worst layers");
    begin_table(text, HTML_COLUMNS(columns));
    for (size_t i = 0; i < n && i < WORST_LAYERS; i++)
        add_row(text, HTML_COLUMNS(columns), rows[i]);
    free(rows);
}

/* Adds the bounds of `accept`. Reports of earlier versions list only those that were
   missed. */
static void
add_gates(struct api_markup *text, const json_t *report)
{
    static const struct html_column missed[] = {
        {"output", "output", HTML_TEXT},
        {"bound", "gate", HTML_TEXT},
        {"asked", "bound", HTML_NUMBER},
        {"found", "value", HTML_NUMBER},
    };
    const json_t *all = json_object_get(report, "gates");
    const json_t *evaluation = json_object_get(report, "evaluation");
    if (all)
        add_table(text, "Bounds", all, HTML_COLUMNS(html_gates));
    else
        add_table(text, "Missed", json_object_get(evaluation, "missed"),
                  HTML_COLUMNS(missed));
}

/* Adds a table of rows, which it frees. */
static void
add_rows(struct api_markup *text, const char *title, json_t *rows,
         const struct html_column *columns, size_t n)
{
    text->failed |= !rows;
    add_table(text, title, rows, columns, n);
    json_decref(rows);
}

static void
add_outputs(struct api_markup *text, const json_t *outputs, const char *title,
            const char *slices, const char *samples)
{
    add_table(text, title, outputs, HTML_COLUMNS(html_outputs));
    add_rows(text, slices, api_slice_rows(outputs), HTML_COLUMNS(html_slices));
    add_rows(text, samples, api_sample_rows(outputs), HTML_COLUMNS(html_samples));
}

/* Adds the figures of the user's task, with the runtime that ran the result. */
static void
add_task(struct api_markup *text, const json_t *task)
{
    json_t *rows = json_is_object(task) ? json_pack("[O]", task) : NULL;
    const json_t *runtime = json_object_get(task, "runtime");
    text->failed |= json_is_object(task) && !rows;
    if (!rows)
        return;
    add_table(text, "The task", rows, HTML_COLUMNS(html_task));
    api_markup_add(text, "\nThe task was run by ");
    add_value(text, json_object_get(runtime, "name"));
    api_markup_add(text, " ");
    add_value(text, json_object_get(runtime, "version"));
    api_markup_add(text, " on ");
    add_value(text, json_object_get(task, "processor"));
    api_markup_add(text, json_is_true(json_object_get(task, "deployed"))
                             ? ", as deployed.\n"
                             : ", by the literal arithmetic of the pairs.\n");
    json_decref(rows);
}

static void
add_evaluation(struct api_markup *text, const json_t *report)
{
    const json_t *evaluation = json_object_get(report, "evaluation");
    const json_t *samples = json_object_get(evaluation, "samples");
    const char *rule = json_string_value(json_object_get(evaluation, "rule"));
    add_gates(text, report);
    add_outputs(text, json_object_get(evaluation, "outputs"), "Outputs", "Slices",
                "Samples");
    add_outputs(text,
                json_object_get(json_object_get(evaluation, "deployed"), "outputs"),
                "Outputs as deployed", "Slices as deployed", "Samples as deployed");
    add_task(text, json_object_get(evaluation, "task"));
    if (json_is_integer(samples)) {
        api_markup_add(text, "\nFloat against quantized, on this many samples: ");
        add_value(text, samples);
        if (rule && strcmp(rule, "settled") == 0) {
            api_markup_add(text, " of ");
            add_value(text, json_object_get(evaluation, "of"));
            api_markup_add(text, ", which settle the figures");
        }
        api_markup_add(text, ". No SQNR: both are equal.\n");
    }
    add_table(text, "Not judged", json_object_get(evaluation, "not_judged"),
              HTML_COLUMNS(html_unjudged));
    add_worst_layers(text, json_object_get(evaluation, "layers"));
}

/* Adds a row for each model. */
static void
add_profile(struct api_markup *text, const json_t *report)
{
    static const struct html_column columns[] = {
        {"median (ms)", "p50_ms", HTML_NUMBER},
        {"90 % (ms)", "p90_ms", HTML_NUMBER},
        {"peak memory", "peak_bytes", HTML_BYTES},
    };
    const json_t *profile = json_object_get(report, "profile");
    const json_t *own = json_object_get(profile, "default_float");
    if (!json_is_object(profile))
        return;
    add_title(text, "Latency");
    json_t *runtime = api_runtime_text(json_object_get(profile, "runtime"));
    text->failed |= !runtime;
    add_fact(text, "runtime", runtime);
    json_decref(runtime);
    add_fact(text, "processor", json_object_get(profile, "processor"));
    add_fact(text, "quantized / float", json_object_get(profile, "ratio"));
    if (json_is_object(own)) {
        add_fact(text, "precision that the runtime would choose",
                 json_object_get(own, "precision"));
        api_markup_add(
            text, "\nThe float model, the float model with that precision, then the "
                  "quantized model:\n\n");
    } else {
        api_markup_add(text, "\nThe float model, then the quantized model:\n\n");
    }
    begin_table(text, HTML_COLUMNS(columns));
    add_row(text, HTML_COLUMNS(columns), json_object_get(profile, "float"));
    if (json_is_object(own))
        add_row(text, HTML_COLUMNS(columns), own);
    add_row(text, HTML_COLUMNS(columns), json_object_get(profile, "quantized"));
    add_table(text, "Time by operator", json_object_get(profile, "operators"),
              HTML_COLUMNS(html_operators));
}

static void
add_what_ifs(struct api_markup *text, const json_t *report)
{
    const json_t *search = json_object_get(report, "search");
    const json_t *layers = json_object_get(search, "float_layers");
    add_table(text, "Sensitivity", json_object_get(report, "sensitivity"),
              HTML_COLUMNS(html_costs));
    add_table(text, "Frontier", json_object_get(report, "frontier"),
              HTML_COLUMNS(html_frontier));
    if (!json_is_object(search))
        return;
    add_title(text, "Search");
    add_fact(text, "goal reached", json_object_get(search, "met"));
    for (size_t i = 0; i < json_array_size(layers); i++)
        add_fact(text, "left in float", json_array_get(layers, i));
}

static void
add_tensors(struct api_markup *text, const json_t *report)
{
    static const struct html_column tensors[] = {
        {"tensor", "name", HTML_TEXT},   {"min", "min", HTML_NUMBER},
        {"max", "max", HTML_NUMBER},     {"type", "dtype", HTML_TEXT},
        {"scale", "scale", HTML_NUMBER}, {"zero", "zero_point", HTML_NUMBER},
        {"method", "method", HTML_TEXT}, {"samples", "samples", HTML_NUMBER},
    };
    static const struct html_column weights[] = {
        {"weight", "name", HTML_TEXT},
        {"layer", "layer", HTML_TEXT},
        {"axis", "axis", HTML_NUMBER},
        {"type", "dtype", HTML_TEXT},
        {"granularity", "granularity", HTML_TEXT},
        {"block", "block", HTML_NUMBER},
    };
    add_table(text, "Tensors", json_object_get(report, "tensors"),
              HTML_COLUMNS(tensors));
    add_table(text, "Weights", json_object_get(report, "weights"),
              HTML_COLUMNS(weights));
}

static void
add_timings(struct api_markup *text, json_t *report)
{
    static const struct html_column columns[] = {{"stage", NULL, HTML_TEXT},
                                                 {"seconds", NULL, HTML_NUMBER}};
    json_t *timings = json_object_get(report, "timings");
    const char *stage;
    json_t *seconds;
    if (json_object_size(timings) == 0)
        return;
    add_title(text, "Timings");
    begin_table(text, HTML_COLUMNS(columns));
    json_object_foreach (timings, stage, seconds) {
        api_markup_add(text, "| ");
        add_escaped(text, stage);
        api_markup_add(text, " | ");
        add_value(text, seconds);
        api_markup_add(text, " |\n");
    }
}

/* Adds a text as a block of code: each of its lines is indented, so that none can end the block. */
static void
add_code(struct api_markup *text, const char *code)
{
    while (*code) {
        size_t len = strcspn(code, "\r\n");
        api_markup_format(text, "    %.*s\n", (int)(len < INT_MAX ? len : INT_MAX),
                          code);
        code += len + (code[len] != '\0');
    }
    api_markup_add(text, "\n");
}

/* Adds the programs that run the result. */
static void
add_programs(struct api_markup *text, const json_t *report)
{
    const json_t *rows = json_object_get(report, "deploy");
    if (json_array_size(rows) > 0)
        add_title(text, "How to run it");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        add_escaped(text, api_text_at(row, "target"));
        api_markup_add(text, ", ");
        add_escaped(text, api_text_at(row, "language"));
        api_markup_add(text, ":\n\n");
        add_code(text, api_text_at(row, "text"));
    }
}

static void
add_report(struct api_markup *text, json_t *report)
{
    static const struct html_column warnings[] = {
        {"code", "code", HTML_TEXT},
        {"node", "node", HTML_TEXT},
        {"detail", "detail", HTML_TEXT},
    };
    add_head(text, report);
    add_summary(text, report);
    add_evaluation(text, report);
    add_profile(text, report);
    add_what_ifs(text, report);
    add_table(text, "Warnings", json_object_get(report, "warnings"),
              HTML_COLUMNS(warnings));
    add_tensors(text, report);
    add_timings(text, report);
    add_table(text, "Stages", json_object_get(report, "stages"),
              HTML_COLUMNS(html_stages));
    add_programs(text, report);
}

char *
api_report_markdown(const char *json, size_t len)
{
    return api_markup_render(json_loadb(json, len, 0, NULL), add_report);
}
