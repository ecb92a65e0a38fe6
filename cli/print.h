/* SPDX-License-Identifier: Apache-2.0 */
/* Output for people. Texts that come from a model or a service go through terminal.h. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "api/client.h"
#include "api/problem.h"
#include "qdq.h"

/* Prints "qdq: code: detail (where)" on standard error. */
void print_problem(const struct api_problem *problem);
/* Prints the text of a problem and the end of the line on standard error. */
void print_detail(const struct api_problem *problem);
/* Prints a line "qdq: warning: …" for each on standard error. */
void print_warnings(const struct qdq_warning *warnings, size_t n);
/*
 * Prints a row for each layer, which says what of it is quantized and why, and a line with
 * the totals. Unless `all` is set, layers that nothing selects are only counted by class.
 * `pairs` is the number of pairs of a plan that does not count activations and weights; else
 * NULL.
 */
void print_plan(const struct qdq_plan_view *plan, bool all, const size_t *pairs);
/* Prints the facts of a model. `plan` is NULL when no plan can be made of it. */
void print_info(const struct qdq_model_info *model, const struct qdq_plan_view *plan);
/* Prints jobs as a table: id, state, when they were queued, and the model's name. */
void print_jobs(const struct api_job_facts *jobs, size_t n);
/* Prints the size and the accuracy of the quantized model, which is called `out`. */
void print_summary(const struct qdq_report *report, const char *out);

/* Prints the program that runs the result, and frees it; NULL: none. */
void print_program(char *text, const char *target);

#endif
