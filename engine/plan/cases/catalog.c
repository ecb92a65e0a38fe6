/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in cases and those in an operator's folder. */
#include "config.h"
#include "plan/cases/catalog_inner.h"

#include <stdlib.h>
#include <string.h>

#define FROM_LIBRARY "library"
#define FROM_OPERATOR "operator"

/* --- the library ---------------------------------------------------------- */

/* The build generates library.inc from *.lua, sorted by name. */
static const struct qdq_case_info library[] = {
#define CASE(case_name, text, script) {case_name, text, FROM_LIBRARY, script},
#include "plan/cases/library.inc"
#undef CASE
};

enum { N_LIBRARY = sizeof library / sizeof *library };

/* --- the catalog ---------------------------------------------------------- */

static int
compare_cases(const void *a, const void *b)
{
    return strcmp((*(const struct qdq_case_info *const *)a)->name,
                  (*(const struct qdq_case_info *const *)b)->name);
}

/* --- lists ---------------------------------------------------------------- */

static const struct qdq_case_info *
find(const struct qdq_case_info *const *rows, size_t n, const char *name)
{
    const struct qdq_case_info key = {.name = name}, *at = &key;
    const struct qdq_case_info *const *found =
        n ? bsearch(&at, rows, n, sizeof *rows, compare_cases) : NULL;
    return found ? *found : NULL;
}

enum qdq_code
qdqi_catalog_list_cases(struct qdq_catalog *c, struct qdq_error *err)
{
    size_t n = 0;
    c->n_cases = 0;
    c->cases = qdqi_arena_array(c->arena, c->n_files + N_LIBRARY, sizeof *c->cases);
    if (!c->cases)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < c->n_files; i++)
        if (c->files[i].is_case)
            /* c->files is sorted, so these are sorted, too */
            c->cases[n++] = &c->files[i].info;
    size_t n_own = n;
    for (size_t i = 0; i < N_LIBRARY; i++)
        if (!find(c->cases, n_own, library[i].name))
            c->cases[n++] = &library[i];
    qsort(c->cases, n, sizeof *c->cases, compare_cases);
    c->n_cases = n;
    return QDQ_OK;
}

/* Adds the rows of a file. While c->rows is NULL it only counts them. */
static enum qdq_code
add_rows(struct qdq_catalog *c, const struct qdqi_case_file *file,
         struct qdq_error *err)
{
    const char *note = qdqi_arena_printf(
        c->arena, "layer support of %s" QDQI_CASE_SUFFIX, file->info.name);
    if (!note)
        return qdqi_no_memory(err);
    for (size_t k = file->n_support; k-- > 0;)
        c->n_rows += qdqi_given_rows(&file->support[k], FROM_OPERATOR, note,
                                     c->rows ? c->rows + c->n_rows : NULL);
    return QDQ_OK;
}

/* Lists the layer support of all files in the order of precedence. The last one of
   equal rows has precedence, so the list begins with the last file. */
enum qdq_code
qdqi_catalog_list_support(struct qdq_catalog *c, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = c->n_files; i-- > 0 && !code;)
        code = add_rows(c, &c->files[i], err);
    if (code || !c->n_rows)
        return code;
    c->rows = qdqi_arena_array(c->arena, c->n_rows, sizeof *c->rows);
    if (!c->rows)
        return qdqi_no_memory(err);
    c->n_rows = 0;
    for (size_t i = c->n_files; i-- > 0 && !code;)
        code = add_rows(c, &c->files[i], err);
    return code;
}

/* --- freeing ------------------------------------------------------------- */

void
qdq_catalog_free(struct qdq_catalog **catalog)
{
    if (!catalog || !*catalog)
        return;
    /* the catalog itself is in this arena */
    struct qdqi_arena *arena = (*catalog)->arena;
    qdqi_arena_free(&arena);
    *catalog = NULL;
}

/* --- queries ------------------------------------------------------------- */

enum qdq_code
qdq_catalog_check(const struct qdq_catalog *catalog, struct qdq_error *err)
{
    if (!catalog || !catalog->broken.code)
        return QDQ_OK;
    const struct qdq_error *broken = &catalog->broken;
    return qdq_error_set(err, broken->code, broken->kind, broken->where, "%s",
                         broken->text);
}

const struct qdq_case_info *
qdq_catalog_case(const struct qdq_catalog *catalog, size_t i)
{
    if (catalog && catalog->cases)
        return i < catalog->n_cases ? catalog->cases[i] : NULL;
    return i < N_LIBRARY ? &library[i] : NULL;
}

const struct qdq_case_info *
qdqi_catalog_find(const struct qdq_catalog *catalog, const char *name)
{
    if (catalog && catalog->cases)
        return find(catalog->cases, catalog->n_cases, name);
    for (size_t i = 0; i < N_LIBRARY; i++)
        if (strcmp(library[i].name, name) == 0)
            return &library[i];
    return NULL;
}

size_t
qdqi_catalog_rows(const struct qdq_catalog *catalog, const struct qdqi_class **ret)
{
    *ret = catalog ? catalog->rows : NULL;
    return catalog ? catalog->n_rows : 0;
}

const struct qdq_layer_support *
qdq_catalog_layer(const struct qdq_catalog *catalog, size_t i)
{
    size_t n = catalog ? catalog->n_rows : 0;
    return i < n ? &catalog->rows[i].support : qdqi_library_layer(i - n);
}
