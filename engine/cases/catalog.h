/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct qdq_catalog, for the plan. */
#ifndef QDQI_CATALOG_H
#define QDQI_CATALOG_H

#include "qdq/catalog.h"

/* Layer support rows of the operator's folder; 0 for a NULL catalog. */
size_t qdqi_catalog_support(const struct qdq_catalog *catalog,
                            const struct qdq_support **ret);
/* The case of that name: the operator's, else the library's; NULL: none. */
const struct qdq_case_info *qdqi_catalog_find(const struct qdq_catalog *catalog,
                                              const char *name);

#endif
