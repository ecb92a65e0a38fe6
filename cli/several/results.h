/* SPDX-License-Identifier: Apache-2.0 */
/* Results side by side: their reports, a table of them, and a page. For one thread only. */
#ifndef CLI_SEVERAL_RESULTS_H
#define CLI_SEVERAL_RESULTS_H

#include "api/problem.h"
#include "files.h"

/* A result, or why there is none. A model that missed a gate has a report and has failed. */
struct compared_result {
    char *name, *path; /* owned; path is that of the report, or NULL */
    char *text;        /* of the report, owned; NULL where there is none */
    size_t len;
    struct api_problem failed; /* set where it did */
};

struct results {
    struct compared_result *items;
    size_t n;
};

/* Adds an empty result and returns it; valid until the next one is added. NULL with a problem. */
struct compared_result *results_add(struct results *all, const char *name,
                                    struct api_problem *problem);
/* Prints the table. */
bool results_print(const struct results *all, struct api_problem *problem);
/* Writes the page of the reports that are there, and commits it. */
bool results_write_page(const struct results *all, struct output *to,
                        struct api_problem *problem);
/* Fails where the result of a target failed, with the code of the first one. */
bool results_check(const struct results *all, struct api_problem *problem);
void results_fini(struct results *all);

#endif
