/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "jobs/speeds.h"

#include <stdio.h>
#include <string.h>

uint64_t
speeds_spec(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325U; /* FNV-1a */
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3U;
    return hash;
}

bool
speeds_find(const struct speeds *speeds, const char *model, uint64_t spec,
            struct api_speed *ret)
{
    bool any = false;
    for (size_t i = 0; *model && i < SPEEDS_MOST; i++) {
        const size_t at = (speeds->next + i) % SPEEDS_MOST;
        if (strcmp(speeds->rows[at].model, model) != 0)
            continue;
        any = true;
        *ret = speeds->rows[at].speed;
        if (speeds->rows[at].spec == spec)
            return true;
        ret->whole = false;
    }
    return any;
}

void
speeds_add(struct speeds *speeds, const char *model, uint64_t spec,
           const struct api_speed *speed)
{
    if (!*model || (speed->calibrate <= 0 && speed->evaluate <= 0 && !speed->whole))
        return;
    size_t i = 0;
    while (i < SPEEDS_MOST &&
           (strcmp(speeds->rows[i].model, model) != 0 || speeds->rows[i].spec != spec))
        i++;
    if (i < SPEEDS_MOST && speeds->rows[i].speed.whole && !speed->whole)
        return;
    if (i == SPEEDS_MOST) {
        i = speeds->next;
        speeds->next = (i + 1) % SPEEDS_MOST;
        snprintf(speeds->rows[i].model, sizeof speeds->rows[i].model, "%s", model);
        speeds->rows[i].spec = spec;
    }
    speeds->rows[i].speed = *speed;
}
