/* SPDX-License-Identifier: Apache-2.0 */
/* The commands plan and info, which write nothing. */
#include "config.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/report.h"
#include "external.h"
#include "folder.h"
#include "print.h"
#include "spec.h"
#include "terminal.h"
#include "threads/executor.h"

/* Prints the text and frees it; NULL stands for an encoder that ran out of memory. */
static bool
print_json(char *text, struct api_problem *problem)
{
    if (!text)
        return api_problem_no_memory(problem);
    put_json(stdout, text, strlen(text));
    putchar('\n');
    free(text);
    return true;
}

static bool
plan_file(const struct options *options, struct api_problem *problem)
{
    if (options->url)
        return service_plan(options, problem);
    struct api_spec *spec = NULL;
    struct qdq_engine *engine = NULL;
    struct qdq_model *model = NULL, *prepared = NULL;
    struct qdq_plan *plan = NULL;
    struct qdq_error err = {0};
    bool ok = false;
    if (!spec_read(options, &spec, problem) ||
        !open_engine(options, &threads_executor, &engine, problem) ||
        !external_open_model(options->model, &model, problem))
        goto out;
    if (qdq_model_prepare(model, api_spec_get(spec), &prepared, &err) != QDQ_OK ||
        qdq_plan_make(qdq_engine_catalog(engine), prepared ? prepared : model,
                      api_spec_get(spec), &plan, &err) != QDQ_OK) {
        api_problem_set_engine(problem, &err);
        goto out;
    }
    const struct qdq_plan_view *view = qdq_plan_view(plan);
    if (options->json) {
        ok = print_json(api_plan_encode(view, qdq_model_info(model)), problem);
    } else {
        print_plan(view, options->all, NULL);
        print_warnings(view->warnings, view->n_warnings);
        ok = true;
    }
out:
    qdq_plan_free(&plan);
    qdq_model_free(&prepared);
    qdq_model_free(&model);
    qdq_engine_close(&engine);
    api_spec_free(&spec);
    return ok;
}

/* Does the work of a command on a model, which may be a folder. */
static bool
work_on(const struct options *options,
        bool (*work)(const struct options *, struct api_problem *),
        struct api_problem *problem)
{
    struct folder folder;
    struct options own;
    bool ok =
        folder_open(options, false, &folder, &own, problem) && work(&own, problem);
    folder_close(&folder);
    return ok;
}

bool
command_plan(const struct options *options, struct api_problem *problem)
{
    return work_on(options, plan_file, problem);
}

static bool
describe_file(const struct options *options, struct api_problem *problem)
{
    if (options->url)
        return service_info(options, problem);
    struct qdq_engine *engine = NULL;
    struct qdq_model *model = NULL, *prepared = NULL;
    struct qdq_plan *plan = NULL;
    struct qdq_spec spec;
    bool ok = open_engine(options, &threads_executor, &engine, problem) &&
              external_open_model(options->model, &model, problem);
    if (!ok)
        goto out;
    /* The facts of a model are printed even if no plan can be made of it, for example
       because it has Q/DQ nodes already. */
    qdq_spec_init(&spec);
    const struct qdq_plan_view *view = NULL;
    if (qdq_model_prepare(model, &spec, &prepared, NULL) == QDQ_OK &&
        qdq_plan_make(qdq_engine_catalog(engine), prepared ? prepared : model, &spec,
                      &plan, NULL) == QDQ_OK)
        view = qdq_plan_view(plan);
    if (options->json)
        ok = print_json(api_model_info_encode(qdq_model_info(model), view), problem);
    else
        print_info(qdq_model_info(model), view);
out:
    qdq_plan_free(&plan);
    qdq_model_free(&prepared);
    qdq_model_free(&model);
    qdq_engine_close(&engine);
    return ok;
}

bool
command_info(const struct options *options, struct api_problem *problem)
{
    return work_on(options, describe_file, problem);
}
