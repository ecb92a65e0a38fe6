/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "several/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "print.h"
#include "several/results.h"

/* The files that one target's run writes. */
struct names {
    char *out, *report, *html; /* owned; NULL where the option is absent */
};

static void
free_names(struct names *names)
{
    free(names->out);
    free(names->report);
    free(names->html);
}

/* Returns PATH with the target before its ending; NULL for no path, or when out of memory. */
static char *
name_for(const char *path, const char *ending, const char *target)
{
    char by[64];
    snprintf(by, sizeof by, ".%s%s", target, ending);
    return path ? path_ending_in(path, ending, by) : NULL;
}

static bool
find_names(const struct options *options, const char *out, const char *target,
           struct names *ret, struct api_problem *problem)
{
    *ret = (struct names){name_for(out, ".onnx", target),
                          name_for(options->report, ".json", target),
                          name_for(options->html, ".html", target)};
    return (ret->out && !ret->report == !options->report &&
            !ret->html == !options->html) ||
           api_problem_no_memory(problem);
}

/* Fails where the page of all results would take the place of another file. */
static bool
check_page(const struct options *options, const char *out,
           const struct api_target_specs *specs, struct api_problem *problem)
{
    bool ok = true;
    for (size_t i = 0; options->html && ok && i < specs->n; i++) {
        struct names names;
        struct options one = *options;
        ok = find_names(options, out, specs->items[i].target, &names, problem);
        one.report = names.report;
        ok = ok && check_places(&one, names.out, problem);
        free_names(&names);
    }
    return ok;
}

/* Quantizes for a target. A failure is printed, and noted in the result. */
static bool
quantize_for(const struct api_target_spec *spec, const struct options *options,
             const char *out, struct compared_result *result,
             struct api_problem *problem)
{
    struct options one = *options;
    struct names names;
    struct kept_report kept = {.text = NULL};
    bool ok = find_names(options, out, spec->target, &names, problem);
    if (ok) {
        one.whole_spec = spec->text;
        one.whole_spec_len = strlen(spec->text);
        one.out = names.out;
        one.report = names.report;
        one.html = names.html;
        one.brief = true;
        one.kept = &kept;
        fprintf(stderr, "qdq: target %s\n", spec->target);
        if (!quantize_one(&one, &result->failed))
            print_problem(&result->failed);
        result->text = kept.text;
        result->len = kept.len;
    }
    free_names(&names);
    return ok;
}

static bool
quantize_all(const struct options *options, const char *out,
             const struct api_target_specs *specs, struct results *all,
             struct api_problem *problem)
{
    for (size_t i = 0; i < specs->n; i++) {
        struct compared_result *result =
            results_add(all, specs->items[i].target, problem);
        if (!result || !quantize_for(&specs->items[i], options, out, result, problem))
            return false;
    }
    return true;
}

bool
quantize_targets(const struct options *options, const struct api_target_specs *specs,
                 struct api_problem *problem)
{
    struct results all = {.n = 0};
    struct output page = OUTPUT_NONE;
    char *own =
        options->out ? NULL : path_ending_in(options->model, ".onnx", ".int8.onnx");
    const char *out = options->out ? options->out : own;
    bool ok = out || api_problem_no_memory(problem);
    ok = ok && check_page(options, out, specs, problem) &&
         output_open(options->html, &page, problem) &&
         quantize_all(options, out, specs, &all, problem) &&
         results_print(&all, problem) &&
         (!options->html || results_write_page(&all, &page, problem)) &&
         results_check(&all, problem);
    output_close(&page);
    results_fini(&all);
    free(own);
    return ok;
}
