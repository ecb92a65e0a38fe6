/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model as a runner's runtime has compiled it (output.context): made by a process of its own, that
 * program again as `PROGRAM --judge-context`, which starts the runner's program as a process that
 * judges does.
 */
#ifndef JUDGES_CONTEXT_H
#define JUDGES_CONTEXT_H

#include "judges/judges.h"
#include "judges/runner.h"

#define JUDGES_CONTEXT_WORD "--judge-context"

/* Reads the ONNX file `model`, which has all its weights, and writes the compiled one to the empty file
   `to`. Both are descriptors. Returns false with the reason. */
bool judges_make_context(const struct runner_config *runner, int model, int to,
                         char why[JUDGES_WHY]);

/* Runs the process: `argv` begins behind the word. Returns the exit status. */
int judges_context_main(int argc, char **argv);

#endif
