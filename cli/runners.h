/* SPDX-License-Identifier: Apache-2.0 */
/* The user's own runners: sections [runner NAME] of the file of --runners, as in qdqd's
   configuration. */
#ifndef CLI_RUNNERS_H
#define CLI_RUNNERS_H

#include "api/problem.h"
#include "judges/runner.h"

enum { MOST_RUNNERS = 32 };

struct runners {
    size_t n;
    struct {
        struct runner_config runner;
        char *targets; /* names with commas between */
    } list[MOST_RUNNERS];
};

/* Reads the file. Free the runners also after a failure. */
bool runners_read(const char *path, struct runners *ret, struct api_problem *problem);
void runners_fini(struct runners *runners);

#endif
