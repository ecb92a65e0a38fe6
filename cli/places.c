/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "commands.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "external.h"
#include "files.h"

/* Returns the path without links, "." and ".."; the last part need not exist. The caller frees
   it; NULL where the folder does not exist, or when out of memory. */
static char *
plain_path(const char *path)
{
    char *plain = realpath(path, NULL), *joined = NULL;
    if (plain)
        return plain;
    char *for_folder = strdup(path), *for_base = strdup(path);
    char *folder = for_folder && for_base ? realpath(dirname(for_folder), NULL) : NULL;
    if (folder && asprintf(&joined, "%s/%s", folder, basename(for_base)) < 0)
        joined = NULL;
    free(folder);
    free(for_folder);
    free(for_base);
    return joined;
}

static bool
is_same_place(const char *a, const char *b)
{
    char *plain_a = plain_path(a), *plain_b = plain_path(b);
    bool same = plain_a && plain_b && strcmp(plain_a, plain_b) == 0;
    free(plain_a);
    free(plain_b);
    return same;
}

bool
check_places(const struct options *options, const char *out,
             struct api_problem *problem)
{
    const char *const outputs[] = {out, options->report, options->html,
                                   options->observations};
    const char *const inputs[] = {options->calibration, options->evaluation,
                                  options->spec, options->model};
    const size_t n = sizeof outputs / sizeof *outputs;
    const size_t n_inputs = sizeof inputs / sizeof *inputs;
    for (size_t i = 0; i < n; i++) {
        if (!outputs[i])
            continue;
        for (size_t k = 0; k < i; k++)
            if (outputs[k] && is_same_place(outputs[i], outputs[k]))
                return api_fail(problem, API_IO,
                                "%s is named for two files that are written",
                                outputs[i]);
        for (size_t k = 0; k < n_inputs; k++)
            if (inputs[k] && is_same_place(outputs[i], inputs[k]))
                return api_fail(problem, API_IO, "%s is %s, so it is not overwritten",
                                outputs[i],
                                k == n_inputs - 1 ? "the model itself" : "read");
    }
    return true;
}

bool
check_data_place(const struct options *options, const char *out, const char *data,
                 struct api_problem *problem)
{
    const char *const others[] = {out, options->report, options->html};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i] && is_same_place(data, others[i]))
            return api_fail(problem, API_IO,
                            "%s is named for two files that are written", others[i]);
    return true;
}

bool
is_model_file(int model, const struct external *external, const char *path)
{
    bool found = file_is(model, path);
    for (size_t i = 0; i < external->n; i++)
        found |= file_is(external->files[i].fd, path);
    return found;
}

bool
check_model_files(int model, const struct external *external,
                  const struct options *options, const char *out,
                  struct api_problem *problem)
{
    const char *const written[] = {out, options->report, options->html,
                                   options->observations};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (written[i] && is_model_file(model, external, written[i]))
            return api_fail(
                problem, API_IO, "%s is %s, so it is not overwritten", written[i],
                file_is(model, written[i]) ? "the model itself"
                                           : "the model's own external data");
    return true;
}
