/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of qdq. Each returns false with the problem that main() prints. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "api/problem.h"

/* What stands on the command line; NULL where it does not. */
struct options {
    const char *model, *spec, *calibration, *out, *report;
    const char *threads_text;
    int threads;
    bool json;
};

bool command_quantize(const struct options *options, struct api_problem *problem);
bool command_plan(const struct options *options, struct api_problem *problem);
bool command_info(const struct options *options, struct api_problem *problem);

#endif
