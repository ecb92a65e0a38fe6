/* SPDX-License-Identifier: Apache-2.0 */
/* The command compare: a model for several targets, or reports, in one table and one page. */
#include "config.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "print.h"
#include "several/results.h"
#include "spec.h"

/* --- a model for each target ------------------------------------------------------ */

/* Makes the spec of the options' target. *ret_without is the same without a frontier where that target
   measures none, for the reason in *why; else NULL. The caller frees both, also after a failure. */
static bool
make_spec(const struct options *one, char **ret_text, char **ret_without,
          struct api_problem *why, struct api_problem *problem)
{
    *ret_text = *ret_without = NULL;
    return spec_text(one, ret_text, problem) &&
           (!*ret_text || api_spec_without_frontier(*ret_text, ret_without, why) ||
            api_problem_no_memory(problem));
}

/* Fails where the spec asks for a frontier that none of the targets can measure. */
static bool
check_frontier(const struct results *all, const struct options *options,
               struct api_problem *problem)
{
    struct api_problem why = {0};
    for (size_t i = 0; i < all->n; i++) {
        struct options one = *options;
        struct api_problem failed = {0}; /* it is told when that target's turn comes */
        char *text, *without;
        one.target = all->items[i].name;
        const bool has_none =
            make_spec(&one, &text, &without, &why, &failed) && without;
        free(without);
        free(text);
        if (!has_none)
            return true;
    }
    *problem = why;
    return false;
}

/* Quantizes for the target of the options, without a frontier where that one measures none. */
static bool
quantize_with_target(struct options *one, struct api_problem *problem)
{
    struct api_problem why;
    char *text, *without;
    bool ok = make_spec(one, &text, &without, &why, problem);
    if (ok && without)
        fprintf(stderr, "qdq: %s: no frontier for it: %s\n", one->target, why.detail);
    one->whole_spec = without ? without : text;
    one->whole_spec_len = one->whole_spec ? strlen(one->whole_spec) : 0;
    ok = ok && command_quantize(one, problem);
    free(without);
    free(text);
    return ok;
}

/* Quantizes for the result's target. A failure is printed, and leaves the text NULL. */
static bool
quantize_for(struct compared_result *result, const struct options *options,
             const char *out, struct api_problem *problem)
{
    struct options one = *options;
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
        if (!quantize_with_target(&one, &result->failed))
            print_problem(&result->failed);
        else
            ok = report_read(result->path, &result->text, &result->len, problem);
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
add_targets(struct results *all, const char *list, struct api_problem *problem)
{
    char name[48];
    while ((list = next_name(list, name, sizeof name))) {
        for (size_t i = 0; i < all->n; i++)
            if (strcmp(all->items[i].name, name) == 0)
                return api_fail(problem, API_INVALID_SPEC,
                                "--targets: %s stands there twice", name);
        if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name) ||
            !*name)
            return api_fail(problem, API_INVALID_SPEC, "--targets: \"%s\" is no target",
                            name);
        if (!results_add(all, name, problem))
            return false;
    }
    return true;
}

static bool
quantize_all(struct results *all, const struct options *options,
             struct api_problem *problem)
{
    char *own =
        options->out ? NULL : path_ending_in(options->model, ".onnx", ".int8.onnx");
    const char *out = options->out ? options->out : own;
    bool ok = out ? add_targets(all, options->targets, problem) &&
                        check_frontier(all, options, problem)
                  : api_problem_no_memory(problem);
    for (size_t i = 0; ok && i < all->n; i++)
        ok = quantize_for(&all->items[i], options, out, problem);
    free(own);
    return ok;
}

/* --- reports that are there --------------------------------------------------------- */

static bool
add_report(struct results *all, const char *path, struct api_problem *problem)
{
    struct compared_result *result = results_add(all, path, problem);
    return result && report_read(path, &result->text, &result->len, problem);
}

static bool
read_all(struct results *all, const struct options *options,
         struct api_problem *problem)
{
    bool ok = add_report(all, options->model, problem);
    for (size_t i = 0; ok && i < options->n_files; i++)
        ok = add_report(all, options->files[i], problem);
    return ok;
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
    struct results all = {.n = 0};
    struct output page = OUTPUT_NONE;
    bool is_model = options->targets;
    bool ok = check_operands(options, problem);
    ok = ok && (is_model ? quantize_all(&all, options, problem)
                         : read_all(&all, options, problem));
    ok = ok && results_print(&all, problem) &&
         output_open(options->html, &page, problem) &&
         (!options->html || results_write_page(&all, &page, problem)) &&
         results_check(&all, problem);
    output_close(&page);
    results_fini(&all);
    return ok;
}
