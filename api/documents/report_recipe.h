/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a report that says what a recipe judged. */
#ifndef API_DOCUMENTS_REPORT_RECIPE_H
#define API_DOCUMENTS_REPORT_RECIPE_H

#include <jansson.h>

#include "qdq/report.h"

/* Encodes the member `recipe`; NULL when out of memory. */
json_t *api_encode_recipe(const struct qdq_recipe_report *recipe);

/* Encodes the member `frontier`; NULL when out of memory. */
json_t *api_encode_frontier_points(const struct qdq_frontier *frontier);

#endif
