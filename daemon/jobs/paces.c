/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "jobs/paces.h"

#include <stdio.h>
#include <string.h>

static size_t
find(const struct paces *paces, const char *model)
{
    size_t i = 0;
    while (i < PACES_MOST && strcmp(paces->rows[i].model, model) != 0)
        i++;
    return i;
}

const struct api_pace *
paces_of(const struct paces *paces, const char *model)
{
    size_t i = find(paces, model);
    return *model && i < PACES_MOST ? &paces->rows[i].pace : NULL;
}

void
paces_add(struct paces *paces, const char *model, const struct api_pace *pace)
{
    if (!*model || (pace->calibrate <= 0 && pace->evaluate <= 0))
        return;
    size_t i = find(paces, model);
    if (i == PACES_MOST) {
        i = paces->next;
        paces->next = (i + 1) % PACES_MOST;
        snprintf(paces->rows[i].model, sizeof paces->rows[i].model, "%s", model);
    }
    paces->rows[i].pace = *pace;
}
