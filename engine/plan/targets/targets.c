/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets. It is made from the list TARGETS in engine/local.mk. */
#include "config.h"
#include "plan/targets/targets.h"

#include <string.h>

static const struct qdq_target *const targets[] = {
#define TARGET(name) &qdqi_target_##name,
#include "targets.inc"
#undef TARGET
};

enum { N_TARGETS = sizeof targets / sizeof *targets };

const struct qdq_target *
qdq_target_row(size_t i)
{
    return i < N_TARGETS ? targets[i] : NULL;
}

const struct qdq_target *
qdq_target_find(const char *name)
{
    for (size_t i = 0; i < N_TARGETS; i++)
        if (strcmp(targets[i]->name, name) == 0)
            return targets[i];
    return NULL;
}

int
qdq_target_find_rule(const struct qdq_target *target, const char *id)
{
    for (size_t i = 0; i < target->n_rules; i++)
        if (strcmp(target->rules[i].id, id) == 0)
            return (int)i;
    return -1;
}

const struct qdq_rule *
qdq_rule(size_t i)
{
    for (size_t k = 0; k < N_TARGETS; i -= targets[k++]->n_rules)
        if (i < targets[k]->n_rules)
            return &targets[k]->rules[i];
    return NULL;
}
