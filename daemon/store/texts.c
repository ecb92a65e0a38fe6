/* SPDX-License-Identifier: Apache-2.0 */
/* Texts on their way to the record, which keeps UTF-8 alone. */
#include "config.h"
#include "store/inner.h"
#include "base/check.h"

const char *
store_repair(struct stmt *stmt, const char *text)
{
    lock_assert_held(stmt->lock);
    QDQD_CHECK(stmt->n_repaired < sizeof stmt->repaired / sizeof *stmt->repaired);
    char *copy = api_utf8_repair(text);
    if (copy)
        stmt->repaired[stmt->n_repaired++] = copy;
    else
        *stmt->lacks_memory = true;
    return copy;
}
