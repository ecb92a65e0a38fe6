/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a catalog, which catalog_folder.c fills in, and of which catalog.c makes lists. */
#ifndef QDQI_PLAN_CASES_CATALOG_INNER_H
#define QDQI_PLAN_CASES_CATALOG_INNER_H

#include "plan/cases/catalog.h"

#define QDQI_CASE_SUFFIX ".lua"

/* A file in the operator's folder. */
struct qdqi_case_file {
    const char *path;
    const char *fault; /* reason why the script cannot be run, or NULL */
    struct qdq_case_info info;
    bool is_case;
    const struct qdq_support *support;
    size_t n_support;
};

struct qdq_catalog {
    struct qdqi_arena *arena;
    struct qdqi_case_file *files; /* sorted by name */
    size_t n_files;
    /* including those of the library; sorted by name */
    const struct qdq_case_info **cases;
    size_t n_cases;
    /* layer support of all files, in the order of precedence */
    struct qdqi_class *rows;
    size_t n_rows;
    struct qdq_error broken; /* error of the first broken script */
};

/* Lists the operator's cases, and those of the library that they do not replace; and the rows of
   layer support in all files. NO_MEMORY, INVALID_SPEC. */
enum qdq_code qdqi_catalog_list_cases(struct qdq_catalog *c,
                                      struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_catalog_list_support(struct qdq_catalog *c,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

#endif
