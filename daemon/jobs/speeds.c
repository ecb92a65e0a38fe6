/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "jobs/speeds.h"

#include <stdio.h>
#include <string.h>

static size_t
find(const struct speeds *speeds, const char *model)
{
    size_t i = 0;
    while (i < SPEEDS_MOST && strcmp(speeds->rows[i].model, model) != 0)
        i++;
    return i;
}

const struct api_speed *
speeds_find(const struct speeds *speeds, const char *model)
{
    size_t i = find(speeds, model);
    return *model && i < SPEEDS_MOST ? &speeds->rows[i].speed : NULL;
}

void
speeds_add(struct speeds *speeds, const char *model, const struct api_speed *speed)
{
    if (!*model || (speed->calibrate <= 0 && speed->evaluate <= 0))
        return;
    size_t i = find(speeds, model);
    if (i == SPEEDS_MOST) {
        i = speeds->next;
        speeds->next = (i + 1) % SPEEDS_MOST;
        snprintf(speeds->rows[i].model, sizeof speeds->rows[i].model, "%s", model);
    }
    speeds->rows[i].speed = *speed;
}
