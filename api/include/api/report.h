/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine results as JSON (shapes: api/openapi.yaml). Every call returns text that the
 * caller frees, or NULL when out of memory. Numbers read back to the same value and do
 * not depend on the locale; what is not finite becomes null.
 */
#ifndef API_REPORT_H
#define API_REPORT_H

#include "api/problem.h"
#include "qdq.h"

char *api_report_encode(const struct qdq_report *report);
/* The text of api_report_encode() as Markdown, for people. Names stand there as they are,
   whatever is in them. NULL also for what is no JSON. */
char *api_report_markdown(const char *json, size_t len);
/*
 * Is the model what the spec's accept asks for? If not, the problem ACCURACY names the
 * first output, figure and bound that were missed, and how many more there are.
 */
bool api_report_accepted(const struct qdq_report *report, struct api_problem *problem);
/* The report's `summary` alone. */
char *api_summary_encode(const struct qdq_report *report);
/* {"summary","layers","warnings"} of a dry run. */
char *api_plan_encode(const struct qdq_plan_view *plan,
                      const struct qdq_model_info *model);
char *api_model_info_encode(const struct qdq_model_info *model,
                            const struct qdq_plan_view *plan);
/* The members `samples` and `inputs` of a dataset: {"samples":n,"inputs":[…]}. */
char *api_dataset_info_encode(const struct qdq_dataset_info *dataset);
/* The bodies of GET /v1/layers and GET /v1/cases; NULL: the library's alone. */
char *api_layers_encode(const struct qdq_catalog *catalog);
char *api_cases_encode(const struct qdq_catalog *catalog);
/* The body of GET /v1/targets: the rows of qdq/targets.h with what a spec of the target has
   by default. */
char *api_targets_encode(void);

#endif
