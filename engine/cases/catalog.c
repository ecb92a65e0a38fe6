/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cases/catalog.h"

#include "cases/case.h"

enum qdq_code
qdq_catalog_open(const char *folder, struct qdq_catalog **ret, struct qdq_error *err)
{
    (void)folder;
    (void)err;
    *ret = NULL;
    return QDQ_OK;
}

void
qdq_catalog_free(struct qdq_catalog **catalog)
{
    (void)catalog;
}

enum qdq_code
qdq_catalog_check(const struct qdq_catalog *catalog, struct qdq_error *err)
{
    (void)catalog;
    (void)err;
    return QDQ_OK;
}

const struct qdq_case_info *
qdq_catalog_case(const struct qdq_catalog *catalog, size_t i)
{
    (void)catalog;
    (void)i;
    return NULL;
}

size_t
qdqi_catalog_support(const struct qdq_catalog *catalog, const struct qdq_support **ret)
{
    (void)catalog;
    *ret = NULL;
    return 0;
}

const struct qdq_case_info *
qdqi_catalog_find(const struct qdq_catalog *catalog, const char *name)
{
    (void)catalog;
    (void)name;
    return NULL;
}

const struct qdq_layer_support *
qdq_catalog_layer(const struct qdq_catalog *catalog, size_t i)
{
    (void)catalog;
    return qdqi_library_layer(i);
}

enum qdq_code
qdqi_case_run(const struct qdq_catalog *catalog, struct qdqi_layers *layers,
              const struct qdq_spec *spec, const struct qdq_case_use *use,
              const char *pointer, struct qdqi_arena *arena,
              struct qdq_layer_entry **ret, size_t *ret_n, struct qdq_error *err)
{
    (void)catalog;
    (void)layers;
    (void)spec;
    (void)arena;
    (void)ret;
    (void)ret_n;
    return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, pointer,
                         "case '%s': cases are being built", use->name);
}
