/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct qdq_catalog, for the plan. */
#ifndef QDQI_CASES_CATALOG_H
#define QDQI_CASES_CATALOG_H

#include "layers/classes.h"

/* Rows of the operator's folder, in the order in which they are tried. */
size_t qdqi_catalog_rows(const struct qdq_catalog *catalog,
                         const struct qdqi_class **ret);
/* The case of that name: the operator's, else the library's; NULL: none. */
const struct qdq_case_info *qdqi_catalog_find(const struct qdq_catalog *catalog,
                                              const char *name);

#endif
