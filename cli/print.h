/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people read. Texts that come from a model are printed without control
 * characters: they must not move a terminal's cursor.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "api/problem.h"
#include "qdq.h"

/* "qdq: code: detail (where)" on standard error. */
void print_problem(const struct api_problem *problem);
/* "qdq: warning: …" on standard error, one line each. */
void print_warnings(const struct qdq_warning *warnings, size_t n);
/*
 * The layers with what is quantized and why, and a line that counts them. Unless `all`,
 * those that are left alone because nothing speaks for them are counted by class.
 */
void print_plan(const struct qdq_plan_view *plan, bool all);
/* `plan` is NULL when the model cannot be planned. */
void print_info(const struct qdq_model_info *model, const struct qdq_plan_view *plan);
/* What was made and what it cost. */
void print_summary(const struct qdq_report *report, const char *out);

#endif
