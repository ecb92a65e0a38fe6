/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog: the custom Q/DQ insertion cases and the layer support that a spec can
 * choose from, both the library's own and those in an operator's folder.
 *
 * The folder holds Lua files. `NAME.lua` returns a table with `info` and `case` (the
 * case NAME), with `layer_support` (a list of rows, members as in a spec), or with all
 * three. A file in the folder replaces the library's case of the same name.
 *
 * A catalog is read-only after opening and may be shared by threads. Getters return
 * borrowed pointers that live as long as the catalog. A NULL catalog is the library
 * alone.
 */
#ifndef QDQ_CATALOG_H
#define QDQ_CATALOG_H

#include "qdq/spec.h"

struct qdq_catalog;

struct qdq_case_info {
    const char *name;
    /* describes the case in one paragraph; "" when it failed to load */
    const char *info;
    const char *source; /* "library" or "operator" */
    const char *lua;    /* text of the script */
};

/* One class of the layer support, for listings. */
struct qdq_layer_support {
    const char *cls;  /* "Conv2D" */
    const char *op;   /* ONNX operator that the class is found by */
    const char *kind; /* "weighted", "non_weighted", "multi_input" */
    int weight_input; /* -1: none */
    bool quantize_input, quantize_weight; /* without an entry in the spec */
    /* the weakest way to select the class: "default" (it is on), "any" (any
       selector or case), "name_or_class", "name" */
    const char *selected_by;
    bool pass_through;  /* the operator only moves data; patterns look through it */
    const char *note;   /* how the class is recognized */
    const char *source; /* "library" or "operator" */
};

/*
 * Reads the *.lua files of `folder`, in the order of their names; NULL: the library
 * alone. A missing folder counts as empty. A broken script does not prevent opening:
 * qdq_catalog_check() reports it, and a job that uses it fails. IO (the folder or a
 * file cannot be read), LIMIT_EXCEEDED, NO_MEMORY.
 */
QDQ_API enum qdq_code qdq_catalog_open(const char *folder, struct qdq_catalog **ret,
                                       struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_catalog_free(struct qdq_catalog **catalog);

/* Reports the first broken script of the folder: CASE_FAILED with file and line. */
QDQ_API enum qdq_code qdq_catalog_check(const struct qdq_catalog *catalog,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/* Return case i in the order of names, and layer support row i in the order in which
   rows are tried; NULL past the last. */
QDQ_API const struct qdq_case_info *qdq_catalog_case(const struct qdq_catalog *catalog,
                                                     size_t i);
QDQ_API const struct qdq_layer_support *
qdq_catalog_layer(const struct qdq_catalog *catalog, size_t i);

#endif
