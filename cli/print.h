/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output for people. Texts that come from a model are printed without control characters,
 * which could move the cursor of a terminal.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "api/problem.h"
#include "qdq.h"

/* Prints "qdq: code: detail (where)" on standard error. */
void print_problem(const struct api_problem *problem);
/* Prints a line "qdq: warning: …" for each on standard error. */
void print_warnings(const struct qdq_warning *warnings, size_t n);
/*
 * Prints a row for each layer, which says what of it is quantized and why, and a line with
 * the totals. Unless `all` is set, layers that nothing selects are only counted by class.
 */
void print_plan(const struct qdq_plan_view *plan, bool all);
/* Prints the facts of a model. `plan` is NULL when no plan can be made of it. */
void print_info(const struct qdq_model_info *model, const struct qdq_plan_view *plan);
/* Prints the size and the accuracy of the quantized model, which is called `out`. */
void print_summary(const struct qdq_report *report, const char *out);

#endif
