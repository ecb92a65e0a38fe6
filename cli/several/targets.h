/* SPDX-License-Identifier: Apache-2.0 */
/* The command quantize for a spec with several targets. */
#ifndef CLI_SEVERAL_TARGETS_H
#define CLI_SEVERAL_TARGETS_H

#include "api/targets.h"
#include "commands.h"

/*
 * Quantizes for one target after the other, as a command for that target alone does: OUT.TARGET.onnx,
 * and beside the report and the page those of each, REPORT.TARGET.json and HTML.TARGET.html. The
 * page HTML compares the results. A target that fails leaves those of the others, has its error
 * printed, and fails the command.
 */
bool quantize_targets(const struct options *options,
                      const struct api_target_specs *specs,
                      struct api_problem *problem);

#endif
