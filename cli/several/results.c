/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "several/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/overview.h"
#include "terminal.h"

struct compared_result *
results_add(struct results *all, const char *name, struct api_problem *problem)
{
    struct compared_result *grown =
        realloc(all->items, (all->n + 1) * sizeof *all->items);
    if (grown) {
        all->items = grown;
        grown[all->n] = (struct compared_result){.name = strdup(name)};
        if (grown[all->n++].name)
            return &grown[all->n - 1];
    }
    api_problem_no_memory(problem);
    return NULL;
}

void
results_fini(struct results *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->items[i].name);
        free(all->items[i].path);
        free(all->items[i].text);
    }
    free(all->items);
    *all = (struct results){.n = 0};
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
name_width(const struct results *all)
{
    size_t width = 6;
    for (size_t i = 0; i < all->n; i++)
        if (strlen(all->items[i].name) > width)
            width = strlen(all->items[i].name);
    return width > 40 ? 40 : (int)width;
}

/* Prints the figures of a result and reads them. A result without a report has none. */
static bool
print_row(const struct compared_result *result, int width, struct api_overview_row *ret,
          struct api_problem *problem)
{
    struct api_overview_row row;
    const struct api_overviewed report = {
        .name = result->name, .json = result->text, .len = result->len};
    *ret = (struct api_overview_row){.layers = 0};
    put_text(stdout, result->name, width);
    if (!result->text) {
        printf("  failed\n");
        return true;
    }
    if (!api_overview_read(&report, &row)) {
        printf("\n");
        return api_fail(problem, API_INVALID_JSON, "%s: not a report",
                        result->path ? result->path : result->name);
    }
    printf("  %4d of %-4d", row.quantized_layers, row.layers);
    print_number(row.size_ratio, 3);
    print_number(row.sqnr_db, 2);
    print_number(row.p5_db, 2);
    print_number(row.latency_ratio, 3);
    printf("  %-7s  ", *row.verdict ? row.verdict : "-");
    put_text(stdout, *row.runtime ? row.runtime : "literal arithmetic", 0);
    printf("\n");
    *ret = row;
    return true;
}

bool
results_print(const struct results *all, struct api_problem *problem)
{
    int width = name_width(all);
    struct api_overview_row first = {.layers = 0}, row;
    bool ok = true, differ = false;
    printf("%-*s  %-12s  %9s  %9s  %9s  %9s  %-7s  %s\n", width, "", "integers", "size",
           "SQNR (dB)", "5th pct.", "latency", "verdict", "judged by");
    for (size_t i = 0; ok && i < all->n; i++) {
        ok = print_row(&all->items[i], width, &row, problem);
        differ = differ || api_overview_differs(&first, &row);
        if (!*first.latency_runtime)
            first = row;
    }
    if (differ)
        fprintf(stderr, "qdq: %s\n", api_overview_differ);
    return ok;
}

bool
results_write_page(const struct results *all, struct output *to,
                   struct api_problem *problem)
{
    struct api_overviewed *reports = calloc(all->n, sizeof *reports);
    for (size_t i = 0; reports && i < all->n; i++) {
        const struct compared_result *one = &all->items[i];
        reports[i] = (struct api_overviewed){
            .name = one->name, .json = one->text, .len = one->len};
        if (one->failed.set) {
            reports[i].problem = api_problem_slug(one->failed.code);
            reports[i].detail = one->failed.detail;
        }
    }
    char *page = reports ? api_overview_html(reports, all->n) : NULL;
    bool ok = page ? output_write(to, page, problem) && output_commit(to, problem)
                   : api_problem_no_memory(problem);
    free(page);
    free(reports);
    return ok;
}

bool
results_check(const struct results *all, struct api_problem *problem)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->items[i].failed.set)
            return api_fail(problem, all->items[i].failed.code,
                            "no result for target %s; its error stands above",
                            all->items[i].name);
    return true;
}
