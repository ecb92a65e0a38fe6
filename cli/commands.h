/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of qdq. Each returns false with the problem that main() prints. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "api/problem.h"
#include "qdq/quantize.h"

/* The command line; NULL for what it does not say. */
struct options {
    const char *model, *spec, *calibration, *observations, *out, *report, *cases;
    const char *threads_text;
    int threads;
    bool json, all, help;
};

struct command {
    const char *name;
    bool (*run)(const struct options *options, struct api_problem *problem);
    const char *text; /* what it does, as a sentence */
};

/*
 * Opens the engine with the cases and layer support of the operator's folder. A script
 * there that is no good is an error: it could change what a plan says.
 */
bool open_engine(const struct options *options, struct qdq_engine **ret,
                 struct api_problem *problem);

bool command_quantize(const struct options *options, struct api_problem *problem);
bool command_plan(const struct options *options, struct api_problem *problem);
bool command_info(const struct options *options, struct api_problem *problem);

#endif
