/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of struct qdq_catalog, for the planner. */
#ifndef QDQI_PLAN_CASES_CATALOG_H
#define QDQI_PLAN_CASES_CATALOG_H

#include "graph/layers/classes.h"

/* Sets *ret to the rows of the operator's folder, in the order of precedence, and
   returns their number. */
size_t qdqi_catalog_rows(const struct qdq_catalog *catalog,
                         const struct qdqi_class **ret);
/* Returns the case of that name, where one of the operator has priority over one of
   the library; NULL when there is none. */
const struct qdq_case_info *qdqi_catalog_find(const struct qdq_catalog *catalog,
                                              const char *name);

#endif
