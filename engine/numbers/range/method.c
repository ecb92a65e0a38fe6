/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/range/method.h"

#include <string.h>

static const struct qdqi_method *const methods[] = {
#define METHOD(name) &qdqi_method_##name,
#include "numbers/range/methods.inc"
#undef METHOD
};

const struct qdqi_method *
qdqi_method_find(const char *name)
{
    for (size_t i = 0; i < QDQI_N_METHODS; i++)
        if (strcmp(methods[i]->name, name) == 0)
            return methods[i];
    return NULL;
}

bool
qdq_range_method(size_t i, struct qdq_range_method *ret)
{
    if (i >= QDQI_N_METHODS)
        return false;
    *ret = (struct qdq_range_method){methods[i]->name, methods[i]->uses_percentile};
    return true;
}
