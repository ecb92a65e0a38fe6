/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "range/method.h"

#include <string.h>

static const struct qdqi_method *const methods[] = {
    &qdqi_method_minmax,
};

const struct qdqi_method *
qdqi_method_find(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i]->name, name) == 0)
            return methods[i];
    return NULL;
}
