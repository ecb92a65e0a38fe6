/* SPDX-License-Identifier: Apache-2.0 */
/* The command compare: a model for several targets, or reports, in one table and one page. */
#include "config.h"
#include "commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/files.h"
#include "api/overview.h"
#include "files.h"
#include "print.h"
#include "terminal.h"

/* A result: its report in a file, and the text of that. */
struct result {
    char *name, *path, *text; /* owned; text is NULL where the work failed */
    size_t len;
    enum api_code failed; /* why, where it did */
};

struct comparison {
    struct result *results;
    size_t n;
};

static void
free_comparison(struct comparison *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->results[i].name);
        free(all->results[i].path);
        free(all->results[i].text);
    }
    free(all->results);
}

/* --- a model for each target ------------------------------------------------------ */

/* Quantizes for the result's target. A failure is printed, and leaves the text NULL. */
static bool
quantize_for(struct result *result, const struct options *options, const char *out,
             struct api_problem *problem)
{
    struct options one = *options;
    struct api_problem failed = {0};
    char ending[64];
    snprintf(ending, sizeof ending, ".%s.onnx", result->name);
    char *model = path_ending_in(out, ".onnx", ending);
    result->path = model ? path_ending_in(model, ".onnx", ".json") : NULL;
    bool ok = result->path || api_problem_no_memory(problem);
    if (ok) {
        one.target = result->name;
        one.out = model;
        one.report = result->path;
        one.html = NULL;
        one.brief = true;
        fprintf(stderr, "qdq: target %s\n", result->name);
        if (!command_quantize(&one, &failed)) {
            print_problem(&failed);
            result->failed = failed.code;
        } else {
            ok = report_read(result->path, &result->text, &result->len, problem);
        }
    }
    free(model);
    return ok;
}

/* Takes the next name from a list with commas. Returns NULL behind the last one. */
static const char *
next_name(const char *list, char *to, size_t size)
{
    size_t len = strcspn(list, ",");
    if (!*list)
        return NULL;
    snprintf(to, size, "%.*s", (int)(len < size ? len : size - 1), list);
    return list + len + (list[len] == ',');
}

static bool
add_result(struct comparison *all, const char *name, struct api_problem *problem)
{
    struct result *grown = realloc(all->results, (all->n + 1) * sizeof *all->results);
    if (grown) {
        all->results = grown;
        grown[all->n] = (struct result){.name = strdup(name)};
        if (grown[all->n++].name)
            return true;
    }
    return api_problem_no_memory(problem);
}

static bool
add_targets(struct comparison *all, const char *list, struct api_problem *problem)
{
    char name[48];
    while ((list = next_name(list, name, sizeof name))) {
        for (size_t i = 0; i < all->n; i++)
            if (strcmp(all->results[i].name, name) == 0)
                return api_fail(problem, API_INVALID_SPEC,
                                "--targets: %s stands there twice", name);
        if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name) ||
            !*name)
            return api_fail(problem, API_INVALID_SPEC, "--targets: \"%s\" is no target",
                            name);
        if (!add_result(all, name, problem))
            return false;
    }
    return true;
}

static bool
quantize_all(struct comparison *all, const struct options *options,
             struct api_problem *problem)
{
    char *own =
        options->out ? NULL : path_ending_in(options->model, ".onnx", ".int8.onnx");
    const char *out = options->out ? options->out : own;
    bool ok = out ? add_targets(all, options->targets, problem)
                  : api_problem_no_memory(problem);
    for (size_t i = 0; ok && i < all->n; i++)
        ok = quantize_for(&all->results[i], options, out, problem);
    free(own);
    return ok;
}

/* --- reports that are there --------------------------------------------------------- */

static bool
add_report(struct comparison *all, const char *path, struct api_problem *problem)
{
    if (!add_result(all, path, problem))
        return false;
    struct result *result = &all->results[all->n - 1];
    return report_read(path, &result->text, &result->len, problem);
}

static bool
read_all(struct comparison *all, const struct options *options,
         struct api_problem *problem)
{
    bool ok = add_report(all, options->model, problem);
    for (size_t i = 0; ok && i < options->n_files; i++)
        ok = add_report(all, options->files[i], problem);
    return ok;
}

/* --- the table and the page ---------------------------------------------------------- */

/* Prints a number in a column, or a dash for none. */
static void
print_number(double value, int digits)
{
    if (isnan(value))
        printf("  %9s", "-");
    else
        printf("  %9.*f", digits, value);
}

static int
name_width(const struct comparison *all)
{
    size_t width = 6;
    for (size_t i = 0; i < all->n; i++)
        if (strlen(all->results[i].name) > width)
            width = strlen(all->results[i].name);
    return width > 40 ? 40 : (int)width;
}

static bool
print_row(const struct result *result, int width, struct api_problem *problem)
{
    struct api_overview_row row;
    const struct api_overviewed report = {result->name, result->text, result->len};
    put_text(stdout, result->name, width);
    if (!result->text) {
        printf("  failed\n");
        return true;
    }
    if (!api_overview_read(&report, &row)) {
        printf("\n");
        return api_fail(problem, API_INVALID_JSON, "%s: not a report", result->path);
    }
    printf("  %4d of %-4d", row.quantized_layers, row.layers);
    print_number(row.size_ratio, 3);
    print_number(row.sqnr_db, 2);
    print_number(row.p5_db, 2);
    print_number(row.latency_ratio, 3);
    printf("  %-7s  ", *row.verdict ? row.verdict : "-");
    put_text(stdout, *row.runtime ? row.runtime : "literal arithmetic", 0);
    printf("\n");
    return true;
}

static bool
print_table(const struct comparison *all, struct api_problem *problem)
{
    int width = name_width(all);
    bool ok = true;
    printf("%-*s  %-12s  %9s  %9s  %9s  %9s  %-7s  %s\n", width, "", "integers", "size",
           "SQNR (dB)", "5th pct.", "latency", "verdict", "judged by");
    for (size_t i = 0; ok && i < all->n; i++)
        ok = print_row(&all->results[i], width, problem);
    return ok;
}

/* Writes the page of the results that are there. */
static bool
write_page(const struct comparison *all, const char *path, struct api_problem *problem)
{
    struct output out = OUTPUT_NONE;
    struct api_overviewed *reports = calloc(all->n, sizeof *reports);
    size_t n = 0;
    for (size_t i = 0; reports && i < all->n; i++)
        if (all->results[i].text)
            reports[n++] = (struct api_overviewed){
                all->results[i].name, all->results[i].text, all->results[i].len};
    char *page = reports ? api_overview_html(reports, n) : NULL;
    bool ok = page ? output_open(path, &out, problem) &&
                         output_write(&out, page, problem) &&
                         output_commit(&out, problem)
                   : api_problem_no_memory(problem);
    output_close(&out);
    free(page);
    free(reports);
    return ok;
}

/* Fails where a target's result could not be made. */
static bool
check_all(const struct comparison *all, struct api_problem *problem)
{
    for (size_t i = 0; i < all->n; i++)
        if (!all->results[i].text)
            return api_fail(problem, all->results[i].failed,
                            "no result for target %s; its error stands above",
                            all->results[i].name);
    return true;
}

static bool
check_operands(const struct options *options, struct api_problem *problem)
{
    if (options->targets && !*options->targets)
        return api_fail(problem, API_BAD_REQUEST,
                        "--targets is empty; name one or several, with commas between");
    if (options->targets)
        return options->n_files == 0 ||
               api_fail(problem, API_BAD_REQUEST,
                        "--targets is for one model, and \"%s\" follows it",
                        options->files[0]);
    return options->n_files > 0 ||
           api_fail(problem, API_BAD_REQUEST,
                    "a comparison needs two reports, or a model and --targets");
}

bool
command_compare(const struct options *options, struct api_problem *problem)
{
    struct comparison all = {.n = 0};
    bool is_model = options->targets;
    bool ok = check_operands(options, problem);
    ok = ok && (is_model ? quantize_all(&all, options, problem)
                         : read_all(&all, options, problem));
    ok = ok && print_table(&all, problem) &&
         (!options->html || write_page(&all, options->html, problem)) &&
         check_all(&all, problem);
    free_comparison(&all);
    return ok;
}
