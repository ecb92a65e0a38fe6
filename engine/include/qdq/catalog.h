/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is to choose from: custom Q/DQ insertion cases and layer support, the
 * library's own and those of an operator's folder.
 *
 * The folder holds Lua files. What `NAME.lua` returns is a table with `info` and `case`
 * (the case NAME), with `layer_support` (a list of rows, members as in a spec), or with
 * all three. A file of the operator's replaces a case of the library of the same name.
 *
 * A catalog is read-only after opening and may be shared by threads. What getters return
 * is borrowed and lives as long as the catalog. A NULL catalog is the library alone.
 */
#ifndef QDQ_CATALOG_H
#define QDQ_CATALOG_H

#include "qdq/spec.h"

struct qdq_catalog;

struct qdq_case_info {
    const char *name;
    const char *info; /* what the case does, one paragraph; "" when it failed to load */
    const char *source; /* "library" or "operator" */
    const char *lua;    /* the script */
};

/* One class of the layer support, for listings. */
struct qdq_layer_support {
    const char *cls;  /* "Conv2D" */
    const char *op;   /* ONNX op type that the class is found by */
    const char *kind; /* "weighted", "non_weighted", "multi_input" */
    int weight_input; /* -1: none */
    bool quantize_input, quantize_weight; /* by default */
    const char
        *selected_by;   /* least that it takes: "default" (nothing), "any" (selector
                                or case), "name_or_class", "name" */
    bool pass_through;  /* moves data about; patterns look through it */
    const char *note;   /* how the class is recognized */
    const char *source; /* "library" or "operator" */
};

/*
 * Reads the *.lua files of `folder`, in the order of their names; NULL: the library
 * alone. A folder that is not there is empty. A script that is no good does not keep the
 * catalog from opening: qdq_catalog_check() tells, and a job that uses it fails.
 * IO (the folder or a file cannot be read), LIMIT_EXCEEDED, NO_MEMORY.
 */
QDQ_API enum qdq_code qdq_catalog_open(const char *folder, struct qdq_catalog **ret,
                                       struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_catalog_free(struct qdq_catalog **catalog);

/* CASE_FAILED with file and line: the first script of the folder that is no good. */
QDQ_API enum qdq_code qdq_catalog_check(const struct qdq_catalog *catalog,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/* Case i by name, layer support row i in the order in which rows are tried; NULL past
   the last. */
QDQ_API const struct qdq_case_info *qdq_catalog_case(const struct qdq_catalog *catalog,
                                                     size_t i);
QDQ_API const struct qdq_layer_support *
qdq_catalog_layer(const struct qdq_catalog *catalog, size_t i);

#endif
