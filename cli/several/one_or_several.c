/* SPDX-License-Identifier: Apache-2.0 */
/* The command quantize: one result, or one for each of several targets. */
#include "config.h"
#include "commands.h"

#include <stdlib.h>

#include "files.h"
#include "folder.h"
#include "several/targets.h"
#include "spec.h"

bool
command_quantize(const struct options *options, struct api_problem *problem)
{
    struct api_target_specs specs = {.n = 0};
    struct options read = *options;
    char *text = NULL;
    if (is_folder(options->model))
        return quantize_one(options, problem);
    bool ok = spec_split(options, &text, &read.whole_spec_len, &specs, problem);
    if (text)
        read.whole_spec = text;
    ok = ok && (specs.n ? quantize_targets(&read, &specs, problem)
                        : quantize_one(&read, problem));
    api_target_specs_fini(&specs);
    free(text);
    return ok;
}
